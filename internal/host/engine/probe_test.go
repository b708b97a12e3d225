package engine

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/internal/docker"
	"github.com/kube-relapse/relapse/internal/docker/dockertest"
)

func TestProbeRemovesWhatItMade(t *testing.T) {
	for name, test := range map[string]struct {
		state   dockertest.State
		bounded bool
		want    string
	}{
		"runs":    {},
		"bounded": {state: dockertest.State{Bounded: noCaps}, bounded: true, want: "unable to apply caps"},
		"rlimits": {state: dockertest.State{Bounded: "error setting rlimits for ready process: operation not permitted"},
			bounded: true, want: "rlimits"},
		"other": {state: dockertest.State{Bounded: "no space left on device"}, want: "no space left on device"},
		"arch":  {state: dockertest.State{Arch: "riscv64"}, want: `no probe program for architecture "riscv64"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := dockertest.New(t, test.state)
			d, err := docker.Detect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p, err := ProbePrivileged(t.Context(), d)
			if errors.Is(err, ErrBounded) != test.bounded || (err == nil) != (test.want == "") || err != nil &&
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("probe: %v, want %q", err, test.want)
			}
			if err == nil && (p.Bounding != 0x3ffeffffff || !p.LacksSysResource()) {
				t.Errorf("probe saw %#x", p.Bounding)
			}
			if s := dockertest.Read(dir); len(s.Objects) > 0 {
				t.Errorf("left behind: %v after %q", s.Objects, s.Calls)
			}
		})
	}
}

func TestProbeRemovesWhatItMadeAfterCancel(t *testing.T) {
	dir := dockertest.New(t, dockertest.State{})
	d, err := docker.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	info, err := d.ServerInfo(ctx)
	if err != nil || info.Architecture != "x86_64" {
		t.Fatalf("ServerInfo: %+v, %v", info, err)
	}
	cancel()
	_, err = runProbe(ctx, d, "relapse-probe-x", nil)
	if err == nil {
		t.Error("the probe went on after a cancel")
	}
	if err := removeProbe(ctx, d, "relapse-probe-x"); err != nil {
		t.Error(err)
	}
	s := dockertest.Read(dir)
	if len(s.Objects) > 0 || !slices.ContainsFunc(s.Calls,
		func(c string) bool { return strings.Contains(c, RunLabel+"=relapse-probe-x") }) {
		t.Errorf("left behind: %v after %q", s.Objects, s.Calls)
	}
}

// TestProbeProgram runs the real program where this machine can.
func TestProbeProgram(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"x86_64": elf.EM_X86_64, "aarch64": elf.EM_AARCH64} {
		program, err := probeProgram(arch)
		if err != nil {
			t.Fatal(err)
		}
		f, err := elf.NewFile(bytes.NewReader(program))
		if err != nil || f.Machine != machine || len(f.Progs) != 1 || f.Progs[0].Filesz != uint64(len(program)) {
			t.Errorf("%s: %v, %+v", arch, err, f)
		}
		if map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[arch] != runtime.GOARCH {
			continue
		}
		file := filepath.Join(t.TempDir(), "probe")
		if err := os.WriteFile(file, program, 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, file).Output()
		if _, parseErr := parseBounding(out); err != nil || parseErr != nil {
			t.Errorf("%s: %v, %v", arch, err, parseErr)
		}
	}
}

package engine

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/internal/docker"
	"github.com/kube-relapse/relapse/internal/docker/dockertest"
)

func TestMain(m *testing.M) { dockertest.Main(m) }

const noCaps = "OCI runtime create failed: unable to apply caps: operation not permitted"

// bench is a host of its own: settings, /proc, and a fake engine.
type bench struct {
	*mender
	dir, config, program string
	said                 *bytes.Buffer
	signals              int
}

// newBench has the settings file hold what config says; "-" means there is none.
func newBench(t *testing.T, s dockertest.State, config string) *bench {
	t.Helper()
	b := &bench{dir: dockertest.New(t, s), said: &bytes.Buffer{}}
	root := t.TempDir()
	b.config, b.program = filepath.Join(root, "docker", "daemon.json"), filepath.Join(root, "program")
	put(t, b.program, "#!wrapper")
	if config != "-" {
		put(t, b.config, config)
	}
	put(t, filepath.Join(root, "proc/42/comm"), "dockerd\n")
	put(t, filepath.Join(root, "proc/42/cmdline"), "/usr/sbin/dockerd\x00--config-file="+b.config+"\x00")
	put(t, filepath.Join(root, "proc/7/comm"), "sshd\n")
	client, err := docker.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.mender = &mender{
		docker: client, w: b.said, lib: filepath.Join(root, "lib"), lock: filepath.Join(root, "lock"),
		proc: filepath.Join(root, "proc"), pidfile: filepath.Join(root, "docker.pid"), patient: 5 * time.Second,
		signal: func(pid int, sig syscall.Signal) error {
			b.signals++
			if pid != 42 || sig != syscall.SIGHUP {
				t.Errorf("sent %v to %d, want SIGHUP to 42", sig, pid)
			}
			return reloadFake(b.dir, b.config)
		},
	}
	return b
}

// reloadFake does what dockerd does on SIGHUP: a key that is gone changes nothing.
func reloadFake(dir, config string) error {
	data, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	read, err := parseSettings(config, data)
	if err != nil {
		return err
	}
	s := dockertest.Read(dir)
	if runtimes, ok := read[keyRuntimes].(map[string]any); ok {
		s.Runtimes = maps.Clone(runtimes)
		s.Runtimes[stockRuntime] = map[string]any{"path": "runc"}
	}
	if name := read.defaultRuntime(); name != "" {
		if s.Runtimes[name] == nil {
			return nil // it logs an error and keeps what it has
		}
		s.Default = name
	}
	s.Write(dir)
	return nil
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// get returns "-" for a file that isn't there, as newBench takes it.
func get(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestFixThenUndoLeavesTheSettingsAsTheyWere(t *testing.T) {
	for name, test := range map[string]struct{ config, before string }{
		"no file":              {"-", stockRuntime},
		"empty file":           {"", stockRuntime},
		"odd layout":           {`{"mtu":1400,   "log-opts": {"max-size": "10m"}}`, stockRuntime},
		"another default":      {`{"default-runtime":"crun","runtimes":{"crun":{"path":"/usr/bin/crun"}}}`, "crun"},
		"runtimes, no default": {`{"runtimes":{"crun":{"path":"/usr/bin/crun"}}}`, stockRuntime},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dockertest.State{Bounded: noCaps, Default: test.before}, test.config)
			changed, err := b.fix(t.Context(), b.program)
			if err != nil || !changed {
				t.Fatalf("fix: changed=%t, %v\n%s", changed, err, b.said)
			}
			if got := dockertest.Read(b.dir).Default; got != runtimeName {
				t.Errorf("default runtime after fix = %q", got)
			}
			if got := get(t, b.wrapper()); got != "#!wrapper" {
				t.Errorf("installed wrapper = %q", got)
			}
			if changed, err := b.fix(t.Context(), b.program); err != nil || changed {
				t.Errorf("second fix: changed=%t, %v", changed, err)
			}
			for i, want := range []bool{true, false} {
				if changed, err := b.undo(t.Context()); err != nil || changed != want {
					t.Fatalf("undo %d: changed=%t, %v", i+1, changed, err)
				}
			}
			if got := get(t, b.config); got != test.config {
				t.Errorf("settings after undo:\n%s\nwant:\n%s", got, test.config)
			}
			if got := dockertest.Read(b.dir); got.Default != test.before || len(got.Objects) > 0 {
				t.Errorf("daemon after undo has default %q and %v, want %q and nothing", got.Default, got.Objects, test.before)
			}
			if _, err := os.Stat(b.lib); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is still there", b.lib)
			}
		})
	}
}

func TestFixKeepsUnknownKeys(t *testing.T) {
	b := newBench(t, dockertest.State{Bounded: noCaps}, `{"mtu": 1400, "big": 9007199254740993, "new-thing": {"a": ["<b>"]}}`)
	if _, err := b.fix(t.Context(), b.program); err != nil {
		t.Fatal(err)
	}
	want := `{
  "big": 9007199254740993,
  "default-runtime": "relapse-bounded",
  "mtu": 1400,
  "new-thing": {
    "a": [
      "<b>"
    ]
  },
  "runtimes": {
    "relapse-bounded": {
      "path": "` + b.wrapper() + `"
    }
  }
}
`
	if diff := cmp.Diff(want, get(t, b.config)); diff != "" {
		t.Errorf("merged settings (-want +got):\n%s", diff)
	}
}

func TestUndoKeepsWhatOthersEdited(t *testing.T) {
	b := newBench(t, dockertest.State{Bounded: noCaps}, `{"mtu": 1400}`)
	if _, err := b.fix(t.Context(), b.program); err != nil {
		t.Fatal(err)
	}
	put(t, b.config, strings.Replace(get(t, b.config), "1400", "1300", 1))
	if _, err := b.undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("{\n  \"mtu\": 1300\n}\n", get(t, b.config)); diff != "" {
		t.Errorf("settings after undo (-want +got):\n%s", diff)
	}
}

func TestFixTouchesNothingWhereItCannotHelp(t *testing.T) {
	for name, test := range map[string]struct {
		state  dockertest.State
		config string
		spoil  func(*testing.T, *bench)
		want   string
	}{
		"healthy": {config: "{}"},
		"other failure": {state: dockertest.State{Bounded: "no space left on device"}, config: "{}",
			want: "no space left on device"},
		"not root": {state: dockertest.State{Bounded: noCaps}, config: "{}", want: "changing the daemon's settings needs root",
			spoil: func(_ *testing.T, b *bench) { b.uid = 1000 }},
		"bad JSON": {state: dockertest.State{Bounded: noCaps}, config: "{\n  \"mtu\": 1400,\n  oops\n}",
			want: "daemon.json:3: invalid character 'o'"},
		"cut off": {state: dockertest.State{Bounded: noCaps}, config: "{\n  \"mtu\": 1400\n",
			want: "daemon.json:3: unexpected end"},
		"trailing": {state: dockertest.State{Bounded: noCaps}, config: "{}\n{}",
			want: "daemon.json:2: more after the closing brace"},
		"no object": {state: dockertest.State{Bounded: noCaps}, config: "[1]",
			want: "daemon.json:1: json: cannot unmarshal array"},
		"wrong kind": {state: dockertest.State{Bounded: noCaps}, config: `{"runtimes": 1}`,
			want: `daemon.json: "runtimes" is a json.Number where an object was expected`},
		"on the command line": {state: dockertest.State{Bounded: noCaps}, config: "{}",
			want: "dockerd (process 42) is started with --default-runtime=crun",
			spoil: func(t *testing.T, b *bench) {
				put(t, filepath.Join(b.proc, "42/cmdline"), "dockerd\x00--default-runtime=crun\x00")
			}},
		"two daemons": {state: dockertest.State{Bounded: noCaps}, config: "{}", want: "choosing among dockerd processes [42 43]",
			spoil: func(t *testing.T, b *bench) { put(t, filepath.Join(b.proc, "43/comm"), "dockerd\n") }},
		"no wrapper": {state: dockertest.State{Bounded: noCaps}, config: "{}", want: "reading the bounded runtime: open",
			spoil: func(_ *testing.T, b *bench) { b.program = "nowhere" }},
		"no daemon": {state: dockertest.State{Bounded: noCaps}, config: "{}", want: "no dockerd process on this host",
			spoil: func(t *testing.T, b *bench) { put(t, filepath.Join(b.proc, "42/comm"), "sh\n") }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.state, test.config)
			if test.spoil != nil {
				test.spoil(t, b)
			}
			changed, err := b.fix(t.Context(), b.program)
			if changed || (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("fix: changed=%t, %v, want %q", changed, err, test.want)
			}
			_, libErr := os.Stat(b.lib)
			if got := get(t, b.config); got != test.config || b.signals > 0 || libErr == nil {
				t.Errorf("touched: settings %q, %d signals, stat of the folder: %v", got, b.signals, libErr)
			}
		})
	}
}

func TestFixPutsBackWhatDidNotHelp(t *testing.T) {
	const config = `{"mtu": 1400}`
	for name, test := range map[string]struct {
		stubborn string
		deaf     bool
		want     string
	}{
		"still bounded": {stubborn: noCaps,
			want: "probing with the bounded runtime: the host's capabilities are bounded"},
		"dockerd doesn't obey": {deaf: true, want: "waiting for dockerd's default runtime to be relapse-bounded: it is runc: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dockertest.State{Bounded: noCaps, Stubborn: test.stubborn}, config)
			if test.deaf {
				b.patient, b.signal = 3*time.Second, func(int, syscall.Signal) error { return nil }
			}
			changed, err := b.fix(t.Context(), b.program)
			if changed || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("fix: changed=%t, %v, want %q", changed, err, test.want)
			}
			if got, s := get(t, b.config), dockertest.Read(b.dir); got != config || s.Default != stockRuntime || len(s.Objects) > 0 {
				t.Errorf("left behind: settings %s, default runtime %s, %v", got, s.Default, s.Objects)
			}
		})
	}
}

func TestFixNamesRuntimesThatDockerdDropped(t *testing.T) {
	b := newBench(t, dockertest.State{Bounded: noCaps,
		Runtimes: map[string]any{"io.containerd.runc.v2": nil, stockRuntime: nil}}, "{}")
	if _, err := b.fix(t.Context(), b.program); err != nil {
		t.Fatal(err)
	}
	if want := "Until dockerd is restarted it no longer lists: io.containerd.runc.v2.\n"; !strings.Contains(b.said.String(), want) {
		t.Errorf("fix said:\n%swithout:\n%s", b.said, want)
	}
}

func TestFixPutsBackAfterCancel(t *testing.T) {
	b := newBench(t, dockertest.State{Bounded: noCaps}, "{}")
	ctx, cancel := context.WithCancel(t.Context())
	reload := b.signal
	b.signal = func(pid int, s syscall.Signal) error { cancel(); return reload(pid, s) }
	if _, err := b.fix(ctx, b.program); !errors.Is(err, context.Canceled) {
		t.Errorf("fix: %v, want context canceled", err)
	}
	if got, s := get(t, b.config), dockertest.Read(b.dir); got != "{}" || s.Default != stockRuntime {
		t.Errorf("left behind: settings %s, default runtime %s", got, s.Default)
	}
}

func TestUndoRefusesWhileContainersUseTheRuntime(t *testing.T) {
	b := newBench(t, dockertest.State{Bounded: noCaps, Containers: map[string]string{"node-1": runtimeName, "mine": "runc"}},
		"{}")
	if _, err := b.fix(t.Context(), b.program); err != nil {
		t.Fatal(err)
	}
	fixed := get(t, b.config)
	_, err := b.undo(t.Context())
	const want = "1 containers use the bounded runtime; remove them first: docker rm --force node-1"
	if err == nil || err.Error() != want {
		t.Errorf("undo: %v, want %s", err, want)
	}
	if got := get(t, b.config); got != fixed {
		t.Errorf("settings changed all the same: %s", got)
	}
}

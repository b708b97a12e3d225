//go:build cluster

package host_test

import (
	"archive/tar"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/internal/docker"
	"github.com/kube-relapse/relapse/internal/host"
	"github.com/kube-relapse/relapse/internal/host/engine"
)

// TestPrivilegedOnTheRealEngine mends this host if it needs it, and leaves it
// mended, as `relapse doctor --fix` does. Then it runs a privileged container,
// and a command inside one, as nodes need both.
func TestPrivilegedOnTheRealEngine(t *testing.T) {
	ctx := t.Context()
	client, err := docker.Detect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Fix(ctx, t.Output(), "", "../.."); err != nil {
		t.Fatal("Fix: ", err)
	}
	p, err := engine.ProbePrivileged(ctx, client)
	if err != nil || p.Bounding == 0 {
		t.Fatalf("probe: %+v, %v", p, err)
	}
	bounded, err := host.Bounded(ctx, client)
	if err != nil || bounded != p.LacksSysResource() {
		t.Errorf("Bounded = %t, %v; the probe saw %#x", bounded, err, p.Bounding)
	}
	out, err := execInPrivileged(t, client)
	if err != nil {
		t.Fatal(err)
	}
	if has := strings.Contains(out, "CapBnd:\t"); !has {
		t.Errorf("a command in a privileged container printed %q", out)
	}
	for _, list := range [][]string{{"ps", "-aq", "--filter", "name=relapse-probe-"},
		{"images", "-q", "relapse-probe-*"}} {
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) { // other tests probe this engine at the same time
			left, err := client.Output(ctx, list...)
			if err == nil && len(left) == 0 {
				break
			}
			if err != nil || time.Now().After(deadline) {
				t.Errorf("docker %v: %s, %v, want nothing", list, left, err)
				break
			}
		}
	}
}

const execProgram = `package main

import "os"

func main() {
	if len(os.Args) > 1 {
		data, _ := os.ReadFile("/proc/self/status")
		os.Stdout.Write(data)
		return
	}
	os.Stdin.Read(make([]byte, 1)) // until the container is removed
}
`

func execInPrivileged(t *testing.T, client *docker.Client) (string, error) {
	t.Helper()
	const name = "relapse-engine-exec-test"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(execProgram), 0o644); err != nil {
		return "", err
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "main", "main.go")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if err := build.Run(); err != nil {
		return "", err
	}
	program, err := os.ReadFile(filepath.Join(dir, "main"))
	if err != nil {
		return "", err
	}
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	if err := w.WriteHeader(&tar.Header{Name: "main", Mode: 0o755, Size: int64(len(program))}); err != nil {
		return "", err
	}
	if _, err := w.Write(program); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	t.Cleanup(func() {
		ctx := context.Background() // the test's own is done by now
		_, rmErr := client.Output(ctx, "rm", "--force", name)
		_, rmiErr := client.Output(ctx, "rmi", "--force", name)
		if rmErr != nil || rmiErr != nil {
			t.Errorf("removing %s: %v, %v", name, rmErr, rmiErr)
		}
	})
	if err := client.Stream(t.Context(), &image, nil, "import", "-", name); err != nil {
		return "", err
	}
	_, err = client.Output(t.Context(), "run", "--detach", "--interactive", "--name", name,
		"--label", engine.RunLabel+"="+name, "--privileged", "--network", "none", name, "/main")
	if err != nil {
		return "", err
	}
	out, err := client.Output(t.Context(), "exec", "--privileged", name, "/main", "status")
	return string(out), err
}

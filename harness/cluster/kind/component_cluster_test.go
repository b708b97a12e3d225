//go:build cluster

package kind_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// ownKubelet is a kubelet of the image's version that is not the image's own file: a copy with a byte behind the
// program, which no loader reads and every digest sees.
func ownKubelet(t *testing.T) string {
	t.Helper()
	image := env(t, "RELAPSE_NODE_IMAGE")
	docker := func(args ...string) string {
		out, err := exec.Command("docker", args...).Output()
		if err != nil {
			t.Fatalf("docker %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out))
	}
	path := filepath.Join(t.TempDir(), "kubelet")
	box := docker("create", image)
	docker("cp", box+":/usr/bin/kubelet", path)
	docker("rm", "--volumes", box)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func digest(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// installed looks at what the topology asked for, in what runs.
func installed(t *testing.T, c cluster.Cluster) {
	worker := c.Nodes()[1]
	if got := run(t, worker, "systemctl", "is-active", "conformance.service"); got != "active" {
		t.Errorf("the unit is %s", got)
	}
	if got := run(t, worker, "systemctl", "show", "kubelet.service", "--property=Environment"); !strings.Contains(got,
		"CONFORMANCE=yes") {
		t.Errorf("the drop-in is not in %s", got)
	}
	if got := run(t, worker, "pgrep", "--full", "--list-full", "^/usr/bin/kubelet"); !strings.Contains(got, "--v=3") {
		t.Errorf("the worker's kubelet runs as %s", got)
	}
	if got := run(t, c.Nodes()[2], "pgrep", "--full", "--list-full", "^/usr/bin/kubelet"); strings.Contains(got, "--v=3") {
		t.Errorf("the other worker's kubelet runs as %s", got)
	}
	if got := run(t, c.Nodes()[0], "pgrep", "--full", "--list-full", "^kube-apiserver "); !strings.Contains(got, "--v=2") {
		t.Errorf("the API server runs as %s", got)
	}
	if got := run(t, c.Nodes()[0], "pgrep", "--full", "--list-full", "^etcd "); !strings.Contains(got,
		"--log-level=warn") {
		t.Errorf("etcd runs as %s", got)
	}
	id, err := c.Components("kubelet")[1].Identity(t.Context(), true)
	if want := digest(t, ownKubelet(t)); err != nil || id.SHA256 != want {
		t.Errorf("the worker's kubelet has the digest %s, %v; want %s", id.SHA256, err, want)
	}
}

// replaced swaps a kubelet for another, and finds it after a loss of power too; then puts the first one back.
func replaced(t *testing.T, c cluster.Cluster) {
	k := c.Components("kubelet")[1]
	ctx, n := t.Context(), k.Node()
	first := ownKubelet(t)
	b, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(t.TempDir(), "kubelet")
	// what follows an ELF file is not loaded
	if err := os.WriteFile(second, append(b, "another one"...), 0o755); err != nil {
		t.Fatal(err)
	}
	is := func(when, file string) {
		t.Helper()
		var id cluster.Identity
		var err error
		// it may be on its way up
		for deadline := time.Now().Add(3 * time.Minute); id.PID == 0 && err == nil && time.Now().Before(deadline); {
			id, err = k.Identity(ctx, true)
		}
		if want := digest(t, file); err != nil || id.SHA256 != want {
			t.Errorf("%s: the digest is %s, %v; want %s", when, id.SHA256, err, want)
		}
	}
	if err := n.Install(ctx, "kubelet", second); err != nil {
		t.Fatal(err)
	}
	is("installed, not restarted", first)
	if err := k.Abilities().Restart(ctx); err != nil {
		t.Fatal(err)
	}
	is("restarted", second)
	if err := n.Abilities().Power.PowerOff(ctx); err != nil {
		t.Fatal(err)
	}
	if err := n.Abilities().Power.PowerOn(ctx); err != nil {
		t.Fatal(err)
	}
	is("after a loss of power", second)
	if err := n.Install(ctx, "kubelet", first); err != nil {
		t.Fatal(err)
	}
	if err := k.Abilities().Restart(ctx); err != nil {
		t.Fatal(err)
	}
	is("put back", first)
	if err := n.Install(ctx, "kube-scheduler", first); err == nil ||
		!strings.Contains(err.Error(), "only what the topology installed can be replaced") {
		t.Errorf("replacing what was not installed: %v", err)
	}
	ready(t, c)
}

// logsLeaveNothing follows a log and ends it in the two ways that there are.
func logsLeaveNothing(t *testing.T, c cluster.Cluster) {
	k := c.Components("kubelet")[2]
	for _, how := range []string{"context", "Close"} {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := k.Logs(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if how == "Close" {
			_ = r.Close()
		}
		cancel()
		const within = time.Minute
		deadline := time.Now().Add(within)
		for {
			_, err := k.Node().Abilities().Commands.Exec(t.Context(), nil, "pgrep", "--exact", "journalctl")
			if err != nil { // pgrep's way of saying that there is none
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("journalctl is still there %s after the log was ended by %s", within, how)
			}
		}
		_ = r.Close()
	}
}

// staticPods asks each component of the control plane for all that collectors ask a subject for.
func staticPods(t *testing.T, c cluster.Cluster) {
	for _, name := range component.Names(component.StaticPods) {
		row, _ := component.Of(name)
		all := c.Components(name)
		if len(all) != 1 {
			t.Errorf("there are %d of %s", len(all), name)
			continue
		}
		id, err := all[0].Identity(t.Context(), true)
		if err != nil || id.PID <= 0 || len(id.SHA256) != 64 {
			t.Errorf("%s is %+v, %v", name, id, err)
		}
		want := map[string]string{row.Ready: "", "/metrics": "process_cpu_seconds_total"}
		if row.Kubernetes {
			want["/debug/pprof/goroutine?debug=1"] = "goroutine profile: total"
		}
		for path, text := range want {
			r, err := all[0].Get(t.Context(), path)
			if err != nil {
				t.Error(err)
				continue
			}
			if body, err := io.ReadAll(r); err != nil || !strings.Contains(string(body), text) {
				t.Errorf("%s of %s is %.200q, %v; want %q in it", path, name, body, err, text)
			}
			_ = r.Close()
		}
		ctx, cancel := context.WithCancel(t.Context())
		r, err := all[0].Logs(ctx)
		if err == nil {
			_, err = r.Read(make([]byte, 1))
		}
		if err != nil {
			t.Errorf("the log of %s: %v", name, err)
		}
		cancel()
		_ = r.Close()
	}
}

// limited gives the scheduler less memory than it has, which it runs with.
func limited(t *testing.T, c cluster.Cluster) {
	for _, one := range c.Components("kube-scheduler") {
		if err := one.Abilities().Limit(t.Context(), "512Mi"); err != nil {
			t.Error(err)
		}
	}
}

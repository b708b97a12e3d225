package faults_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// upgraded is a cluster with one worker, whose kubelet is the first of three builds.
func upgraded(t *testing.T) (*clustertest.Component, fault.Target, func() string) {
	t.Helper()
	_, target, said := powered(t, "worker")
	target.Arm, target.Writer = "fixed", newWriter(t)
	for _, program := range []string{"one", "two", "three"} {
		b := fault.Build{Path: filepath.Join(t.TempDir(), program), Digest: fmt.Sprintf("%x", sha256.Sum256([]byte(program)))}
		if err := os.WriteFile(b.Path, []byte(program), 0o700); err != nil {
			t.Fatal(err)
		}
		target.Builds = append(target.Builds, b)
	}
	cl := clustertest.New("relapse-y", cluster.Topology{Nodes: []cluster.NodeSpec{
		{Name: "worker", Role: cluster.Worker, Arm: "fixed", Programs: map[string]string{"kubelet": target.Builds[0].Path}}}})
	t.Cleanup(cl.Close)
	target.Cluster, target.Nodes = cl, cl.Nodes()
	return cl.Component("worker", "kubelet"), target, said
}

// Each build is put in place of the one before it, and is recorded. An Inject of what is there does nothing, and so does
// the recovery.
func TestProcessReplaced(t *testing.T) {
	kubelet, target, said := upgraded(t)
	for _, spec := range []string{`{"action":"replace","component":"kubelet","build":2}`, `{"action":"replace","component":"kubelet"}`} {
		f := newFault(t, "process", spec)
		if r := f.(fault.Restarter); !r.Restarts("kubelet") {
			t.Error("it doesn't say that it makes the kubelet another process")
		}
		for range 2 {
			if err := errors.Join(f.Inject(t.Context(), target), f.Recover(t.Context(), target)); err != nil {
				t.Fatal(err)
			}
		}
	}
	id, err := kubelet.Identity(t.Context(), true)
	if err != nil || id.SHA256 != target.Builds[2].Digest || id.PID != 102 {
		t.Errorf("it is %+v, %v; want process 102 of the last build", id, err)
	}
	ends := endsOf(t, target.Writer)
	if len(ends) != 2 || ends[0].PID != 100 || ends[0].Build != 2 || ends[1].PID != 101 || ends[1].Build != 3 {
		t.Errorf("it recorded %+v, want the ends of 100 and 101, for the builds 2 and 3", ends)
	}
	want := event.FaultSeen + " relapse-y-worker off: the process 101 of kubelet was ended for build 3 (SHA-256 " +
		target.Builds[2].Digest[:12] + "), and process 102 is in its place"
	if !strings.Contains(said(), want) {
		t.Errorf("it said\n%s\nwant %s", said(), want)
	}
}

func TestProcessThatIsNotReplaced(t *testing.T) {
	kubelet, target, _ := upgraded(t)
	other := target
	other.Builds = other.Builds[:1]
	for _, c := range []struct {
		spec   string
		target fault.Target
		want   string
	}{
		{`{"action":"replace","component":"kubelet","build":4}`, target, "there is no build 4 to put in its place (builds: 3)"},
		{`{"action":"replace","component":"kubelet"}`, other, "there is no build 1 to put in its place (builds: 1)"},
		{`{"action":"replace","component":"kubelet"}`, target,
			fmt.Sprintf("process 100 is the program %.12s: want build 2, which is %.12s", target.Builds[0].Digest, target.Builds[1].Digest)},
	} {
		err := newFault(t, "process", c.spec).Inject(t.Context(), c.target)
		if want := "off: the kubelet of relapse-y-worker: " + c.want; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", c.spec, err, want)
		}
	}
	target.Cluster = fixedCluster{target.Cluster, steady{kubelet, cluster.ComponentAbilities{}}}
	if err := newFault(t, "process", `{"action":"replace","component":"kubelet"}`).Inject(t.Context(), target); err == nil ||
		!strings.HasSuffix(err.Error(), "it can't be restarted here") {
		t.Errorf("of one that can't be restarted: %v", err)
	}
	if id, err := kubelet.Identity(t.Context(), true); err != nil || id.PID != 100 || len(endsOf(t, target.Writer)) != 0 {
		t.Errorf("it is %+v, %v, and recorded %+v", id, err, endsOf(t, target.Writer))
	}
}

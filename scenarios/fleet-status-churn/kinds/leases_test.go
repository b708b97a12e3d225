package kinds_test

import (
	"bufio"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/internal/clustertest"
	"github.com/kube-relapse/relapse/scenarios/fleet-status-churn/kinds"
)

// lines are a stream's records so far.
func lines[T any](t *testing.T, v bundle.View, kind bundle.Kind) []T {
	t.Helper()
	var out []T
	for _, a := range v.Artifacts(bundle.Query{Kind: kind, Arm: bundle.Shared}) {
		r, err := v.Open(a)
		if err != nil {
			t.Fatal(err)
		}
		for sc := bufio.NewScanner(r); sc.Scan(); {
			var one T
			if err := json.Unmarshal(sc.Bytes(), &one); err != nil {
				t.Fatal(err)
			}
			out = append(out, one)
		}
		r.Close()
	}
	return out
}

// A Lease that stands still is seen to do so: it is written down at each look, and the node's condition once it has
// changed.
func TestLeases(t *testing.T) {
	c := clustertest.New("relapse-x", cluster.Topology{Nodes: []cluster.NodeSpec{
		{Name: "control-plane", Role: cluster.ControlPlane}, {Name: "worker", Role: cluster.Worker},
	}})
	t.Cleanup(c.Close)
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- (&kinds.Leases{}).Stream(ctx, capture.Target{Arm: bundle.Shared, Cluster: c}, w) }()
	of := func(node string) []bundle.LeaseSample {
		return slices.DeleteFunc(lines[bundle.LeaseSample](t, w.View(), bundle.Leases),
			func(s bundle.LeaseSample) bool { return s.Node != node })
	}
	states := func() (out []string) {
		for _, s := range lines[bundle.NodeStatus](t, w.View(), bundle.Nodes) {
			out = append(out, s.Node+" "+s.Status)
		}
		return out
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		deadline := time.After(20 * time.Second)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for !ok() {
			select {
			case <-deadline:
				t.Fatalf("%s: not seen; leases %+v, states %q", what, of("relapse-x-worker"), states())
			case <-tick.C:
			}
		}
	}
	until("both nodes", func() bool {
		return len(of("relapse-x-worker")) > 0 && len(of("relapse-x-control-plane")) > 0 && len(states()) == 2
	})
	if err := c.Node("worker").PowerOff(ctx); err != nil {
		t.Fatal(err)
	}
	off := time.Now()
	until("two looks at a node that is off, and two renewals of one that is on", func() bool {
		going := after(of("relapse-x-control-plane"), off)
		return len(after(of("relapse-x-worker"), off)) > 1 && len(states()) == 3 && len(going) > 1 && going[len(going)-1].Renewed.After(going[0].Renewed)
	})
	if got := states()[2]; got != "relapse-x-worker Unknown" {
		t.Errorf("what changed is %q", got)
	}
	still := after(of("relapse-x-worker"), off)
	for _, s := range still {
		if !s.Renewed.Equal(still[0].Renewed) || s.Renewed.After(off) || s.Seconds != clustertest.LeaseSeconds {
			t.Errorf("of a node that is off since %s: %+v", off, s)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func after(all []bundle.LeaseSample, t time.Time) []bundle.LeaseSample {
	return slices.DeleteFunc(all, func(s bundle.LeaseSample) bool { return s.Time.Before(t) })
}

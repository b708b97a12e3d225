package clustertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// network tests that a worker that is cut off doesn't reach the control plane, that it does again when the cut is
// mended or its time is over, and that a cut of one port leaves the others.
func (s suite) network(t *testing.T) {
	n := s.kubelet(t).Node()
	w := n.Abilities().Network
	var other cluster.Node
	for _, o := range s.c.Nodes() {
		if o.Role() == cluster.ControlPlane {
			other = o
		}
	}
	if other == nil {
		t.Fatal("there is no control plane")
	}
	row, _ := component.Of("kubelet")
	api, _ := component.Of("kube-apiserver")
	reaches := func(when string, port int, want bool) {
		t.Helper()
		var got bool
		var err error
		poll(
			t,
			func() bool { got, err = w.Reaches(t.Context(), other, port); return err == nil && got == want },
			func() any { return fmt.Sprintf("%s, port %d is reached: %v, %v", when, port, got, err) },
		)
	}
	reaches("at first", row.Port, true)
	if err := w.Mend(t.Context(), "conformance"); err != nil {
		t.Errorf("mending what was never cut: %v", err)
	}
	for _, c := range []struct {
		atMost time.Duration
		port   int
	}{{time.Minute, 0}, {time.Minute, row.Port}, {15 * time.Second, 0}} {
		for range 2 { // the second takes the place of the first
			if err := w.Cut(t.Context(), "conformance", []cluster.Peer{{Node: other, Port: c.port}}, c.atMost); err != nil {
				t.Fatal(err)
			}
		}
		reaches("cut off", row.Port, false)
		if c.port != 0 {
			reaches("with another port cut off", api.Port, true)
		}
		if c.atMost == time.Minute {
			if err := w.Mend(t.Context(), "conformance"); err != nil {
				t.Fatal(err)
			}
		}
		reaches("afterwards", row.Port, true)
	}
}

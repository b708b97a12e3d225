package conformance_test

import (
	"context"
	"testing"

	"github.com/kube-relapse/relapse/internal/clustertest"
)

func init() {
	faults.add(faultCase{lay: layStops}, "process")
}

// layStops calls the nodes' hooks before a kubelet is paused, resumed or looked at.
func layStops(_ *testing.T, w *world) sight {
	kubelet := func(n *criNode) *clustertest.Component { return w.Component(n.Name(), "kubelet") }
	for _, n := range w.nodes {
		kubelet(n).OnPause(func(ctx context.Context, what string) error {
			if what == "identity" {
				what = "probe"
			}
			return n.hooked(ctx, []string{"pause", what})
		})
	}
	return sight{armed: func(_ *testing.T, n *criNode) (ever int, armed []string) {
		ever, now := kubelet(n).Pauses()
		if now {
			armed = append(armed, "the kubelet is stopped")
		}
		return ever, armed
	}}
}

package conformance_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
)

func init() {
	faults.add(faultCase{lay: layPartitions}, "partition")
}

// kubeletPort is a port of every node.
const kubeletPort = 10250

// layPartitions calls the nodes' hooks before a node is cut off or mended, and before it looks whether it reaches
// another. The workers are to be cut off from the control plane.
func layPartitions(t *testing.T, w *world) sight {
	for _, n := range w.nodes {
		n.OnNetwork(func(ctx context.Context, what string) error {
			if ctx.Value(asked{}) != nil { // the suite's own look
				return nil
			}
			if what == "reach" {
				what = "probe"
			}
			return n.hooked(ctx, []string{"network", what})
		})
	}
	return sight{armed: cutsOf, inForce: func(t *testing.T, n *criNode) bool { return !reaches(t, n, w.Node("control-plane")) }}
}

// asked marks what the suite itself asks.
type asked struct{}

func reaches(t *testing.T, n *criNode, other cluster.Node) bool {
	t.Helper()
	yes, err := n.Reaches(context.WithValue(t.Context(), asked{}, true), other, kubeletPort)
	if err != nil {
		t.Error(err)
	}
	return yes
}

// cutsOf counts how often a node was cut off, and lists what is in force.
func cutsOf(_ *testing.T, n *criNode) (ever int, armed []string) {
	ever, now := n.Cuts()
	if now > 0 {
		armed = append(armed, fmt.Sprintf("%d cuts", now))
	}
	return ever, armed
}

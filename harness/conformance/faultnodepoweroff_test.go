package conformance_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

func init() {
	faults.add(faultCase{lay: layPower, forever: "nothing runs in a node that is off"}, "nodePowerOff")
}

// layPower calls the nodes' hooks before a node is switched, and before its Lease is read, which shows the loss of a
// node.
func layPower(_ *testing.T, w *world) sight {
	for _, n := range w.nodes {
		n.OnPower(func(ctx context.Context, _ bool) error { return n.hooked(ctx, []string{"power", "switch"}) })
	}
	w.API().Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		for _, n := range w.nodes {
			if strings.HasSuffix(r.URL.Path, "/leases/"+n.Name()) && n.hooked(r.Context(), []string{"lease", "probe"}) != nil {
				panic(http.ErrAbortHandler)
			}
		}
		return false
	})
	return sight{armed: powerArmed, inForce: powerless}
}

// powerArmed counts how often a node was off, and lists the node while it is.
func powerArmed(t *testing.T, n *criNode) (ever int, armed []string) {
	if _, err := n.Booted(t.Context()); err != nil {
		armed = append(armed, err.Error())
	}
	return n.Offs(), armed
}

func powerless(t *testing.T, n *criNode) bool {
	_, err := n.Exec(t.Context(), nil, "echo")
	return err != nil
}

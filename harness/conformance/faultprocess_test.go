package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

func init() {
	faults.add(faultCase{name: "stop", lay: layStops}, "process")
	for _, action := range []string{"kill", "restart"} {
		faults.add(faultCase{name: action, lay: layEnds, forever: "a process that has ended stays so",
			spec: fmt.Sprintf(`{"action":%q,"component":"kubelet","ready":"3s"}`, action)}, "process")
	}
	faults.add(faultCase{name: "replace", lay: layEnds, again: runFirst, forever: "a process that has ended stays so",
		spec: `{"action":"replace","component":"kubelet","ready":"3s"}`}, "process")
	faults.add(faultCase{name: "flags", lay: layFlags, forever: "nothing in the node knows that they are to go",
		spec: `{"action":"restart","component":"kubelet","ready":"3s","flags":{"v":4}}`}, "process")
}

// hookKubelets calls the nodes' hooks before anything is done to a kubelet, and before it is looked at.
func hookKubelets(w *world) (kubelet func(*criNode) *clustertest.Component) {
	kubelet = func(n *criNode) *clustertest.Component { return w.Component(n.Name(), "kubelet") }
	for _, n := range w.nodes {
		kubelet(n).OnAct(func(ctx context.Context, what string) error {
			if what == "identity" {
				what = "probe"
			}
			return n.hooked(ctx, []string{"kubelet", what})
		})
	}
	return kubelet
}

func layStops(_ *testing.T, w *world) sight {
	kubelet := hookKubelets(w)
	return sight{armed: func(_ *testing.T, n *criNode) (ever int, armed []string) {
		ever, now := kubelet(n).Pauses()
		if now {
			armed = append(armed, "the kubelet is stopped")
		}
		return ever, armed
	}}
}

// layEnds lets a kubelet that was started again answer only when it is asked for the second time. Until then its end
// shows.
func layEnds(_ *testing.T, w *world) sight {
	kubelet := hookKubelets(w)
	ready := map[string]*atomic.Int64{}
	for _, n := range w.nodes {
		k, asked := kubelet(n), new(atomic.Int64)
		answers := new(atomic.Int64) // the start since which it answers
		ready[n.Name()] = answers
		k.Answer("/healthz", func(string) ([]byte, error) {
			start := int64(k.Starts())
			if asked.Swap(start) != start && answers.Load() != start {
				return nil, errors.New("503 starting")
			}
			answers.Store(start)
			return []byte("ok"), nil
		})
	}
	return sight{armed: func(_ *testing.T, n *criNode) (ever int, armed []string) {
		ever = kubelet(n).Starts()
		if int64(ever) != ready[n.Name()].Load() {
			armed = append(armed, "the kubelet has not answered since it ended")
		}
		return ever, armed
	}}
}

// runFirst has each kubelet run the first build, and answer.
func runFirst(t *testing.T, w *world) {
	t.Helper()
	for _, n := range w.nodes {
		k := w.Component(n.Name(), "kubelet")
		if err := errors.Join(n.Install(t.Context(), "kubelet", w.builds[0].Path), k.Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, _ = k.Get(t.Context(), "/healthz") // the first is refused
		}
	}
}

func layFlags(_ *testing.T, w *world) sight {
	kubelet := hookKubelets(w)
	return sight{armed: func(t *testing.T, n *criNode) (ever int, armed []string) {
		args, err := kubelet(n).Arguments(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if cluster.HasFlags(args, map[string]string{"v": "4"}) {
			armed = append(armed, "the kubelet runs with --v=4")
		}
		return kubelet(n).Starts(), armed
	}}
}

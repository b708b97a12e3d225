package loads_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// deleting has the API server's profile show a worker in a delete in so many calls, beside one call that is in its
// list.
func (w *world) deleting(n *atomic.Int64) {
	const store = "k8s.io/apiserver/pkg/registry/generic/registry.(*Store)."
	w.Components("kube-apiserver")[0].(*clustertest.Component).Answer("/debug/pprof/goroutine", func(string) ([]byte, error) {
		return fmt.Appendf(nil, "goroutine profile: total %d\n%d @ 0x1 0x2\n#\t0x1\t%sDelete+0x1\t/store.go:1\n#\t0x2\t%sDeleteCollection.func2+0x1\t/store.go:2\n\n"+
			"1 @ 0x3 0x4\n#\t0x3\t%sList+0x1\t/store.go:3\n#\t0x4\t%sDeleteCollection+0x1\t/store.go:4\n\n", n.Load()+1, n.Load(), store, store, store, store), nil
	})
}

// One call's deletions say nothing of the others' lists: the API server is asked for those.
func TestRoundBeginsWhenEveryCallDeletes(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(t *testing.T, w *world, n *atomic.Int64)
		says string
	}{
		{"all of them", func(_ *testing.T, _ *world, n *atomic.Int64) { n.Store(4) }, "with a worker deleting in 4 of 4 calls"},
		{"a quarter is gone", func(t *testing.T, w *world, _ *atomic.Int64) { w.remove(t, "relapse-deletions-1", 10) }, "with a worker deleting in 3 of 4 calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			var n atomic.Int64
			n.Store(3)
			w.deleting(&n)
			l := w.prepare(t, `{"items":40,"calls":4,"begun":3}`)
			g := w.hold(timeout)
			done, _ := w.start(t, l)
			for range 4 {
				controltest.Soon(t, "the next call", g.arrived)
			}
			w.remove(t, "relapse-deletions-1", 3)
			w.silent(t, "with one call in its list")
			c.then(t, w, &n)
			w.wants(t, "1 began")
			close(g.open)
			ends(t, done)
			if !strings.Contains(w.events(), c.says) {
				t.Errorf("no event with %q in:\n%s", c.says, w.events())
			}
		})
	}
}

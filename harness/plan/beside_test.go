package plan_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
)

func TestNodesAtOnce(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		cores int
		free  int64
		want  int
	}{{8, 64 * gib, 8}, {8, 9 * gib, 4}, {8, 1 * gib, 1}, {8, 0, 8}, {0, 0, 1}} {
		if got := plan.NodesAtOnce(c.cores, c.free); got != c.want {
			t.Errorf("%d cores and %d bytes: %d nodes, want %d", c.cores, c.free, got, c.want)
		}
	}
}

package verdict

import (
	"bufio"
	"encoding/json"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/plan"
)

// neverReady reports that the cell's node was watched through its steady state and never seen Ready, while another arm's was.
func neverReady(v bundle.View, t plan.Trial, c plan.Cell) bool {
	ready, watched := nodeReady(v, c.Name)
	if ready || !watched {
		return false
	}
	return slices.ContainsFunc(t.Cells, func(o plan.Cell) bool {
		there, _ := nodeReady(v, o.Name)
		return o.Name != c.Name && there
	})
}

// nodeReady says whether a cell's node was ever seen Ready, and whether its conditions were followed through the steady state.
func nodeReady(v bundle.View, cell string) (ready, watched bool) {
	steady, begun := v.Phase(cell, check.Steady)
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Nodes, Cell: cell}) {
		r, err := v.Open(a)
		if err != nil {
			return false, false
		}
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var s bundle.NodeStatus
			if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
				r.Close()
				return false, false
			}
			ready = ready || s.Status == "True"
		}
		err = lines.Err()
		r.Close()
		if err != nil {
			return false, false
		}
		watched = watched || begun && !steady.End.IsZero() && a.Coverage.Covers(steady.Start, steady.End, 15*time.Second)
	}
	return ready, watched
}

package goroutines

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// collected is what the dumps of a window show.
type collected struct {
	question.Captured
	with     int                  // how many dumps show enough such goroutines
	short    bool                 // some dump shows such goroutines, but too few that are known to have waited long enough
	row      time.Duration        // the longest stretch between dumps in a row that all show enough
	watched  time.Duration        // from the first dump to the last
	stack    string               // of such a goroutine in the last dump that shows enough
	ended    *bundle.EndedByFault // with Persist or Span: the process's last planned end between two of the dumps
	endPaths []string             // where the ends were recorded
	unread   error                // why not all ends are known
	same     []uint64             // with Same: the ids that all dumps so far show, or with Span all dumps of the row
}

func (c *Goroutines) collect(q *question.Question) (r collected) {
	var first, rowBegan time.Time
	var ends []bundle.EndedByFault
	if c.Persist || c.Span != "" {
		ends, r.endPaths, r.unread = question.Ends(q.View, q.Arm)
	}
	r.Each(q, bundle.Goroutines2, "dump", func(a bundle.Artifact) error {
		d, err := question.ReadDump(q.View, a)
		if err != nil {
			return err
		}
		for i, e := range ends {
			if !first.IsZero() && e.Time.After(r.Last) && !e.Time.After(a.Time) {
				r.ended, rowBegan = &ends[i], time.Time{}
			}
		}
		showing := slices.DeleteFunc(d.Find(c.match()), c.leavesOut)
		n := 0
		var ids []uint64
		for _, g := range showing {
			n += c.waited(g)
			ids = append(ids, g.IDs...)
		}
		if c.Same {
			row := slices.Clone(ids)
			if !first.IsZero() && (c.Persist || !rowBegan.IsZero()) {
				row = slices.DeleteFunc(
					row,
					func(id uint64) bool { return !slices.Contains(r.same, id) },
				)
			}
			if c.Span != "" && len(row) < c.Count { // these goroutines begin a new row
				row, rowBegan = ids, time.Time{}
			}
			r.same, n = row, len(row)
		}
		r.short = r.short || n < c.Count && len(showing) > 0 && c.Waited != ""
		if d.Truncated && n < c.Count {
			return question.CutShort(a)
		}
		if first.IsZero() {
			first = a.Time
		}
		r.watched = a.Time.Sub(first)
		if n < c.Count {
			rowBegan = time.Time{}
			if len(showing) > 0 && c.Same {
				r.Notes = append(
					r.Notes,
					fmt.Sprintf(
						"%s: %d of those there are the same as before",
						question.Clock(a.Time),
						n,
					),
				)
			} else if near := c.near(d); len(near) > 0 {
				what := "in that function"
				if c.Func == "" {
					what = "of that creator"
				}
				r.Notes = append(r.Notes,
					fmt.Sprintf("%s: %s, but [%s] in %s", question.Clock(a.Time), what, near[0].State, near[0].Top()))
			}
			return nil
		}
		r.with++
		r.stack = showing[0].Text()
		if rowBegan.IsZero() {
			rowBegan = a.Time
		}
		r.row = max(r.row, a.Time.Sub(rowBegan))
		return nil
	})
	return r
}

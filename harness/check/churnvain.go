package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

// vain wants no write in all of a phase that changed nothing but what a loop changes, or nothing at all. A write that somebody had reason for changes
// more, so the world need not stand still, and a loop shows however slow it is. The record has to cover the whole phase for that.
func (c *Churn) vain(q *question, of []*recorded, doubt string) Finding {
	by, there := writes(of, c.Resource, c.Name, q.window)
	meant := matchers(c.NoneOnly)
	n := 0
	var vain []written
	for _, all := range by {
		n += len(all)
		for _, x := range all {
			if x.typ == churn.Modified && x.compared && allMatch(meant, x.paths) {
				vain = append(vain, x)
			}
		}
	}
	slices.SortStableFunc(vain, func(a, b written) int { return a.at.Compare(b.at) })
	q.Met, q.Seen = Of(len(vain) == 0), fmt.Sprintf("%d of %d writes in %s changed nothing else", len(vain), n, span(q.window))
	if len(vain) > 0 { // what was seen stands, whatever may be missing beside it
		q.Seen += ", the first at " + clock(vain[0].at)
		q.Differs, q.Detail = few(groups(vain)), exampleOf(of, vain)
		return q.Finding
	}
	if doubt = cmp.Or(doubt, uncovered(of, q.window, 0)); doubt != "" {
		return q.unknown(q.Seen + "; " + doubt)
	}
	if len(there) == 0 && n == 0 {
		return q.unknown(c.nothingThere(q))
	}
	return q.Finding
}

// beyond is which part of a window lies further than limit after the last write, or after the window's beginning.
func beyond(times []time.Time, w bundle.Window, limit time.Duration) float64 {
	last, sum := w.Start, time.Duration(0)
	for _, t := range append(slices.Clone(times), w.End) {
		sum += max(0, t.Sub(last)-limit)
		last = t
	}
	return float64(sum) / float64(length(w))
}

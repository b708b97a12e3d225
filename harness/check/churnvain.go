package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

// validateVain refuses what has no say where every write of a phase is asked what it changed.
func (c *Churn) validateVain() error {
	var errs []error
	if c.None || len(c.Only) > 0 || c.By != "" {
		errs = append(errs, errors.New("noneOnly stands alone (want none of none, only and by)"))
	}
	if slices.Contains(c.NoneOnly, "") {
		errs = append(errs, fmt.Errorf("noneOnly is %q (want the paths that a loop changes)", c.NoneOnly))
	}
	return errors.Join(errs...)
}

// vain wants no write in all of a phase that changed nothing but what a loop changes, or nothing at all. A write that somebody had reason for changes
// more, so the world need not stand still, and a loop shows however slow it is; the record has to cover the whole phase, though.
func (c *Churn) vain(of []*recorded, doubt string, w bundle.Window, wanted string) Finding {
	evidence := pathsOf(of)
	by, there := c.writes(of, w)
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
	f := Finding{Met: Of(len(vain) == 0), Wanted: wanted, Evidence: evidence,
		Seen: fmt.Sprintf("%d of %d writes in %s changed nothing else", len(vain), n, span(w))}
	if len(vain) > 0 { // what was seen stands, whatever may be missing beside it
		f.Seen += ", the first at " + clock(vain[0].at)
		f.Differs, f.Detail = few(groups(vain)), exampleOf(of, vain)
		return f
	}
	if ok, gap := covering(of, w); !ok || doubt != "" {
		return unknown(wanted, f.Seen+"; "+cmp.Or(doubt, gap), evidence)
	}
	if len(there) == 0 && n == 0 {
		return unknown(wanted, fmt.Sprintf("there was no %s to be written in %s", c.Resource, span(w)), evidence)
	}
	return f
}

// beyond is which part of a window lies further than limit after the write before, or after the window's beginning.
func beyond(times []time.Time, w bundle.Window, limit time.Duration) float64 {
	last, sum := w.Start, time.Duration(0)
	for _, t := range append(slices.Clone(times), w.End) {
		sum += max(0, t.Sub(last)-limit)
		last = t
	}
	return float64(sum) / float64(w.End.Sub(w.Start))
}

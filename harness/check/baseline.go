package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// baseline is the whole baseline, to compare the window with; why says that there is none.
func (q *question) baseline() (w bundle.Window, why string) {
	w, ok := q.view.Phase(q.arm, Baseline)
	if !ok || w.End.IsZero() {
		return w, "the baseline, which it is compared with, has not ended"
	}
	return w, ""
}

// taken are the snapshots of one window: how they were read, and what each shows.
type taken[T any] struct {
	captured
	in []T
}

// against has answer compare the snapshots of the whole baseline with the last of the window's, need of them, which one
// process must have made. Where they don't answer, the finding says why.
func against[T any](q *question, noun string, need int, lastAfter string, in func(*question) taken[T],
	answer func(before, last []T) Truth) Finding {
	base, why := q.baseline()
	if why != "" {
		return q.unknown(why)
	}
	was, now := in(q.over(base)), in(q)
	q.Evidence, q.Differs = slices.Concat(was.paths, now.paths), firstAndLast(slices.Concat(was.notes, now.notes))
	q.Seen = fmt.Sprintf("%d %s, and %d of the baseline", len(now.in), noun, len(was.in))
	doubt := cmp.Or(now.missing, was.missing, q.over(bundle.Window{Start: base.Start, End: q.window.End}).restarted())
	switch {
	case doubt != "":
		q.Seen += "; " + doubt
	case len(was.in) == 0:
		q.Seen += ": nothing to compare with"
	case len(now.in) < need || !q.reached(lastAfter, now.last):
		q.Seen += q.lastAt(now.last) + ": too few to answer by"
	default:
		q.Met = answer(was.in, now.in[len(now.in)-need:])
	}
	if q.Met == False && len(was.notes) > 0 { // the one that failed may have shown that it was there before
		q.Met, q.Seen = Unknown, q.Seen+"; one of the baseline is missing"
	}
	return q.Finding
}

// lasting is by how much each key counts for more in every one of the last looks than in any look before, which
// leaves out what comes and goes.
func lasting[L any, K comparable](before, last []L, counts func(L) map[K]int64) map[K]int64 {
	out := counts(last[0])
	for _, l := range last[1:] {
		now := counts(l)
		for k := range out {
			out[k] = min(out[k], now[k])
		}
	}
	most := map[K]int64{}
	for _, l := range before {
		for k, n := range counts(l) {
			most[k] = max(most[k], n)
		}
	}
	for k := range out {
		out[k] -= most[k]
	}
	return out
}

package question

import (
	"cmp"
	"slices"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Baseline returns the window of the arm's whole baseline. If the baseline never began or has not ended, doubt says
// that there is nothing to compare with.
func (q *Question) Baseline() (w bundle.Window, doubt error) {
	w, ok := q.View.Phase(q.Arm, check.Baseline)
	if !ok || w.End.IsZero() {
		return w, check.Doubt(
			check.NoPhase,
			"the baseline, which it is compared with, has not ended",
		)
	}
	return w, nil
}

// Snapshots holds the snapshots of one window: how reading them went, and what each of them shows.
type Snapshots[T any] struct {
	Captured
	In []T
}

// CompareWithBaseline returns the finding of answer, which compares all snapshots of the baseline with the last need
// snapshots of the window. The finding is unknown and says why if a snapshot can't be read, if the subject restarted in
// between, if there are too few snapshots, or if the last is earlier than lastAfter. noun names the snapshots in the
// finding; read reads those of a question's window.
func CompareWithBaseline[T any](
	q *Question,
	noun string,
	need int,
	lastAfter string,
	read func(*Question) Snapshots[T],
	answer func(before, last []T) check.Truth,
) check.Finding {
	base, doubt := q.Baseline()
	if doubt != nil {
		return q.Unknown(doubt)
	}
	was, now := read(q.Over(base)), read(q)
	q.Evidence, q.Differs = slices.Concat(was.Paths, now.Paths), FirstAndLast(slices.Concat(was.Notes, now.Notes))
	q.Say("%d %s, and %d of the baseline", N(noun, len(now.In)), noun, N(noun+"InBaseline", len(was.In)))
	doubt = cmp.Or(now.Missing, was.Missing, q.Over(bundle.Window{Start: base.Start, End: q.Window.End}).Restarted())
	switch {
	case doubt != nil:
		q.Doubt(doubt)
	case len(was.In) == 0:
		q.DoubtBy(check.TooFew, ": nothing to compare with")
	case len(now.In) < need || !q.Reached(lastAfter, now.Last):
		q.DoubtBy(check.TooFew, "%s: too few to answer by", q.LastAt(now.Last))
	default:
		q.Decide(answer(was.In, now.In[len(now.In)-need:]))
	}
	if q.Met == check.False && len(was.Notes) > 0 { // a failed snapshot of the baseline might have shown the same
		q.DoubtBy(check.Unreadable, "; one of the baseline is missing")
	}
	return q.Finding
}

// LastingGrowth returns by how much the smallest count of each key in last exceeds the largest count in before; the
// difference may be negative. A key that comes and goes has not grown for good.
func LastingGrowth[L any, K comparable](
	before, last []L,
	counts func(L) map[K]int64,
) map[K]int64 {
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

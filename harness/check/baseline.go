package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// baseline returns the window of the arm's whole baseline. If the baseline never began or has not ended, why says that
// there is nothing to compare with.
func (q *question) baseline() (w bundle.Window, why string) {
	w, ok := q.view.Phase(q.arm, Baseline)
	if !ok || w.End.IsZero() {
		return w, "the baseline, which it is compared with, has not ended"
	}
	return w, ""
}

// taken holds the snapshots of one window: how reading them went, and what each of them shows.
type taken[T any] struct {
	captured
	in []T
}

// against returns the finding of answer, which compares all snapshots of the baseline with the last need snapshots of
// the window. The finding is unknown and says why if a snapshot can't be read, if the subject restarted in between, if
// there are too few snapshots, or if the last is earlier than lastAfter.
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
	if q.Met == False && len(was.notes) > 0 { // a failed snapshot of the baseline might have shown the same
		q.Met, q.Seen = Unknown, q.Seen+"; one of the baseline is missing"
	}
	return q.Finding
}

// lasting returns by how much the smallest count of each key in last exceeds the largest count in before; the
// difference may be negative. A key that comes and goes has no lasting excess.
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

package check

import "github.com/kube-relapse/relapse/harness/evidence/bundle"

// baseline is the whole baseline, to compare the window with; why says that there is none.
func (q *question) baseline() (w bundle.Window, why string) {
	w, ok := q.view.Phase(q.cell, Baseline)
	if !ok || w.End.IsZero() {
		return w, "the baseline, which it is compared with, has not ended"
	}
	return w, ""
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

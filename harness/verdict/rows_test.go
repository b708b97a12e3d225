package verdict

import "testing"

// What to do next is part of each row that is Inconclusive, so that a new one can't be without.
func TestEachInconclusiveRowHasANextStep(t *testing.T) {
	for _, r := range table {
		if got := r.next != nil; got != (r.outcome == Inconclusive) {
			t.Errorf("%s, %q: it has a next step: %t", r.outcome, r.reason(Inputs{}), got)
		}
	}
}

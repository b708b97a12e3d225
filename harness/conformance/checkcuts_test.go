package conformance_test

import (
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	checks.add(checkCase{evidence: cutShort}, "answers", "callsCutShort", "emptiedAsAnswered")
}

// cutShort records a load of the fault phase whose calls were cut short.
func cutShort(t *testing.T, s *staged) {
	t.Helper()
	sum := bundle.Load{Name: "deletes", Objects: 1000, Codes: map[string]int{"504": 20}, Rounds: []bundle.LoadRound{{
		Round: 1, Start: time.Now(), Calls: 20, Cut: &bundle.CutCalls{Open: 20, Deleting: 20, Failed: 20, Left: new(919)},
	}}}
	calls, err := s.w.Stream(bundle.Meta{Kind: bundle.Calls, Arm: arm}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := calls.JSON(bundle.Call{Load: "deletes", Round: 1, Time: time.Now(), Done: time.Now(), Verb: "DELETECOLLECTION", Code: 504}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.w.WriteJSON(bundle.Meta{Kind: bundle.LoadSummary, Arm: arm}, sum); err != nil {
		t.Fatal(err)
	}
}

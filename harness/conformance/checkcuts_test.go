package conformance_test

import (
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	checks.add(checkCase{evidence: cutShort}, "loadCalls", "callsCutShort", "emptiedAsAnswered")
}

// cutShort records a load of the fault phase whose calls were cut short.
func cutShort(t *testing.T, s *staged) {
	t.Helper()
	sum := bundle.Load{Name: "deletes", Objects: 1000, Codes: map[string]int{"504": 20}, Rounds: []bundle.LoadRound{{
		Round: 1, Start: time.Now(), Calls: 20, Cut: &bundle.CutCalls{Open: 20, Deleting: 20, Failed: 20, Left: new(919)},
	}}}
	if _, err := s.w.WriteJSON(bundle.Meta{Kind: bundle.LoadSummary, Arm: arm}, sum); err != nil {
		t.Fatal(err)
	}
}

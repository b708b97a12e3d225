package kinds_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestAllocShare(t *testing.T) {
	const like = `{"under":["net.interfaceAddrTable"],"above":"50%","atLeast":"500M"}`
	of := func(below, elsewhere float64) func(*checktest.Trial) {
		return func(tr *checktest.Trial) { tr.Phases(); tr.Allocs(120, below, elsewhere) }
	}
	one := checktest.Times(1, bundle.Heap)
	checktest.Run(t, []checktest.Question{
		{Name: "most of much", Spec: like, Fill: of(600, 200), Met: check.True, Evidence: one, Seen: "75% of"},
		{Name: "most of little", Spec: like, Fill: of(6, 2), Met: check.False, Evidence: one, Seen: "75% of"},
		{Name: "half", Spec: like, Fill: of(600, 600), Met: check.False, Evidence: one, Seen: "50% of"},
		{Name: "no profile", Spec: like, Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Code: check.NotRecorded, Seen: "0 profiles"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "allocShare", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
	})
	checktest.Refused(t, "allocShare", `{"under":["f"],"above":"50%","atLeast":"much"}`, `atLeast is "much" (want bytes above 0`)
	checktest.Refused(t, "allocShare", `{"under":[""],"above":"50%","atLeast":"1M"}`, "under is [")
}

package kinds_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// What a subject has its children do is its own work.
func TestChildrenCount(t *testing.T) {
	fill := func(child float64) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			checktest.Looks(0.002, 0.004, func(one *bundle.IdentitySample, s float64) { one.ChildSeconds = child * max(0, s-checktest.FaultAt) })(tr)
			tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), checktest.Syncs, 0, 400, func(s float64) float64 { return s })
		}
	}
	const rate, cost = `{"atMost":0.1}`, `{"of":"cpu","counter":"syncs_count","units":5,"below":"150ms"}`
	both := []bundle.Kind{bundle.Identity, bundle.MetricSamples}
	checktest.Run(t, []checktest.Question{
		{Name: "at rest", Kind: "processCPU", Spec: rate, Fill: fill(0), Met: check.True, Evidence: []bundle.Kind{bundle.Identity, bundle.Host}, Seen: "0.0032 a second"},
		{Name: "busy children", Kind: "processCPU", Spec: rate, Fill: fill(0.3), Met: check.False, Evidence: both[:1], Seen: "0.3032 a second"},
		{Name: "cheap", Kind: "costPerUnit", Spec: cost, Fill: fill(0), Met: check.True, Evidence: both, Seen: "s of CPU each"},
		{Name: "dear children", Kind: "costPerUnit", Spec: cost, Fill: fill(0.3), Met: check.False, Evidence: both, Seen: "0.306 s of CPU each"},
	}, func(q *checktest.Question) {
		q.Scope = check.Scope{Arm: checktest.Arm, Phase: check.Fault}
	})
}

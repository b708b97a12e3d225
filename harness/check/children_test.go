package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// What a subject has its children do is its own work.
func TestChildrenCount(t *testing.T) {
	fill := func(child float64) func(*trial) {
		return func(tr *trial) {
			looks(0.002, 0.004, func(one *bundle.IdentitySample, s float64) { one.ChildSeconds = child * max(0, s-faultAt) })(tr)
			tr.series(tr.stream(bundle.MetricSamples, arm), syncs, 0, 400, func(s float64) float64 { return s })
		}
	}
	const rate, cost = `{"atMost":0.1}`, `{"of":"cpu","counter":"syncs_count","units":5,"below":"150ms"}`
	both := []bundle.Kind{bundle.Identity, bundle.MetricSamples}
	run(t, []question{
		{name: "at rest", kind: "processCPU", spec: rate, fill: fill(0), met: check.True, evidence: []bundle.Kind{bundle.Identity, bundle.Host}, seen: "0.0032 a second"},
		{name: "busy children", kind: "processCPU", spec: rate, fill: fill(0.3), met: check.False, evidence: both[:1], seen: "0.3032 a second"},
		{name: "cheap", kind: "costPerUnit", spec: cost, fill: fill(0), met: check.True, evidence: both, seen: "s of CPU each"},
		{name: "dear children", kind: "costPerUnit", spec: cost, fill: fill(0.3), met: check.False, evidence: both, seen: "0.306 s of CPU each"},
	}, func(q *question) {
		q.scope = check.Scope{Arm: arm, Phase: check.Fault}
	})
}

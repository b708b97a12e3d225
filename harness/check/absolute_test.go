package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Of a subject that was busy already, many times the baseline is more than there is.
func TestALimitThatDoesNotDependOnTheBaseline(t *testing.T) {
	loops := func(before, under float64) func(*trial) { return loaded(3, 1.5, looksOf(before, under, nil)) }
	const busy, rest = `{"timesBaseline":10,"floor":0.01,"above":0.25}`, `{"atMostTimesBaseline":8,"floor":0.01,"atMost":0.2}`
	one := []bundle.Kind{bundle.Identity}
	all := append([]bundle.Kind{bundle.Identity}, bundle.Host)
	const capped = "times the baseline's 0.14; 0.25 a second is less than so many times"
	run(t, []question{
		{name: "busy before, and a loop", spec: busy, fill: loops(0.14, 1), met: check.True, evidence: one, seen: capped,
			wanted: "at least 10 times as fast as in the baseline (counted as 0.01 a second at least), or by more than 0.25 a second"},
		{name: "busy before, and as busy", spec: busy, fill: loops(0.14, 0.15), met: check.False, evidence: all, seen: capped, wanted: "or by more than"},
		{name: "busy before, and a loop, is not at rest", spec: rest, fill: loops(0.14, 1), met: check.False, evidence: one,
			seen: "0.2 a second is less than so many times", wanted: "at most 8 times as fast as in the baseline (counted as 0.01 a second at least), and by at most 0.2 a second"},
		{name: "busy before, and as busy, is at rest", spec: rest, fill: loops(0.14, 0.15), met: check.True, evidence: all, seen: "less than so many times", wanted: "and by at most"},
		{name: "at rest before, so the baseline decides", spec: rest, fill: loops(0.002, 0.19), met: check.False, evidence: one, seen: "(counted as 0.01)", wanted: "and by at most"},
	}, func(q *question) {
		q.kind, q.scope = "processCPU", check.Scope{Arm: arm, Phase: check.Fault}
	})
	for spec, want := range map[string]string{
		`{"timesBaseline":10,"floor":0.01}`:                     "timesBaseline stands alone (want above beside it: the rate that is too much whatever the baseline was)",
		`{"atMostTimesBaseline":8,"floor":0.01}`:                "atMostTimesBaseline stands alone (want atMost beside it: the rate that is too much whatever the baseline was)",
		`{"timesBaseline":10,"floor":0.01,"above":-1}`:          "above is -1 (want 0 or more)",
		`{"atMostTimesBaseline":8,"floor":0.01,"above":0.2}`:    "2 limits are given",
		`{"timesBaseline":8,"atMostTimesBaseline":8,"floor":1}`: "2 limits are given",
	} {
		refused(t, "processCPU", spec, want)
	}
	// A bundle's own plan is asked as its version asked it.
	for spec, want := range map[string]check.Truth{`{"timesBaseline":10,"floor":0.01}`: check.True, `{"atMostTimesBaseline":8,"floor":0.01}`: check.False} {
		if f := asOlder(t, "processCPU", spec, loops(0.002, 1)); f.Met != want {
			t.Errorf("%s of an earlier version is %s: %s", spec, f.Met, f.Seen)
		}
	}
}

package metrics_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// Of a subject that was busy already, many times the baseline is more than there is.
func TestALimitThatDoesNotDependOnTheBaseline(t *testing.T) {
	loops := func(before, under float64) func(*checktest.Trial) {
		return checktest.OnHost(3, 1.5, checktest.LooksOf(before, under, nil))
	}
	const busy, rest = `{"timesBaseline":10,"floor":0.01,"above":0.25}`, `{"atMostTimesBaseline":8,"floor":0.01,"atMost":0.2}`
	one := []bundle.Kind{bundle.Identity}
	all := append([]bundle.Kind{bundle.Identity}, bundle.Host)
	const capped = "times the baseline's 0.14; 0.25 a second is less than so many times"
	checktest.Run(t, []checktest.Question{
		{Name: "busy before, and a loop", Spec: busy, Fill: loops(0.14, 1), Met: check.True, Evidence: one, Seen: capped,
			Wanted: "at least 10 times as fast as in the baseline (counted as 0.01 a second at least), or by more than 0.25 a second"},
		{Name: "busy before, and as busy", Spec: busy, Fill: loops(0.14, 0.15), Met: check.False, Evidence: all, Seen: capped, Wanted: "or by more than"},
		{Name: "busy before, and a loop, is not at rest", Spec: rest, Fill: loops(0.14, 1), Met: check.False, Evidence: one,
			Seen: "0.2 a second is less than so many times", Wanted: "at most 8 times as fast as in the baseline (counted as 0.01 a second at least), and by at most 0.2 a second"},
		{Name: "busy before, and as busy, is at rest", Spec: rest, Fill: loops(0.14, 0.15), Met: check.True, Evidence: all, Seen: "less than so many times", Wanted: "and by at most"},
		{Name: "at rest before, so the baseline decides", Spec: rest, Fill: loops(0.002, 0.19), Met: check.False, Evidence: one, Seen: "(counted as 0.01)", Wanted: "and by at most"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "processCPU", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
	})
	for spec, want := range map[string]string{
		`{"timesBaseline":10,"floor":0.01}`:                     "timesBaseline stands alone (want above beside it: the rate that is too much whatever the baseline was)",
		`{"atMostTimesBaseline":8,"floor":0.01}`:                "atMostTimesBaseline stands alone (want atMost beside it: the rate that is too much whatever the baseline was)",
		`{"timesBaseline":10,"floor":0.01,"above":-1}`:          "above is -1 (want 0 or more)",
		`{"atMostTimesBaseline":8,"floor":0.01,"above":0.2}`:    "2 limits are given",
		`{"timesBaseline":8,"atMostTimesBaseline":8,"floor":1}`: "2 limits are given",
	} {
		checktest.Refused(t, "processCPU", spec, want)
	}
	// A bundle's own plan is asked as its version asked it.
	for spec, want := range map[string]check.Truth{`{"timesBaseline":10,"floor":0.01}`: check.True, `{"atMostTimesBaseline":8,"floor":0.01}`: check.False} {
		if f := checktest.AsOlder(t, "processCPU", spec, loops(0.002, 1)); f.Met != want {
			t.Errorf("%s of an earlier version is %s: %s", spec, f.Met, f.Seen)
		}
	}
}

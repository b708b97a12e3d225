package judge_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// An incident that destroys its own evidence leaves trials without an answer: they count against the arm.
func TestTrialsWithoutAnAnswerCountAgainstTheJudgedArm(t *testing.T) {
	R, N, I := verdict.Reproduced, verdict.NotReproduced, verdict.Inconclusive
	twin := outcomes("modern", R, N, verdict.Broken) // of one binary with the fixed arm, so that nothing is known of it
	twin.Verdict = verdict.VerdictInconclusive
	alone := func(o verdict.Outcome) verdict.Trial {
		return verdict.Trial{Pair: "modern", Verdict: verdict.Verdict(o), Arms: []verdict.Arm{{Name: "fixed", Role: scenario.Fixed, Outcome: o, Expected: N}}}
	}
	for _, c := range []struct {
		name   string
		trials []verdict.Trial
		until  *plan.Until
		want   string // of the last arm
	}{
		{"a third of them", append(repeat(14, outcomes("modern", R, N)), repeat(7, outcomes("modern", R, I))...), nil,
			"0 of 21 with 21 of 21 in the control: 0 to 55 % (Wilson, 95 %); counted against it: 7 Inconclusive"},
		{"a third of them, whose controls had none either", append(repeat(14, outcomes("modern", R, N)), repeat(7, outcomes("modern", I, I))...), nil,
			"0 of 14 with 14 of 14 in the control: 0 to 22 % (Wilson, 95 %); not counted: 7 Inconclusive"},
		{"in an open-ended run", []verdict.Trial{outcomes("modern", R, N), outcomes("modern", R, I)}, rule(21),
			"0 of 2 with 2 of 2 in the control: 0 to 100 % (confidence sequence, 95 %); counted against it: 1 Inconclusive"},
		{"the arm by itself", append(repeat(4, alone(N)), alone(I)), nil, "0 of 5: 0 to 63 % (Wilson, 95 %); counted against it: 1 Inconclusive"},
		{"its twin did otherwise", []verdict.Trial{outcomes("modern", R, N, N), twin}, nil,
			"0 of 2 with 2 of 2 in the control: 0 to 91 % (Wilson, 95 %); counted against it: 1 Broken"},
	} {
		rates := judge.Rates(c.trials, c.until)
		if got := rates[len(rates)-1].Sentence; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

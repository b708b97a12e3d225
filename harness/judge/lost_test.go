package judge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// A trial that was made elsewhere and left no evidence is no sign of health, unless it was ended from outside.
func TestLostTrialsCountAgainstTheJudgedArm(t *testing.T) {
	trials := repeat(14, outcomes("modern", verdict.Reproduced, verdict.NotReproduced))
	for _, c := range []struct {
		name string
		lost bundle.LostTrial
		want string // of the fixed arm
	}{
		{"by itself", bundle.LostTrial{ID: "015", Pair: "modern"},
			"0 of 15 with 14 of 14 in the control: 0 to 30 % (Wilson, 95 %); counted against it: 1 without evidence"},
		{"ended from outside", bundle.LostTrial{ID: "015", Pair: "modern", Outside: true}, "0 of 14 with 14 of 14 in the control: 0 to 22 % (Wilson, 95 %)"},
		{"of another pair", bundle.LostTrial{ID: "015", Pair: "genuine"}, "0 of 14 with 14 of 14 in the control: 0 to 22 % (Wilson, 95 %)"},
	} {
		rates := judge.Rates(trials, nil, c.lost)
		if got := rates[1].Sentence; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := rates[0].N; got != 14 {
			t.Errorf("%s: the control counts %d trials, want 14", c.name, got)
		}
	}
}

// A lost trial ends its pair as undecided, whatever the trials before it came to: the incident may have destroyed it.
func TestALostTrialEndsItsPair(t *testing.T) {
	p := &plan.Plan{Until: rule(21), Trials: []plan.Trial{{Pair: "modern"}}}
	s := judge.NewSchedule(p)
	for i, one := range repeat(13, outcomes("modern", verdict.Reproduced, verdict.NotReproduced)) {
		one.ID = fmt.Sprintf("%03d", i+1)
		s.Judged(one)
	}
	if _, number, ok := s.Next(); !ok || number != 14 {
		t.Fatalf("trial %d comes next: %v", number, ok)
	}
	s.Lost(bundle.LostTrial{ID: "014", Pair: "modern", Outside: true})
	if _, _, ok := s.Next(); ok {
		t.Error("its trials go on")
	}
	e := s.Endings()[0]
	if want := "trial 014 left no evidence, so a rate below 20 % can't be shown any more"; e.Verdict != verdict.VerdictInconclusive || e.ExitCode != 3 || !strings.HasPrefix(e.Why, want) {
		t.Errorf("%s (exit %d), want Inconclusive: %q", e, e.ExitCode, want)
	}
}

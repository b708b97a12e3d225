package judge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// outcomes is a trial of a vulnerable and a fixed arm, and of a candidate if there is a third outcome.
func outcomes(pair string, of ...verdict.Outcome) verdict.Trial {
	t := verdict.Trial{Pair: pair}
	var lines []verdict.ArmOutcome
	for i, o := range of {
		role := []string{"vulnerable", "fixed", "candidate"}[i]
		expected := verdict.NotReproduced
		if i == 0 {
			expected = verdict.Reproduced
		}
		t.Arms = append(t.Arms, verdict.Arm{Name: role, Role: role, Pair: pair, Outcome: o, Expected: expected})
		lines = append(lines, verdict.ArmOutcome{Name: role, Role: role, Outcome: o, Expected: expected})
	}
	t.Verdict, t.Exit, t.Sentence, _ = verdict.Decide(lines)
	return t
}

func repeat(n int, t verdict.Trial) (out []verdict.Trial) {
	for range n {
		out = append(out, t)
	}
	return out
}

func TestRates(t *testing.T) {
	trials := repeat(20, outcomes("modern", verdict.Reproduced, verdict.NotReproduced))
	trials = append(trials, outcomes("modern", verdict.Reproduced, verdict.Broken), outcomes("modern", verdict.Inconclusive, verdict.Inconclusive))
	trials = append(trials, outcomes("genuine", verdict.NotReproduced, verdict.Reproduced))
	want := []judge.Rate{
		{Pair: "modern", Arm: "vulnerable", Role: "vulnerable", Outcome: "Reproduced", K: 21, N: 21, Others: map[string]int{"Inconclusive": 1},
			Confidence: 0.95, Method: "Wilson", Low: 0.8454, High: 1, Sentence: "21 of 21: 84 to 100 % (Wilson, 95 %); not counted: 1 Inconclusive"},
		{Pair: "modern", Arm: "fixed", Role: "fixed", Outcome: "Reproduced", N: 21, Against: map[string]int{"Broken": 1}, Others: map[string]int{"Inconclusive": 1},
			Confidence: 0.95, Method: "Wilson", High: 0.2267, Sentence: "0 of 21 with 21 of 21 in the control: 0 to 23 % (Wilson, 95 %); counted against it: 1 Broken; not counted: 1 Inconclusive"},
		{Pair: "genuine", Arm: "vulnerable", Role: "vulnerable", Outcome: "Reproduced", N: 1, Confidence: 0.95, Method: "Wilson", High: 0.7935, Sentence: "0 of 1: 0 to 80 % (Wilson, 95 %)"},
		{Pair: "genuine", Arm: "fixed", Role: "fixed", Outcome: "Reproduced", Others: map[string]int{"Reproduced in a trial that proves nothing": 1},
			Confidence: 0.95, Method: "Wilson", High: 1, Sentence: "0 of 0 with 0 of 1 in the control: 0 to 100 % (Wilson, 95 %); not counted: 1 Reproduced in a trial that proves nothing"},
	}
	if diff := cmp.Diff(want, judge.Rates(trials, nil), cmpopts.EquateApprox(0, 5e-5)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	open := judge.Rates(trials[:20], rule(30))
	for i, want := range []string{"20 of 20: 77 to 100 % (confidence sequence, 95 %)", "0 of 20 with 20 of 20 in the control: at most 14 % (Clopper-Pearson, one-sided, 95 %)"} {
		if got := open[i].Sentence; got != want {
			t.Errorf("open-ended: %q, want %q", got, want)
		}
	}
	shown := append(trials[:3:3], outcomes("modern", verdict.Reproduced, verdict.Reproduced))
	if got, want := judge.Rates(shown, rule(30))[1].Sentence, "1 of 4 with 4 of 4 in the control: it has it, and how often isn't said, as the first one ends the trials"; got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
}

func rule(most int) *plan.Until {
	return &plan.Until{Rule: "below-target", Confidence: 0.95, Target: 0.2, Max: most}
}

// until plays an open-ended run of which the n-th trial of each pair, counted from 1, has the outcomes that of says. It
// returns the pairs in their order and how they ended.
func until(t *testing.T, u *plan.Until, pairs []string, of func(pair string, n int) verdict.Trial) (turns []string, ends []judge.Ending) {
	t.Helper()
	p := &plan.Plan{Until: u}
	for _, pair := range pairs {
		p.Trials = append(p.Trials, plan.Trial{Pair: pair})
	}
	s := judge.NewSchedule(p)
	had := map[string]int{}
	for pair, number, ok := s.Next(); ok; pair, number, ok = s.Next() {
		if turns = append(turns, pair); number != len(turns) || number > 2*u.Max {
			t.Fatalf("trial %d is numbered %d", len(turns), number)
		}
		had[pair]++
		one := of(pair, had[pair])
		one.ID = fmt.Sprintf("%03d", number)
		s.Judged(one)
	}
	return turns, s.Endings()
}

func TestSchedule(t *testing.T) {
	turns, ends := until(t, rule(21), []string{"a", "b"}, func(pair string, n int) verdict.Trial {
		if pair == "b" && n == 3 {
			return outcomes(pair, verdict.Reproduced, verdict.Reproduced)
		}
		return outcomes(pair, verdict.Reproduced, verdict.NotReproduced)
	})
	if got, want := strings.Join(turns, ""), strings.Repeat("ab", 3)+strings.Repeat("a", 11); got != want {
		t.Errorf("the pairs came in the order %s, want %s", got, want)
	}
	if diff := cmp.Diff([]judge.Ending{
		{Pair: "a", Verdict: verdict.Validated, SetAside: []string{},
			Why: "fixed showed it in none of 14 trials that count: its rate is below 20 % (Clopper-Pearson, one-sided, 95 %), whenever one stops; vulnerable showed it in 14 of 14: at least 70 % (confidence sequence, 95 %)"},
		{Pair: "b", Verdict: verdict.StillVulnerable, ExitCode: 1, SetAside: []string{},
			Why: "fixed showed it in 1 of 3 trials that count, and one is proof that it has it; trial 006: fixed still shows the incident, while vulnerable is Reproduced"},
	}, ends); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What a run of one rule comes to, by what its trials come to. A trial is written as the outcomes of the vulnerable
// arm, the fixed one and the candidate.
func TestHowAnOpenEndedRunEnds(t *testing.T) {
	letters := map[rune]verdict.Outcome{'R': verdict.Reproduced, 'n': verdict.NotReproduced, '?': verdict.Inconclusive, 'B': verdict.Broken}
	for _, c := range []struct {
		name, trials string // further trials are Rnn
		want         verdict.Verdict
		exit, had    int
		aside        int
		says         string
	}{
		{"cured", "", verdict.Validated, 0, 14, 0, "candidate showed it in none of 14 trials that count: its rate is below 20 % (Clopper-Pearson, one-sided, 95 %), whenever one stops; " +
			"vulnerable showed it in 14 of 14: at least 70 % (confidence sequence, 95 %)"},
		{"the arms were told apart long ago, and it has it", "Rnn Rnn Rnn Rnn Rnn Rnn Rnn Rnn Rnn RnR", verdict.StillVulnerable, 1, 10, 0,
			"candidate showed it in 1 of 10 trials that count, and one is proof that it has it; trial 010: candidate still shows the incident"},
		{"no answer once", "Rnn Rn?", verdict.VerdictInconclusive, 3, 2, 0,
			"candidate gave no answer in 1 of 2 trials whose controls were as expected, which counts against it, as an incident may destroy its own evidence: a rate below 20 % can't be shown any more"},
		{"no answer once, and a control gave none either", "Rnn R??", verdict.Validated, 0, 15, 1, "vulnerable showed it in 15 of 15: at least 71 % (confidence sequence, 95 %); 1 set aside (limit 7)"},
		{"a control that gave no answer", "R?n ?nn", verdict.Validated, 0, 16, 2, "vulnerable showed it in 15 of 15: at least 71 % (confidence sequence, 95 %); 2 set aside (limit 7)"},
		{"a control that missed it", "nnn", verdict.Validated, 0, 15, 1, "vulnerable showed it in 14 of 15: at least 58 % (confidence sequence, 95 %); 1 set aside (limit 7)"},
		{"it showed it, and the control didn't", "nnR", verdict.VerdictInconclusive, 3, 15, 1,
			"candidate showed it in 1 of the trials that were set aside, beside a control that was not as expected: that is no proof, and it can't be called cured"},
		{"it showed it without a control, and then with one", "?nR Rnn RnR", verdict.StillVulnerable, 1, 3, 1, "candidate showed it in 1 of 2 trials that count"},
		{"it broke", "Rnn RnB", verdict.VerdictBroken, 1, 2, 0,
			"candidate failed in another way in 1 of 2 trials that count; trial 002: candidate doesn't show the incident and failed in another way"},
		{"it broke, and so did a control", "BnB", verdict.Validated, 0, 15, 1, "1 set aside (limit 7)"},
		{"hardly ever an answer of a control", strings.Repeat("R?n ", 8), verdict.VerdictInconclusive, 3, 8, 8,
			"a rate below 20 % can't be shown any more: 0 of 8 trials count, and 14 without the incident are needed; 8 set aside (limit 7); what was lacking stands with each trial"},
	} {
		t.Run(c.name, func(t *testing.T) {
			trials := strings.Fields(c.trials)
			turns, ends := until(t, rule(21), []string{"modern"}, func(pair string, n int) verdict.Trial {
				of := "Rnn"
				if n <= len(trials) {
					of = trials[n-1]
				}
				var list []verdict.Outcome
				for _, l := range of {
					list = append(list, letters[l])
				}
				return outcomes(pair, list...)
			})
			e := ends[0]
			if e.Verdict != c.want || e.ExitCode != c.exit || len(turns) != c.had || len(e.SetAside) != c.aside || !strings.Contains(e.Why, c.says) {
				t.Errorf("%d trials, %+v, want %d, %s (exit %d), %d set aside, saying %q", len(turns), e, c.had, c.want, c.exit, c.aside, c.says)
			}
		})
	}
}

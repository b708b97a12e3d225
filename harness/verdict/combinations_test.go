package verdict_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// everyTrial calls f with every trial of one to most arms: each has a role, an outcome, and one of two binaries or an
// unknown one.
func everyTrial(most int, f func([]verdict.ArmOutcome)) {
	var one []verdict.ArmOutcome
	for _, of := range []func(verdict.Outcome) verdict.ArmOutcome{vulnerable, fixed, candidate} {
		for _, o := range []verdict.Outcome{verdict.Reproduced, verdict.NotReproduced, verdict.Broken, verdict.Inconclusive, verdict.Error} {
			for _, digest := range []string{"", "aa", "bb"} {
				a := of(o)
				a.Digest = digest
				one = append(one, a)
			}
		}
	}
	var add func(arms []verdict.ArmOutcome)
	add = func(arms []verdict.ArmOutcome) {
		if len(arms) > 0 {
			f(arms)
		}
		if len(arms) == most {
			return
		}
		for _, a := range one {
			a.Name += fmt.Sprint(len(arms))
			add(append(arms[:len(arms):len(arms)], a))
		}
	}
	add(nil)
}

// wrongVerdict says what is wrong with the verdict over a trial, "" if nothing is.
func wrongVerdict(arms []verdict.ArmOutcome, v verdict.Verdict, exit int) string {
	has := func(role string, o verdict.Outcome) bool {
		for _, a := range arms {
			if a.Role == role && (o == "" || a.Outcome == o) {
				return true
			}
		}
		return false
	}
	judged := scenario.Fixed
	if has(scenario.Candidate, "") {
		judged = scenario.Candidate
	}
	bites, failed, cured := has(scenario.Vulnerable, verdict.Reproduced), false, true
	for _, a := range arms {
		failed = failed || a.Outcome == verdict.Error
		cured = cured && (a.Role != judged || a.Outcome == verdict.NotReproduced)
	}
	lone := len(arms) == 1 && judged != scenario.Candidate
	switch {
	case failed != (exit == verdict.ExitError):
		return "an arm is Error, and the exit code doesn't say it, or the other way round"
	case v == verdict.Validated && (exit != verdict.ExitOK || lone):
		return "Validated where it can't be, or not with exit code 0"
	case v == verdict.Validated && !bites:
		return "Validated, and no vulnerable arm is Reproduced"
	case v == verdict.Validated && !cured:
		return "Validated, and a judged arm is not NotReproduced"
	case exit == verdict.ExitOK && v != verdict.Validated && (!lone || arms[0].Outcome != arms[0].Expected):
		return "exit code 0 without Validated, and it is no lone arm with the expected outcome"
	case !failed && judged == scenario.Candidate && !bites && (v != verdict.VerdictInconclusive || exit != verdict.ExitInconclusive):
		return "a candidate without a vulnerable arm that is Reproduced, and it isn't Inconclusive"
	}
	return ""
}

func TestNoCombinationOfArmsIsValidatedWithoutTheIncident(t *testing.T) {
	wrong, first := map[string]int{}, map[string]string{}
	everyTrial(3, func(arms []verdict.ArmOutcome) {
		v, exit, sentence, next := verdict.Decide(arms)
		says := wrongVerdict(arms, v, exit)
		if says == "" && (next != "") != (v == verdict.VerdictInconclusive) {
			says = "a next step is for what is Inconclusive, and only for that"
		}
		if says == "" {
			return
		}
		if wrong[says]++; wrong[says] == 1 {
			first[says] = fmt.Sprintf("%+v: %s (exit %d): %s; next: %s", arms, v, exit, sentence, next)
		}
	})
	for says, n := range wrong {
		t.Errorf("%s: %d combinations, the first %s", says, n, first[says])
	}
}

func TestACandidateWithoutTheVulnerableArm(t *testing.T) {
	for _, arms := range [][]verdict.ArmOutcome{
		{candidate(verdict.NotReproduced)}, {candidate(verdict.Reproduced)}, {candidate(verdict.Broken)},
		{fixed(verdict.NotReproduced), candidate(verdict.NotReproduced)}, {fixed(verdict.Reproduced), candidate(verdict.Broken)},
	} {
		is := arms[len(arms)-1].Outcome
		v, exit, sentence, next := verdict.Decide(arms)
		want := fmt.Sprintf("candidate is %s, and no vulnerable arm was beside it, so nothing shows that the trial brings the incident back", is)
		if v != verdict.VerdictInconclusive || exit != verdict.ExitInconclusive || sentence != want || !strings.Contains(next, "with the vulnerable arm beside the candidate") {
			t.Errorf("%+v: %s (exit %d): %s; next: %s", arms, v, exit, sentence, next)
		}
	}
}

// wrongOutcome says what is wrong with the outcome of an arm, "" if nothing is.
func wrongOutcome(in verdict.Inputs, o verdict.Outcome) string {
	met := in.Steady == check.True && in.Baseline == check.False && in.Exposure == check.True
	identified := in.Binary == check.True && in.Process == check.True && !in.NeverReady
	switch {
	case o == verdict.NotReproduced && !(met && identified && in.Signature == check.False && in.Healed == check.True):
		return "NotReproduced with a doubt"
	case o == verdict.Reproduced && !(met && identified && in.Signature == check.True):
		return "Reproduced with a doubt"
	case o == verdict.Broken && in.Binary == check.False:
		return "Broken, and it was another program"
	case o == verdict.Broken && in.Process != check.False && !in.NeverReady && !(met && identified && in.Healed == check.False):
		return "Broken, and nothing shows that it failed"
	case o == verdict.Error:
		return "Error, and nothing of ours failed"
	}
	return ""
}

func TestNoCombinationOfInputsIsACureWithADoubt(t *testing.T) {
	all := []check.Truth{check.Unknown, check.False, check.True}
	counts := make([]int, 7)
	for n := range 3 * 3 * 3 * 3 * 3 * 3 * 3 * 2 {
		rest := n / 2
		for i := range counts {
			counts[i], rest = rest%3, rest/3
		}
		in := verdict.Inputs{Steady: all[counts[0]], Baseline: all[counts[1]], Exposure: all[counts[2]], Signature: all[counts[3]],
			Healed: all[counts[4]], Binary: all[counts[5]], Process: all[counts[6]], NeverReady: n%2 == 1}
		o, reason := verdict.OutcomeOf(in)
		if says := wrongOutcome(in, o); says != "" {
			t.Errorf("%+v is %s (%s): %s", in, o, reason, says)
		}
	}
}

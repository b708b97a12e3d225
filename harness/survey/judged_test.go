package survey_test

import (
	"path/filepath"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/survey"
	"github.com/kube-relapse/relapse/harness/verdict"
)

func arm(role string, outcome, expected verdict.Outcome) verdict.Arm {
	return verdict.Arm{Name: role, Role: role, Outcome: outcome, Expected: expected, Reason: "reason"}
}

// A release is good or bad only beside both controls: one that is missing says as little as one that was not as expected.
func TestARunSaysNothingWithoutBothControls(t *testing.T) {
	vulnerable := arm(scenario.Vulnerable, verdict.Reproduced, verdict.Reproduced)
	fixed := arm(scenario.Fixed, verdict.NotReproduced, verdict.NotReproduced)
	good := arm(scenario.Candidate, verdict.NotReproduced, verdict.NotReproduced)
	for _, c := range []struct {
		name     string
		arms     []verdict.Arm
		verdict  verdict.Verdict
		result   survey.Result
		controls bool
		why      string
	}{
		{"good", []verdict.Arm{vulnerable, fixed, good}, verdict.Validated, survey.Good, true, ""},
		{"bad", []verdict.Arm{vulnerable, fixed, arm(scenario.Candidate, verdict.Reproduced, verdict.NotReproduced)}, verdict.StillVulnerable, survey.Bad, true, ""},
		{"broken", []verdict.Arm{vulnerable, fixed, arm(scenario.Candidate, verdict.Broken, verdict.NotReproduced)}, verdict.VerdictBroken, survey.Broken, true, "reason"},
		{"no candidate", []verdict.Arm{vulnerable, fixed}, verdict.VerdictInconclusive, survey.Inconclusive, true, ""},
		{"no vulnerable arm", []verdict.Arm{fixed, good}, verdict.VerdictInconclusive, survey.Good, false, "sentence"},
		{"no fixed arm", []verdict.Arm{vulnerable, good}, verdict.VerdictInconclusive, survey.Good, false, "sentence"},
		{"the vulnerable arm survived", []verdict.Arm{arm(scenario.Vulnerable, verdict.NotReproduced, verdict.Reproduced), fixed, good}, verdict.VerdictInconclusive, survey.Good, false, "sentence"},
		{"equal binaries that differ", []verdict.Arm{vulnerable, fixed, good}, verdict.VerdictInconclusive, survey.Inconclusive, true, "sentence"},
		{"bad, and the verdict is another", []verdict.Arm{vulnerable, fixed, arm(scenario.Candidate, verdict.Reproduced, verdict.NotReproduced)},
			verdict.VerdictInconclusive, survey.Inconclusive, true, "sentence"},
		{"the harness failed", []verdict.Arm{vulnerable, fixed, arm(scenario.Candidate, verdict.Error, verdict.NotReproduced)},
			verdict.VerdictError, survey.Inconclusive, false, "sentence"},
		{"no arm at all", nil, verdict.VerdictInconclusive, survey.Inconclusive, false, "sentence"},
	} {
		got := survey.Judged("run", scenario.Candidate, judge.Verdict{Arms: c.arms, Verdict: c.verdict, Sentence: "sentence"})
		if got.Result != c.result || got.Controls != c.controls || got.Why != c.why {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// What left no bundle may have destroyed its own evidence. So it isn't run again until it comes out well.
func TestALostTrialIsTheReleasesOwn(t *testing.T) {
	v := judge.Verdict{Verdict: verdict.VerdictInconclusive, Sentence: "trial 001 left no bundle"}
	v.Index.Lost = []bundle.LostTrial{{ID: "001"}}
	got := survey.Judged("run", scenario.Candidate, v)
	if got.Result != survey.Inconclusive || !got.Lost || got.Why != v.Sentence {
		t.Errorf("%+v", got)
	}
	r := record([]survey.Branch{classified(branch(29, "A"))}, nil)
	r.Chosen = survey.Choose(r.Branches, 0, 1)
	s := &surveyor{run: func(string, int) (survey.Run, error) { return got, nil }}
	if err := r.Do(t.Context(), s.options(filepath.Join(t.TempDir(), "s.json"))); err != nil {
		t.Fatal(err)
	}
	if c := r.Rows()[0].Cells[0]; len(s.asked) != 1 || c.State != survey.IsUnclear || c.Why != "inconclusive: trial 001 left no bundle" {
		t.Errorf("asked %d times, %+v", len(s.asked), c)
	}
}

// Runs with other settings are another survey's.
func TestOnlyTheSameSurveyIsGoneOnWith(t *testing.T) {
	was := record([]survey.Branch{branch(29, "A")}, nil)
	is := *was
	if why := is.Fits(was); why != "" {
		t.Error(why)
	}
	is.Settings = []string{"watch=1m"}
	if why := is.Fits(was); why != `the settings was "" and is "watch=1m"` {
		t.Error(why)
	}
}

package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

func ground(list, name, is string) scenario.Ground {
	return scenario.Ground{Check: name, Is: is, List: list, Name: name}
}

// withLeak is a trial with a candidate that is Broken, as it isn't well.
func withLeak() *trial {
	tr := newTrial()
	tr.third = newArm("leaks", scenario.Candidate, strings.Repeat("c", 64), "goroutine 9 [select]", "ill", "NotReproduced")
	tr.third.planned.Source = scenario.Source{Dir: "leaks"}
	return tr
}

// The outcome without some checks is what the same evidence gives with a plan that lacks them.
func TestWithoutAChecksAnswer(t *testing.T) {
	well := ground(scenario.HealedList, "is well", scenario.IsNotMet)
	swift := plan.Check{CheckHeader: scenario.CheckHeader{Name: "is swift", Kind: "testHolds"}, Spec: &holds{Artifact: bundle.Containers, Text: "l"}}
	tr := withLeak()
	tr.plan.Healed = append(tr.plan.Healed, swift)
	v, err := judge.Run(tr.write(t))
	if err != nil {
		t.Fatal(err)
	}
	cut := withLeak()
	cut.plan.Healed = []plan.Check{swift}
	c, err := judge.Run(cut.write(t))
	if err != nil {
		t.Fatal(err)
	}
	a := v.Arms[2]
	if is, same := a.Without([]scenario.Ground{well}), c.Arms[2].Outcome; a.Outcome != verdict.Broken || is != same || is != verdict.NotReproduced {
		t.Errorf("it is %s, without the check %s, and by a plan that lacks it %s", a.Outcome, is, same)
	}
	for _, tc := range []struct {
		arm  int
		g    scenario.Ground
		want verdict.Outcome
	}{
		{0, ground(scenario.SignatureList, "is blocked", scenario.IsMet), verdict.Inconclusive},
		{1, ground(scenario.ExposureList, "was hit", scenario.IsMet), verdict.Inconclusive},
		{1, ground(scenario.ExposureList, "slow", scenario.IsMet), verdict.Inconclusive},
		{1, ground(scenario.ExposureList, "stuck", scenario.IsNotMet), verdict.NotReproduced},
		{1, ground(scenario.HealedList, "is well", scenario.IsMet), verdict.Inconclusive},
		{1, ground(scenario.BuiltInList, scenario.BuiltInProcess, scenario.IsMet), verdict.Inconclusive},
	} {
		if is := v.Arms[tc.arm].Without([]scenario.Ground{tc.g}); is != tc.want {
			t.Errorf("%s is %s without %s, want %s", v.Arms[tc.arm].Name, is, tc.g.Name, tc.want)
		}
	}
	if said := a.Said(ground(scenario.ExposureList, "stuck", "")); len(said) != 1 || said[0] != check.False {
		t.Errorf("the alternative said %v", said)
	}
}

// What was recorded is graded again, without a cluster: a run, or all runs of an oracle.
func TestRecordedCandidatesAreGradedAgain(t *testing.T) {
	known := func(g scenario.Ground) []scenario.CandidateFile {
		return []scenario.CandidateFile{
			{Metadata: scenario.Metadata{Name: "leaks"}, Spec: scenario.CandidateSpec{Right: "Broken", Because: scenario.Grounds{g}}},
			{Metadata: scenario.Metadata{Name: "never-run"}, Spec: scenario.CandidateSpec{Right: "Broken", Because: scenario.Grounds{g}}},
		}
	}
	tr := withLeak()
	tr.run.Provider, tr.run.Trials = "kind", nil
	run := tr.write(t)
	oracle := filepath.Join(filepath.Dir(run), "1-oracle-x")
	if err := os.Mkdir(oracle, 0o755); err != nil {
		t.Fatal(err)
	}
	text := `{"settings": {"pair": "modern", "provider": "kind"}, "candidates": [{"name": "leaks", "dir": "` + filepath.Base(run) + `"}, {"name": "never-run"}]}`
	if err := os.WriteFile(filepath.Join(oracle, campaign.OracleFile), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		g     scenario.Ground
		grade campaign.Grade
		exit  int
	}{
		{"as said", ground(scenario.HealedList, "is well", scenario.IsNotMet), campaign.Right, 0},
		{"another answer", ground(scenario.HealedList, "is well", scenario.IsMet), campaign.ByLuck, 1},
		{"what doesn't decide", ground(scenario.BuiltInList, scenario.BuiltInReady, scenario.IsMet), campaign.ByLuck, 1},
		{"what was never asked", ground(scenario.HealedList, "is gone", scenario.IsNotMet), campaign.NoAnswer, 3},
	} {
		s, err := campaign.Regrade("x", known(tc.g), oracle)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Candidates) != 1 || s.Candidates[0].Grade != tc.grade || s.ExitCode != tc.exit || s.Settings.Provider != "kind" {
			t.Errorf("%s: %+v, want %s, exit %d", tc.name, s, tc.grade, tc.exit)
		}
	}
	if _, err := campaign.Regrade("y", known(scenario.Ground{}), oracle); err == nil || !strings.Contains(err.Error(), "it is a run of x, not of y") {
		t.Errorf("another scenario's run: error %v", err)
	}
	if _, err := campaign.Regrade("x", known(scenario.Ground{})[1:], oracle); err == nil || !strings.Contains(err.Error(), "it has none of the candidates of x") {
		t.Errorf("a run without them: error %v", err)
	}
}

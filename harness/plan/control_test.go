package plan_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Without the vulnerable arm nothing shows that a trial brings the incident back, so nothing can be said of a
// candidate. Without the candidate itself another arm would be judged.
func TestACandidateNeedsTheVulnerableArm(t *testing.T) {
	s := load(t)
	with := func(arms ...string) plan.Options {
		return plan.Options{Arms: arms, Candidates: []plan.Candidate{{Source: &scenario.Source{Version: "v1.34.8"}}}}
	}
	for _, c := range []struct {
		arms []string
		want string
	}{
		{[]string{"fixed", "candidate"}, "the only arms are fixed, candidate: add the vulnerable arm to --arms, or leave --arms out to run them all"},
		{[]string{"fixed", "vulnerable"}, "selecting arms: fixed, vulnerable leaves out the candidate, and another arm would be judged in place of it: want candidate among them, or no selection"},
		{[]string{"candidate"}, "the only arms are candidate: add the vulnerable arm to --arms, or leave --arms out to run them all"},
	} {
		if _, err := plan.New(s, with(c.arms...)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.arms, err, c.want)
		}
	}
	for _, arms := range [][]string{nil, {"vulnerable", "candidate"}} {
		if _, err := plan.New(s, with(arms...)); err != nil {
			t.Errorf("%v: %v", arms, err)
		}
	}
	p, err := plan.New(s, with())
	if err != nil {
		t.Fatal(err)
	}
	trial := &p.Trials[0]
	trial.Arms[0].Expected = "Broken"
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), `arm "`+trial.Arms[0].Name+`", which is `+trial.Arms[0].Role+`, expects "Broken": want `) {
		t.Errorf("a plan that expects another outcome: %v", err)
	}
}

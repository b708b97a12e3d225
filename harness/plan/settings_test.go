package plan_test

import (
	"maps"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// The stronger of two places that set one name is the one whose value counts.
func TestSettings(t *testing.T) {
	s := &scenario.Scenario{Spec: scenario.Spec{Oracle: &scenario.Oracle{Set: map[string]scenario.Scalar{"a": "oracle", "b": "oracle", "c": "oracle"}}}}
	known := plan.Candidate{Known: &scenario.CandidateFile{Spec: scenario.CandidateSpec{Set: map[string]scenario.Scalar{"c": "candidate"}}}}
	params := map[string]string{"b": "user", "c": "user"}
	for name, c := range map[string]struct {
		o    plan.Options
		want map[string]string
	}{
		"nothing is set":      {plan.Options{}, nil},
		"the user":            {plan.Options{Params: params}, map[string]string{"b": "user", "c": "user"}},
		"an oracle":           {plan.Options{Params: params, Oracle: true}, map[string]string{"a": "oracle", "b": "user", "c": "user"}},
		"a candidate alone":   {plan.Options{Params: params, Oracle: true, Candidates: []plan.Candidate{known}}, map[string]string{"a": "oracle", "b": "user", "c": "candidate"}},
		"a shared trial":      {plan.Options{Params: params, Candidates: []plan.Candidate{known, known}}, params},
		"a user's executable": {plan.Options{Candidates: []plan.Candidate{{Source: &scenario.Source{Binary: "x"}}}}, nil},
	} {
		if got := c.o.Settings(s); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if params["c"] != "user" {
		t.Error("the options were changed")
	}
}

package plan_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// The stronger of two places that set one name is the one whose value counts.
func TestTheStrongerOfTwoSettingsCounts(t *testing.T) {
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

// A setting replaces all that a weaker place sets below it: a limit that a pair sets must not come
// back under what the user sets, whose verdict says that it was in force.
func TestTheStrongerSettingReplacesWhatIsBelowIt(t *testing.T) {
	text, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(text), "    - name: modern\n",
		"    - name: modern\n      set: {healed.advancing.spec.limit: '\"1\"'}\n", 1)
	edited = strings.Replace(edited, "spec:\n", "spec:\n  oracle: {set: {signature.stuck.spec.metric: oracle}}\n", 1)
	s, err := scenario.Parse("scenario.yaml", []byte(edited))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		params        map[string]string
		limit, metric string
		deviates      []string
	}{
		"nothing": {nil, "1", "oracle", []string{"signature.stuck.spec.metric is set to oracle"}},
		"the whole spec": {map[string]string{"healed.advancing.spec": `{metric: relists, limit: "9"}`, "signature.stuck": "{name: stuck, kind: testAbove, spec: {metric: mine}}"},
			"9", "mine", []string{`healed.advancing.spec is set to {metric: relists, limit: "9"}`, "signature.stuck is set to {name: stuck, kind: testAbove, spec: {metric: mine}}"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := plan.New(s, plan.Options{Oracle: true, Params: c.params})
			if err != nil {
				t.Fatal(err)
			}
			trial := p.Trials[0]
			if got := trial.Healed[0].Spec.(*above); got.Limit != c.limit {
				t.Errorf("the limit is %s, want %s", got.Limit, c.limit)
			}
			if got := trial.Signature[0].Spec.(*above); got.Metric != c.metric {
				t.Errorf("the metric is %s, want %s", got.Metric, c.metric)
			}
			if diff := cmp.Diff(c.deviates, trial.Deviates.Texts()); diff != "" {
				t.Errorf("deviates (-want +got):\n%s", diff)
			}
		})
	}
}

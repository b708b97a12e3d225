package survey_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/survey"
)

// last is an earlier survey of v1.33 and v1.34, whose newest release had no answer.
func last() *scenario.Surveyed {
	return &scenario.Surveyed{Branches: []scenario.SurveyedBranch{
		{Name: "v1.33", Releases: []scenario.SurveyedRelease{{Version: "v1.33.0", State: "bad"}, {Version: "v1.33.1", State: "good"}}},
		{Name: "v1.34", Releases: []scenario.SurveyedRelease{{Version: "v1.34.0", State: "bad"}, {Version: "v1.34.1", State: "unavailable"}}},
	}}
}

// Only what was not there before is run.
func TestOnlyNewReleasesAreLeft(t *testing.T) {
	r := record([]survey.Branch{branch(33, "AB"), branch(34, "AAAB"), branch(35, "B")}, nil)
	if !r.Since(last()) {
		t.Error("there is none")
	}
	survey.Classify(r.Branches)
	r.Choose()
	want := []survey.Choice{{Version: "v1.34.2", Why: survey.EndOfBranch}, {Version: "v1.34.3", Why: survey.EndOfBranch}, {Version: "v1.35.0", Why: survey.EndOfBranch}}
	if d := cmp.Diff(want, r.Chosen); d != "" {
		t.Error(d)
	}
	if r := record([]survey.Branch{branch(33, "AB"), branch(34, "AA")}, nil); r.Since(last()) {
		t.Errorf("left are %+v", r.Branches)
	}
}

// A release that turned is told with the one before it that is known; what is not known turns nothing.
func TestReleasesThatAnswerOtherThanTheOneBefore(t *testing.T) {
	bad, good := survey.Bad, survey.Good
	for _, c := range []struct {
		name    string
		results map[string]survey.Result
		want    []string
	}{
		{"as before", map[string]survey.Result{"v1.33.2": good, "v1.34.2": bad}, nil},
		{"back in its branch", map[string]survey.Result{"v1.33.2": bad, "v1.34.2": bad}, []string{"v1.33.2 is bad, and v1.33.1 before it is good."}},
		{"fixed, after one that is not known", map[string]survey.Result{"v1.34.2": good}, []string{"v1.34.2 is good, and v1.34.0 before it is bad."}},
		{"two new ones", map[string]survey.Result{"v1.34.2": good, "v1.34.3": bad},
			[]string{"v1.34.2 is good, and v1.34.0 before it is bad.", "v1.34.3 is bad, and v1.34.2 before it is good."}},
		{"a new branch", map[string]survey.Result{"v1.34.3": good, "v1.35.0": bad},
			[]string{"v1.34.3 is good, and v1.34.0 before it is bad.", "v1.35.0 is bad, and v1.34.3 before it is good."}},
		{"no answer", map[string]survey.Result{"v1.33.2": survey.Inconclusive, "v1.34.2": survey.Unbuildable}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record([]survey.Branch{branch(33, "ABC"), branch(34, "AAAB"), branch(35, "B")}, c.results)
			r.Since(last())
			if d := cmp.Diff(c.want, r.Turned(last())); d != "" {
				t.Error(d)
			}
		})
	}
}

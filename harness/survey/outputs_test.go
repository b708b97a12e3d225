package survey_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/survey"
)

// The record is valid by the published schema, and a hole in a branch is introduced again.
func TestOSVIsValid(t *testing.T) {
	bad, good := survey.Bad, survey.Good
	r := record([]survey.Branch{branch(33, "A-B"), branch(34, "AA"), branch(35, "BAB")},
		map[string]survey.Result{"v1.33.0": bad, "v1.33.2": good, "v1.34.0": bad, "v1.34.1": bad, "v1.35.0": good, "v1.35.1": bad, "v1.35.2": good})
	o := r.OSV("A title", []string{"https://github.com/kubernetes/kubernetes/issues/135145", "https://github.com/kubernetes/kubernetes/pull/135155"})
	want := [][]survey.OSVEvent{
		{{Introduced: "1.33.0"}, {LastAffected: "1.33.0"}}, // of v1.33.1 nothing is known
		{{Introduced: "1.34.0"}, {LastAffected: "1.34.1"}}, // of what follows, neither
		{{Introduced: "1.35.1"}, {Fixed: "1.35.2"}},
	}
	var got [][]survey.OSVEvent
	for _, one := range o.Affected[0].Ranges {
		got = append(got, one.Events)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"v1.33.1"}, o.DatabaseSpecific["unavailable"]); d != "" {
		t.Error(d)
	}
	validOSV(t, o)
	validOSV(t, record([]survey.Branch{branch(33, "A")}, map[string]survey.Result{"v1.33.0": good}).OSV("None", nil))
}

func validOSV(t *testing.T, o survey.OSV) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join("testdata", "osv-schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("%s: %v", raw, err)
	}
}

func TestTextAndMarkdown(t *testing.T) {
	r := record([]survey.Branch{branch(33, "AB"), branch(34, "A"), branch(35, "A")},
		map[string]survey.Result{"v1.33.0": survey.Bad, "v1.33.1": survey.Good, "v1.34.0": survey.Bad})
	r.Runs["v1.33.1"][0].Dir = r.Runs["v1.33.0"][0].Dir // they shared a trial
	r.Found = map[string]string{"k8s.io/kubernetes/pkg/scheduler": "what pair modern mutates"}
	r.Packages, r.Versions, r.Pair, r.Seed = []string{"k8s.io/kubernetes/pkg/scheduler"}, ">=1.33", "genuine", 3
	var text, markdown strings.Builder
	if err := errors.Join(r.WriteText(&text, 0), r.WriteMarkdown(&markdown)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bad 1 of 1", "Whoever goes from v1.33.1 to v1.34.0 gets it back.",
		"3 of 4 releases ran, in 2m0s; the controls were as expected in 2 of 2 trials. The releases are of 4 classes by k8s.io/kubernetes/pkg/scheduler (what pair modern mutates), and of 4 "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, &text)
		}
	}
	if want := "Without the fix: v1.34 (up to v1.34.0). Nothing is known of v1.35."; !strings.Contains(markdown.String(), want) {
		t.Errorf("the comment lacks %q:\n%s", want, &markdown)
	}
}

// What is kept next to a scenario is decided by what ran, and says nothing of the machine and the time.
func TestPublishedAnswersAreReadAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "no-node")
	s := &scenario.Scenario{Origin: &scenario.Origin{File: filepath.Join(dir, scenario.FileName)}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	made := func(updated time.Time, why string) *survey.Record {
		r := record([]survey.Branch{branch(33, "AAAB-")}, map[string]survey.Result{"v1.33.0": survey.Bad, "v1.33.2": survey.Bad, "v1.33.3": survey.Good})
		r.Updated, r.Branches[0].Releases[4].Why = updated, why
		return r
	}
	written := func(r *survey.Record) string {
		file, err := r.Publish(s)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := written(made(time.Unix(1, 0), "refused by /a/proxy"))
	if d := cmp.Diff(first, written(made(time.Unix(2, 0), "refused"))); d != "" {
		t.Error(d)
	}
	var got scenario.Surveyed
	if err := json.Unmarshal([]byte(first), &got); err != nil {
		t.Fatal(err)
	}
	want := []scenario.SurveyedBranch{{Name: "v1.33", Releases: []scenario.SurveyedRelease{{Version: "v1.33.0", State: "bad"},
		{Version: "v1.33.1", State: "bad", As: "v1.33.0 and v1.33.2"}, {Version: "v1.33.2", State: "bad"},
		{Version: "v1.33.3", State: "good"}, {Version: "v1.33.4", State: "unavailable"}}}}
	if d := cmp.Diff(want, got.Branches); d != "" || got.Schema != scenario.SurveySchema || got.Scenario != "no-node" || got.Module != "k8s.io/kubernetes" {
		t.Errorf("%s\n%s", d, first)
	}
	// Nothing replaces answers by none.
	if _, err := record([]survey.Branch{branch(33, "A")}, nil).Publish(s); !errors.Is(err, survey.ErrNoAnswer) {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, scenario.SurveyFile)); err != nil || string(text) != first {
		t.Errorf("what was there is gone: %v", err)
	}
}

package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// answersOf lays down the survey of a scenario, one line a release.
func answersOf(name string, cells ...string) string {
	return `{"schema": "relapse.dev/survey-answers/v1alpha1", "scenario": "` + name + `", "module": "k8s.io/kubernetes", "pair": "genuine",
"versions": ">=1.25", "branches": [{"branch": "v1.26", "cells": [
` + strings.Join(cells, ",\n") + `
]}]}`
}

func cell(version, state string) string {
	return `  {"version": "` + version + `", "state": "` + state + `"}`
}

// ofVersions is a section match, for the fixture.
const ofVersions = `
  match:
    affected: '>=1.26.0 <1.26.2'
    fixed: v1.26.2 and later
    signs: [{name: late, is: decisive, ground: it is, settle: look, checks: [{name: above, kind: testAbove, spec: {metric: up}}]}]
`

// besides lays down the fixture, which says which versions have the bug, in a folder of its own with a survey.
func besides(t *testing.T, survey string) (file string) {
	t.Helper()
	text, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "pleg")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, scenario.FileName)
	for path, text := range map[string]string{file: string(text) + ofVersions, filepath.Join(dir, scenario.SurveyFile): survey} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// A release of which the survey and the scenario's own range say different things is told with both places.
func TestASurveyAndAffectedMustAgree(t *testing.T) {
	file := besides(t, answersOf("pleg", cell("v1.26.0", "bad"), cell("v1.26.1", "good"),
		cell("v1.26.2", "bad"), cell("v1.26.3", "unavailable"), cell("v1.26.4", "good")))
	s, err := scenario.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	err = s.CheckSurveyed()
	if err == nil {
		t.Fatal("nothing is said")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d mistakes: %v", len(lines), err)
	}
	for i, want := range []string{
		"survey.json:4:15: branches[0].cells[1]: by its survey v1.26.1 doesn't have it, and by match.affected, " + file + ":",
		"survey.json:5:15: branches[0].cells[2]: by its survey v1.26.2 has the bug, and by match.affected, " + file + ":",
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("%s\nlacks %s", lines[i], want)
		}
	}
	with, err := scenario.Override(s, map[string]string{"phases.recovery.deadline": "9m"})
	if err != nil || with.Surveyed() == nil {
		t.Errorf("with settings the survey is gone: %v", err)
	}
}

// A survey doesn't make a scenario another one: what ran before it counts as before.
func TestASurveyIsNoPartOfItsScenario(t *testing.T) {
	s, err := scenario.Load(besides(t, answersOf("pleg", cell("v1.26.1", "bad"), cell("v1.26.2", "unavailable"))))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.Origin.File)
	if err != nil {
		t.Fatal(err)
	}
	without, err := scenario.Parse(s.Origin.File, text)
	if err != nil || without.Surveyed() != nil {
		t.Fatal(err)
	}
	if s.Origin.Digest != without.Origin.Digest {
		t.Error("the digest is another one")
	}
	if err := s.CheckSurveyed(); err != nil {
		t.Error(err)
	}
	for version, want := range map[string]string{"1.26.1": "bad", "1.26.2": "", "1.27.0": ""} {
		if got := s.SurveyedBug(semver.MustParse(version)); got.State != want {
			t.Errorf("v%s: %+v, want %q", version, got, want)
		}
	}
	s.Spec.Match.Module = "example.org/other"
	if got := s.SurveyedBug(semver.MustParse("1.26.1")); got.Known() {
		t.Errorf("of another module's versions it is said: %+v", got)
	}
}

func TestWhatIsNoSurveyIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"cut":     {`{"schema":`, "survey.json:1:1: is no survey: "},
		"schema":  {`{"schema": "relapse.dev/survey/v1alpha1"}`, `has the schema "relapse.dev/survey/v1alpha1" (want relapse.dev/survey-answers/v1alpha1)`},
		"another": {answersOf("pleg-deadlock"), `is of scenario "pleg-deadlock" (want pleg)`},
		"version": {answersOf("pleg", cell("newest", "bad")), `has the release "newest"`},
	} {
		_, err := scenario.Load(besides(t, c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "relapse survey --write writes this file") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestReleasesAsRanges(t *testing.T) {
	b := scenario.SurveyedBranch{}
	for _, one := range [][2]string{{"v1.26.0", "bad"}, {"v1.26.1", "bad"}, {"v1.26.2", "bad"}, {"v1.26.3", "good"}, {"v1.26.4", "bad"}} {
		b.Releases = append(b.Releases, scenario.SurveyedRelease{Version: one[0], State: one[1]})
	}
	if got := b.Places(func(state string) bool { return state == "bad" }); got != "v1.26.0 to v1.26.2, v1.26.4" {
		t.Error(got)
	}
	if got := b.Places(func(state string) bool { return state == "not run" }); got != "" {
		t.Error(got)
	}
}

package track_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/campaign/track"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
	_ "github.com/kube-relapse/relapse/scenarios"
)

func TestPagesShowTheRecords(t *testing.T) {
	pages, err := track.Texts("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		if p.Changed {
			t.Errorf("%s differs from the track record and the candidates: run relapse record", p.Path)
		}
	}
}

var began = time.Date(2026, 3, 4, 23, 0, 0, 0, time.UTC)

// trial is a trial of a pair with these arms, each of which is named after its role.
func trial(id, pair string, is verdict.Verdict, roles ...string) judge.Trial {
	t := judge.Trial{Trial: verdict.Trial{ID: id, Pair: pair, Verdict: is}, Provider: "processes", Cores: 2,
		Versions: map[string]string{"vulnerable": "v1.26.1", "fixed": "v1.26.2"}}
	t.World.Versions = map[string]string{"kubernetes": "v1.26.1, v1.26.2", "kernel": "6.18.44-amd64", "relapse": "v1", "go": "go1.26"}
	for _, role := range roles {
		t.Arms = append(t.Arms, verdict.Arm{Name: role, Role: role})
		t.World.Arms = append(t.World.Arms, bundle.ArmWorld{Arm: role, Digest: "sum of " + role})
	}
	return t
}

// lasts is the timeline of a trial that took so long, after so many seconds of builds.
func lasts(long time.Duration, build float64) []event.Event {
	built := time.Duration(build * float64(time.Second))
	return []event.Event{{Time: began}, {Time: began.Add(built), Type: event.StageDone, Stage: "build", Fields: map[string]any{"seconds": build}},
		{Time: began.Add(built + long)}}
}

func TestRunsOf(t *testing.T) {
	both := []string{scenario.Vulnerable, scenario.Fixed}
	v := judge.Verdict{StartedAt: began, Scenario: "x", Index: bundle.Index{Run: "relapse-1f"}, Params: map[string]string{"quiet": "40s"}, Trials: []judge.Trial{
		trial("001", "genuine", verdict.Validated, both...), trial("002", "modern", verdict.Validated, both...),
		trial("003", "genuine", verdict.VerdictInconclusive, both...), trial("004", "genuine", verdict.Validated, both...),
	}}
	v.Trials[0].Deviates = plan.Deviations{{Code: plan.CodeSetting, Name: "quiet", Text: "quiet is set to 40s"}}
	v.Trials[0].Events = lasts(95340*time.Millisecond, 20)
	v.Trials[2].Events = lasts(80*time.Second, 0)
	v.Trials[3].Events, v.Trials[3].Verdict = lasts(3*time.Second, 0), verdict.VerdictError
	got, err := track.RunsOf(v)
	if err != nil {
		t.Fatal(err)
	}
	conditions := track.Conditions{Date: "2026-03-04", Began: began, Run: "1f-x", Pair: "genuine", Provider: "processes", Set: map[string]string{"quiet": "40s"},
		Arms:       map[string]string{"vulnerable": "v1.26.1", "fixed": "v1.26.2"},
		Kubernetes: "v1.26.1, v1.26.2", Linux: "6.18", Cores: 2, Relapse: "v1"}
	want := []track.Run{{Conditions: conditions, Verdicts: map[string]int{"Validated": 1, "Inconclusive": 1, "Error": 1}, Seconds: []float64{95.3, 80}},
		{Conditions: conditions, Verdicts: map[string]int{"Validated": 1}}}
	want[1].Pair = "modern"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRunsThatSayNothingAboutAPair(t *testing.T) {
	twins := trial("001", "genuine", verdict.VerdictNotReproduced, scenario.Vulnerable, scenario.Fixed)
	twins.World.Arms[1].Digest = twins.World.Arms[0].Digest
	control := trial("001", "genuine", verdict.VerdictInconclusive, scenario.Vulnerable, scenario.Fixed)
	control.Deviates = plan.Deviations{{Code: plan.CodeOption, Text: "no fault is injected: this is the null control"}}
	weaker := trial("002", "genuine", verdict.Validated, scenario.Vulnerable, scenario.Fixed)
	weaker.Deviates = plan.Deviations{{Code: plan.CodeEdited, Text: "its plan lacks the scenario's signature.stuck"}}
	for _, tc := range []struct {
		trial judge.Trial
		want  string
	}{
		{control, "trial 001: it isn't the scenario's pair as it is: no fault is injected: this is the null control"},
		{weaker, "trial 002: it isn't the scenario's pair as it is: its plan lacks the scenario's signature.stuck"},
		{trial("001", "genuine", verdict.Validated, scenario.Vulnerable, scenario.Fixed, scenario.Candidate),
			"trial 001: it is about the candidate candidate: relapse oracle makes a record of candidates"},
		{trial("002", "genuine", verdict.VerdictNotReproduced, scenario.Fixed), "trial 002: it lacks the vulnerable or the fixed arm"},
		{twins, "trial 001: its two arms are the same program"},
	} {
		_, err := track.RunsOf(judge.Verdict{StartedAt: began, Trials: []judge.Trial{tc.trial}})
		if err == nil || err.Error() != tc.want {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
}

func TestOracleOf(t *testing.T) {
	s := campaign.OracleSummary{StartedAt: began, Relapse: "v2", Settings: campaign.Settings{Pair: "smoke", Provider: "kind", Full: true},
		Candidates: []campaign.Graded{
			{Name: "cure", Right: "NotReproduced", Given: []string{"NotReproduced"}, Grade: campaign.Right},
			{Name: "larger", Right: "Reproduced", Given: []string{"Inconclusive"}, Grade: campaign.NoAnswer},
			{Name: "late", Right: "Broken", Grade: campaign.NotRun},
		}}
	got := track.OracleOf(s, track.Conditions{Date: "2026-03-05", Pair: "modern", Provider: "kind", Cores: 2, Relapse: "v1"})
	want := track.Oracle{
		Conditions: track.Conditions{Date: "2026-03-04", Began: began, Pair: "smoke", Provider: "kind", Full: true, Cores: 2, Relapse: "v1"},
		Answers: []track.Answer{
			{Candidate: "cure", Right: "NotReproduced", Given: []string{"NotReproduced"}, Grade: campaign.Right},
			{Candidate: "larger", Right: "Reproduced", Given: []string{"Inconclusive"}, Grade: campaign.NoAnswer},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The same evidence counts once, by its run's name or its time, and results are in the order in which they began.
func TestAddReplacesTheSameRun(t *testing.T) {
	run := func(day, hour int, pair, dir, is string) track.Run {
		at := time.Date(2026, 3, day, hour, 0, 0, 0, time.UTC)
		return track.Run{Conditions: track.Conditions{Date: at.Format(time.DateOnly), Began: at, Pair: pair, Run: dir}, Verdicts: map[string]int{is: 1}}
	}
	told := track.Run{Conditions: track.Conditions{Date: "2026-03-01", Pair: "genuine", From: "README"}, Verdicts: map[string]int{"Validated": 1}}
	r := track.Record{Runs: []track.Run{told, run(2, 9, "genuine", "a", "Inconclusive"), run(4, 9, "modern", "a", "Validated")}}
	r.Add(track.Found{Runs: []track.Run{run(2, 9, "genuine", "copy", "Validated"), run(3, 9, "genuine", "late", "Validated"),
		run(3, 8, "genuine", "early", "Validated")}})
	var got []string
	for _, run := range r.Runs {
		for is := range run.Verdicts {
			got = append(got, strings.TrimSpace(run.Date[8:]+" "+run.Pair+" "+is+" "+run.Run))
		}
	}
	want := []string{"01 genuine Validated", "02 genuine Validated copy", "03 genuine Validated early", "03 genuine Validated late", "04 modern Validated a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTook(t *testing.T) {
	run := func(pair, provider string, seconds ...float64) track.Run {
		return track.Run{Conditions: track.Conditions{Pair: pair, Provider: provider}, Seconds: seconds}
	}
	set := run("modern", "kind", 5)
	set.Set = map[string]string{"quiet": "1s"}
	r := track.Record{Runs: []track.Run{run("modern", "processes", 61.5), run("modern", "kind"), set, run("genuine", "processes", 300),
		run("modern", "processes", 72, 58.1)}}
	want := []track.Took{{Provider: "processes", Trials: 3, Shortest: 58100 * time.Millisecond, Longest: 72 * time.Second}}
	if diff := cmp.Diff(want, r.Took("modern", []string{"kind", "processes"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Once a scenario has a survey, its README has a table of the releases, which stays in its place.
func TestAREADMEHasTheReleasesOfASurvey(t *testing.T) {
	root := t.TempDir()
	of := filepath.Join(root, "scenarios", "no-node-for-affinity")
	for from, to := range map[string]string{"../../../scenarios/no-node-for-affinity": of, "../../../docs": filepath.Join(root, "docs")} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	put := func(state string) {
		t.Helper()
		err := os.WriteFile(filepath.Join(of, scenario.SurveyFile), []byte(`{"schema": "relapse.dev/survey-answers/v1alpha1",
"scenario": "no-node-for-affinity", "module": "k8s.io/kubernetes", "pair": "genuine", "versions": ">=1.29 <1.30",
"branches": [{"branch": "v1.29", "cells": [{"version": "v1.29.3", "state": "good"}, {"version": "v1.29.4", "state": "`+state+`"},
{"version": "v1.29.5", "state": "bad"}, {"version": "v1.29.6", "state": "good"}, {"version": "v1.29.7", "state": "good", "standIns": "k8s.io/api v0.29.6"}]}]}`), 0o644)
		if err != nil {
			t.Fatal(err)
		}
		pages, err := track.Texts(root)
		if err != nil {
			t.Fatal(err)
		}
		if err := track.Write(pages); err != nil {
			t.Fatal(err)
		}
	}
	put("not run")
	put("unavailable")
	text, err := os.ReadFile(filepath.Join(of, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `## Which releases have it

<!-- begin releases: written by relapse record -->

| branch | with the bug | without it | not known |
|---|---|---|---|
| v1.29 | v1.29.5 | v1.29.3, v1.29.6 to v1.29.7 | v1.29.4 |

By running releases of >=1.29 <1.30 beside pair ` + "`genuine`; `survey.json`" + ` says which ran, and which answer as others of their class.
v1.29.7 ran with stand-ins for what can't be had of it: k8s.io/api v0.29.6.

<!-- end releases -->

## Results
`
	if strings.Count(string(text), want) != 1 || strings.Count(string(text), "Which releases have it") != 1 {
		t.Errorf("the README lacks\n%s\nit is\n%s", want, text)
	}
}

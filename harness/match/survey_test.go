package match_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// surveyed loads a scenario with a survey next to it.
func surveyed(t *testing.T, name, survey string) []*scenario.Scenario {
	t.Helper()
	dir := files(t, map[string]string{name + "/" + scenario.SurveyFile: survey})
	if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join("../../scenarios", name))); err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Load(filepath.Join(dir, name, scenario.FileName))
	if err != nil {
		t.Fatal(err)
	}
	return []*scenario.Scenario{s}
}

// What ran decides which versions have the bug. The scenario's own range stays for those that no survey answers.
func TestVersionsAreThoseOfTheSurvey(t *testing.T) {
	const name = "scheduler-nil-pointer"
	all := surveyed(t, name, `{"schema": "relapse.dev/survey-answers/v1alpha1", "scenario": "scheduler-nil-pointer", "module": "k8s.io/kubernetes",
"branches": [{"branch": "v1.26", "cells": [
  {"version": "v1.26.0", "state": "good"},
  {"version": "v1.26.1", "state": "good", "as": "v1.26.0 and v1.26.2"},
  {"version": "v1.26.2", "state": "bad"},
  {"version": "v1.26.3", "state": "unavailable"},
  {"version": "v1.26.4", "state": "good", "standIns": "k8s.io/api v0.26.5"}]}]}`)
	log := func(version string) map[string]string {
		return map[string]string{"kube-scheduler.log": fmt.Sprintf(`I0301 10:00:00.000000       1 server.go:152] "Starting Kubernetes Scheduler" version="%s"`, version) + "\n" + fineLine + "\n"}
	}
	for _, c := range []struct {
		name      string
		all       []*scenario.Scenario
		files     map[string]string
		want, why string
	}{
		{"good by the survey", all, log("v1.26.0"), "not met", "a survey of releases has v1.26.0 as good; this is v1.26.0"},
		{"good as its class, but never run", all, log("v1.26.1"), "unknown", "nothing that is here could rule it out"},
		{"in the hole", all, map[string]string{"kube-scheduler/0.log": fmt.Sprintf(panicText, "v1.26.2", "CSILimits")}, "met", "died-of-it"},
		{"no answer, but a range", all, log("v1.26.3"), "not met", "the fix is in v1.25.7"},
		{"not surveyed, but a range", all, map[string]string{"kube-scheduler/0.log": fmt.Sprintf(panicText, "v1.25.3", "CSILimits")}, "met", "died-of-it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := match.Run(context.Background(), c.all, shipped(t), []string{files(t, c.files)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			answered(t, r, name, c.want, c.why)
		})
	}
	// Without a range, what no survey answers is not known.
	for _, s := range all {
		s.Spec.Match.Affected, s.Spec.Match.Fixed = "", ""
	}
	for version, want := range map[string]string{"v1.26.0": "not met", "v1.26.1": "unknown", "v1.26.3": "unknown", "v1.26.4": "unknown", "v1.27.3": "unknown"} {
		r, err := match.Run(context.Background(), all, shipped(t), []string{files(t, log(version))}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := of(t, r, name); got.Word() != want {
			t.Errorf("%s: %s: %s", version, got.Word(), got.Why)
		}
	}
}

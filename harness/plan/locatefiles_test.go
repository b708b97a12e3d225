package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/scenario"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// A mistake that only planning finds has its place in the scenario's file, also where the file refers to others.
func TestMistakesBesideFilesHaveAPlace(t *testing.T) {
	s, err := scenario.Load("../../scenarios/budget-ignored/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	err = s.Locate(scenario.InField(errors.New("it comes late"), "faults", "budget", "after"))
	if err == nil || !strings.Contains(err.Error(), "budget-ignored/scenario.yaml:") || !strings.Contains(err.Error(), "it comes late") {
		t.Errorf("got %v", err)
	}
}

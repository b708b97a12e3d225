package probes_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestLoadCalls(t *testing.T) {
	sum := []bundle.Kind{bundle.LoadSummary}
	checktest.Run(t, []checktest.Question{
		{Name: "as many as wanted", Fill: checktest.Called("changes", map[string]int{"200": 15, "none": 5}, 100), Met: check.True, Evidence: sum, Seen: "15 of 20"},
		{Name: "too few, over two rounds", Fill: checktest.Called("changes", map[string]int{"200": 14, "409": 26}, 100, 200), Met: check.False, Evidence: sum, Seen: "14 of 40"},
		{Name: "none", Fill: checktest.Called("changes", map[string]int{}), Met: check.False, Evidence: sum, Seen: "0 of 0"},
		{Name: "a round of another phase", Fill: checktest.Called("changes", map[string]int{"200": 40}, 25, 100), Met: check.Unknown, Evidence: sum,
			Seen: "round 1 of load changes began at 10:00:25, not in"},
		{Name: "another load", Fill: checktest.Called("others", map[string]int{"200": 20}, 100), Met: check.Unknown, Seen: "no load changes summed up what it did"},
		{Name: "no record", Fill: (*checktest.Trial).Phases, Met: check.Unknown, Seen: "no load changes summed up what it did"},
		{Name: "of the other arm", Scope: check.Scope{Arm: checktest.Other, Phase: check.Fault}, Fill: checktest.Called("changes", map[string]int{"200": 20}, 100), Met: check.Unknown,
			Seen: "no load changes summed up what it did"},
	}, func(q *checktest.Question) {
		q.Kind, q.Spec, q.Wanted = "loadCalls", `{"load":"changes","code":200,"atLeast":15}`, "at least 15 calls of load changes answered with 200"
		if q.Scope.Arm == "" {
			q.Scope = check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		}
	})
	for spec, want := range map[string]string{
		`{"code":200}`:              `load is empty`,
		`{"load":"x"}`:              `code is 0 (want 100 to 599)`,
		`{"load":"x","code":9000}`:  `code is 9000 (want 100 to 599)`,
		`{"load":"x","atLeast":-1}`: `atLeast is -1 (want at least 1)`,
	} {
		checktest.Refused(t, "loadCalls", spec, want)
	}
}

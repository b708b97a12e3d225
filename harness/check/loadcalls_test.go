package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestLoadCalls(t *testing.T) {
	sum := []bundle.Kind{bundle.LoadSummary}
	run(t, []question{
		{name: "as many as wanted", fill: called("changes", map[string]int{"200": 15, "none": 5}, 100), met: check.True, evidence: sum, seen: "15 of 20"},
		{name: "too few, over two rounds", fill: called("changes", map[string]int{"200": 14, "409": 26}, 100, 200), met: check.False, evidence: sum, seen: "14 of 40"},
		{name: "none", fill: called("changes", map[string]int{}), met: check.False, evidence: sum, seen: "0 of 0"},
		{name: "a round of another phase", fill: called("changes", map[string]int{"200": 40}, 25, 100), met: check.Unknown, evidence: sum,
			seen: "round 1 of load changes began at 10:00:25, not in"},
		{name: "another load", fill: called("others", map[string]int{"200": 20}, 100), met: check.Unknown, seen: "no load changes summed up what it did"},
		{name: "no record", fill: (*trial).phases, met: check.Unknown, seen: "no load changes summed up what it did"},
		{name: "of the other arm", scope: check.Scope{Arm: other, Phase: check.Fault}, fill: called("changes", map[string]int{"200": 20}, 100), met: check.Unknown,
			seen: "no load changes summed up what it did"},
	}, func(q *question) {
		q.kind, q.spec, q.wanted = "loadCalls", `{"load":"changes","code":200,"atLeast":15}`, "at least 15 calls of load changes answered with 200"
		if q.scope.Arm == "" {
			q.scope = check.Scope{Arm: arm, Phase: check.Fault}
		}
	})
	for spec, want := range map[string]string{
		`{"code":200}`:              `load is empty`,
		`{"load":"x"}`:              `code is 0 (want 100 to 599)`,
		`{"load":"x","code":9000}`:  `code is 9000 (want 100 to 599)`,
		`{"load":"x","atLeast":-1}`: `atLeast is -1 (want at least 1)`,
	} {
		refused(t, "loadCalls", spec, want)
	}
}

package report_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// backport is a trial with a candidate of a source upon a version.
func backport(version string, src scenario.Source) *trial {
	tr := newTrial()
	tr.run.Links = []string{"https://github.com/kubernetes/kubernetes/pull/72709", "https://github.com/kubernetes/kubernetes/issues/72482"}
	tr.third = newArm("candidate", scenario.Candidate, strings.Repeat("c", 64), "goroutine 9 [select]", "well", "NotReproduced")
	src.Module, src.Version, src.Package = "k8s.io/kubernetes", version, "cmd/kubelet"
	tr.third.planned.Source = src
	return tr
}

var (
	ofPatch  = scenario.Source{Dir: "/cache/patched/1/tree", Patch: "/home/me/a|b\\|c\n*1.33*.patch", PatchSum: strings.Repeat("9", 64)}
	ofCommit = scenario.Source{Dir: "/cache/commit/1", Commit: strings.Repeat("8", 40), Ref: "my-backport"}
	ofTree   = scenario.Source{Dir: "/home/me/kubernetes"}
)

// unanswered is a trial of a tree that doesn't say its version, whose candidate gives no answer.
func unanswered() *trial {
	tr := backport("v1.34.4", ofTree)
	tr.third.health = ""
	tr.third.world.Changes = []string{"built in place", "commit " + strings.Repeat("7", 40) + " with uncommitted changes: 1 files, +1 -0 lines, SHA-256 of the diff " + strings.Repeat("6", 64)}
	tr.plan.Deviates = plan.Deviations{{Code: plan.CodeDoubt, Text: "the version of the candidate can't be told: it is stamped v1.34.4 as the fixed arm is, and whether it fits its cluster's is unknown"}}
	return tr
}

// cells splits a row as GitHub does: a backslash takes away what the next character means.
func cells(line string) (out []string) {
	cell := ""
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line):
			i++
			cell += line[i : i+1]
		case line[i] == '|':
			out, cell = append(out, strings.TrimSpace(cell)), ""
		default:
			cell += line[i : i+1]
		}
	}
	return out
}

// Whoever made a backport for several branches has a run for each, and pastes one table of them.
func TestRunsAreComparedInOneTable(t *testing.T) {
	twice := filepath.Join(t.TempDir(), "1.33")
	for _, id := range []string{"001", "002"} {
		tr := backport("v1.33.4", ofPatch)
		tr.plan.ID, tr.run.Trials = id, listed("001", "002")
		tr.writeTo(t, twice)
	}
	var runs []report.Run
	for _, dir := range []string{twice, backport("v1.34.7", ofCommit).write(t), unanswered().write(t)} {
		v, err := judge.Run(dir)
		must(t, err)
		runs = append(runs, report.Run{Dir: dir, Verdict: v})
	}
	runs = append(runs, report.Run{Dir: "/runs/cut|off", Err: "it was never sealed:\n<b>"})
	text := report.Comparison(runs)
	lines := strings.Split(text, "\n")
	if len(lines) < 6 || !strings.HasPrefix(lines[1], "|---|") || lines[6] != "" {
		t.Fatalf("want a table of 4 runs:\n%s", text)
	}
	issue := "x, [kubernetes issue 72482](https://github.com/kubernetes/kubernetes/issues/72482)"
	for i, want := range [][]string{
		{"1.33", issue, "vulnerable v1.34.4, fixed v1.34.4, candidate v1.33.4",
			`k8s.io/kubernetes v1.33.4 with the patch a|b\|c *1.33*.patch (SHA-256 999999999999), its program cccccccccccc`, "Validated",
			"vulnerable 2 of 2, fixed 0 of 2, candidate 0 of 2"},
		{"20260304-050607-x", issue, "vulnerable v1.34.4, fixed v1.34.4, candidate v1.34.7",
			"k8s.io/kubernetes at commit 888888888888 (my-backport), its program cccccccccccc", "Validated", "vulnerable 1 of 1, fixed 0 of 1, candidate 0 of 1"},
		{"20260304-050607-x", issue, "vulnerable v1.34.4, fixed v1.34.4, candidate of unknown version",
			"a source tree, kubernetes, at commit 777777777777 with uncommitted changes (SHA-256 of their diff 666666666666), its program cccccccccccc",
			"Inconclusive (note 1) (note 2)", "vulnerable 1 of 1, fixed 0 of 1, candidate 0 of 1 (counted against it: 1 Inconclusive)"},
		{"cut|off", "unknown", "unknown", "unknown", "none (note 3)", "unknown", "unknown"},
	} {
		got := cells(lines[i+2])
		if len(got) != 7 {
			t.Errorf("row %d has %d cells, want 7: %s", i, len(got), lines[i+2])
			continue
		}
		if i < 3 { // each run has digests of its own
			for _, trial := range runs[i].Verdict.Trials {
				if !strings.Contains(got[6], trial.ID+": "+trial.Manifest[:12]) {
					t.Errorf("row %d doesn't have the digest of trial %s, %s: %s", i, trial.ID, trial.Manifest, got[6])
				}
			}
			got = got[:6]
		}
		for n := range want {
			if got[n] != want[n] {
				t.Errorf("row %d, cell %d: %q, want %q", i, n, got[n], want[n])
			}
		}
	}
	inOrder(t, text, "- note 1, on 20260304-050607-x: ", "whether it is healed is unknown", "- note 2, on 20260304-050607-x: what weakens it: ", "the version of the candidate can't be told",
		`- note 3, on cut\|off: it was never sealed: &lt;b>`)
}

// What weakens the trials of one pair weakens no other pair of the run.
func TestEachPairOfARunHasARow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "both")
	var trials []*trial
	var planned []plan.Trial
	for i, pair := range []string{"genuine", "modern"} {
		tr := newTrial()
		tr.plan.ID, tr.plan.Pair = fmt.Sprintf("%03d", i+1), pair
		if pair == "modern" {
			tr.plan.Deviates = plan.Deviations{{Code: plan.CodeDoubt, Text: "only modern's arms are in doubt"}}
		}
		for _, a := range tr.arms() {
			tr.plan.Arms = append(tr.plan.Arms, a.planned)
		}
		trials, planned = append(trials, tr), append(planned, tr.plan)
	}
	for _, tr := range trials {
		tr.run.Trials = planned
		tr.writeTo(t, dir)
	}
	v, err := judge.Run(dir)
	must(t, err)
	text := report.Comparison([]report.Run{{Dir: dir, Verdict: v}})
	lines := strings.Split(text, "\n")
	for i, want := range []string{"Validated", "Validated (note 1)"} {
		if got := cells(lines[i+2]); got[1] != "x, pair "+v.Pairs[i].Name || got[4] != want {
			t.Errorf("row %d is about %q and says %q, want %q", i, got[1], got[4], want)
		}
	}
	if strings.Count(text, "only modern's arms are in doubt") != 1 {
		t.Errorf("want the doubt once:\n%s", text)
	}
}

// A program reads an arm's version where it is known, and no other in place of one that isn't.
func TestVersionsOfArmsInTheVerdict(t *testing.T) {
	versions := func(tr *trial) map[string]any {
		v, err := judge.Run(tr.write(t))
		must(t, err)
		raw, err := v.JSON()
		must(t, err)
		var stored struct {
			Pairs []struct{ Arms []map[string]any }
		}
		must(t, json.Unmarshal(raw, &stored))
		out := map[string]any{}
		for _, a := range stored.Pairs[0].Arms {
			if version, ok := a["version"]; ok {
				out[a["arm"].(string)] = version
			}
		}
		return out
	}
	if got := versions(backport("v1.33.4", ofPatch)); got["vulnerable"] != "v1.34.4" || got["candidate"] != "v1.33.4" {
		t.Errorf("the arms have the versions %v", got)
	}
	if got := versions(unanswered()); len(got) != 2 || got["candidate"] != nil {
		t.Errorf("the arms have the versions %v, want none of the candidate, which is only stamped as the fixed arm is", got)
	}
}

// Every report names a candidate's patch or commit with its hash, where it names the candidate's source.
func TestReportsNameTheChange(t *testing.T) {
	plain := ofPatch
	plain.Patch = "/home/me/1.33.patch"
	for _, c := range []struct {
		src  scenario.Source
		want string
	}{
		{plain, "k8s.io/kubernetes v1.33.4 with the patch 1.33.patch (SHA-256 999999999999)"},
		{ofCommit, "k8s.io/kubernetes at commit 888888888888 (my-backport)"},
	} {
		v, err := judge.Run(backport("v1.33.4", c.src).write(t))
		must(t, err)
		for name, text := range reports(t, v) {
			if !strings.Contains(text, c.want) {
				t.Errorf("%s doesn't say %q", name, c.want)
			}
		}
	}
}

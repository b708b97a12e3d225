package report_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/scenario"
)

var update = flag.Bool("update", false, "write the golden files anew")

func summaryOf(t *testing.T, run string) string {
	t.Helper()
	v, err := judge.Run(run)
	must(t, err)
	v.Judge = "v1.2.4"
	var out bytes.Buffer
	must(t, report.Summary(&out, v))
	return out.String()
}

// withCandidate is a trial of three arms, the third of which still shows the incident, of a run of some trials.
func withCandidate(t *testing.T, run, id, pair string, planned []plan.Trial) {
	t.Helper()
	tr := newTrial()
	tr.plan.ID, tr.plan.Pair = id, pair
	tr.plan.Deviates = plan.Deviations{{Code: plan.CodeSetting, Name: "slow-runtime.latency", Text: "slow-runtime.latency is set to 80ms"}}
	mine := newArm("candidate", scenario.Candidate, strings.Repeat("c", 64), "goroutine 9 [chan send]", "ill", "NotReproduced")
	mine.planned.Source.Dir = "/home/me/kubernetes"
	tr.third = mine
	if id == "002" {
		tr.third.after, tr.third.health = "goroutine 9 [select]", "well | and\nmore"
	}
	tr.run.Trials = slices.Clone(planned)
	tr.writeTo(t, run)
}

// A run of three arms and two trials, as it is pasted into a pull request.
func TestSummary(t *testing.T) {
	run := filepath.Join(t.TempDir(), "r1-x")
	withCandidate(t, run, "001", "modern", listed("001", "002"))
	withCandidate(t, run, "002", "modern", listed("001", "002"))
	golden(t, "summary.md", summaryOf(t, run))
}

// The same run as it is shown in a terminal.
func TestTextOfSeveralTrials(t *testing.T) {
	run := filepath.Join(t.TempDir(), "r1-x")
	withCandidate(t, run, "001", "modern", listed("001", "002"))
	withCandidate(t, run, "002", "modern", listed("001", "002"))
	v, err := judge.Run(run)
	must(t, err)
	var out bytes.Buffer
	must(t, report.Text(&out, v, false))
	golden(t, "text.txt", out.String())
}

// golden compares a text with the file of that name in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got (go test -update writes it anew):\n%s", path, diff)
	}
}

func TestSummaryHasAtMostThirtyLines(t *testing.T) {
	run := filepath.Join(t.TempDir(), "r1-x")
	var planned []plan.Trial
	for i := range 24 {
		planned = append(planned, plan.Trial{ID: fmt.Sprintf("%03d", i+1), Pair: fmt.Sprintf("pair-%d", i%4)})
	}
	for _, one := range planned {
		withCandidate(t, run, one.ID, one.Pair, planned)
	}
	got := summaryOf(t, run)
	if n := strings.Count(got, "\n"); n > 30 || n < 20 {
		t.Errorf("%d lines, want 30 at most:\n%s", n, got)
	}
	for _, want := range []string{"| | and 6 more, in report.md | | | | |\n", "- and 8 more arms, in report.md\n", "relapse run x --pair all --repeat 6 --seed 42"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
}

// It says what isn't there rather than leaving it out.
func TestSummaryOfWhatIsNotKnown(t *testing.T) {
	tr := newTrial()
	tr.fixed.exposed, tr.plan.Modelled = "", nil
	got := summaryOf(t, tr.write(t))
	for _, want := range []string{"**Inconclusive** (exit 3)", "- what hit **fixed** (modern): exposure unknown: slow: no snapshot; stuck: no snapshot\n", "- modelled: nothing\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
}

func TestSummaryOfAnOpenEndedRunRepeatsIt(t *testing.T) {
	got := summaryOf(t, writeOpen(t))
	if want := "relapse run x --pair modern --until-confident --target-rate 0.3 --confidence 0.75 --max-trials 6 --seed 42`"; !strings.Contains(got, want) {
		t.Errorf("it lacks %q:\n%s", want, got)
	}
}

package report_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// Versions that set such trials aside went on after one. Their runs can still be judged, and are not Validated any
// more.
func TestARunThatWentOnAfterATrialWithoutAnAnswer(t *testing.T) {
	v, err := judge.Run(writeWithSecond(t, func(tr *trial) { tr.fixed.health = "" }))
	if err != nil {
		t.Fatal(err)
	}
	const why = "fixed gave no answer in 1 of 5 trials whose controls were as expected, which counts against it, as an incident may destroy its own evidence: " +
		"a rate below 30 % can't be shown any more"
	if v.Verdict != verdict.VerdictInconclusive || v.ExitCode != verdict.ExitInconclusive || !strings.HasPrefix(v.Sentence, why) {
		t.Errorf("%s: %q, want %q", v.LastLine(), v.Sentence, why)
	}
	var page bytes.Buffer
	must(t, report.Markdown(&page, v, report.Read(v)))
	for _, want := range []string{"; no answer: 002 Inconclusive", "counts against the judged arm if that arm gave no answer or failed in another way"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%s lacks %q:\n%s", report.ReportFile, want, page.String())
		}
	}
}

// One trial of an open-ended run proves that the build is ill, never that it is well.
func TestOneTrialOfAnOpenEndedRunByItself(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*trial)
		want   verdict.Verdict
		exit   int
		says   string
	}{
		{"well", func(*trial) {}, verdict.VerdictInconclusive, 3, "one trial of an open-ended run gives no verdict by itself: fixed showed it in none of 1 trials that count, and 4 are needed; " +
			"next: judge the directory of its run"},
		{"ill", func(tr *trial) { tr.fixed.after = "goroutine 9 [chan send]" }, verdict.StillVulnerable, 1, "fixed showed it in 1 of 1 trials that count, and one is proof that it has it; trial 002: "},
		{"nothing bites", func(tr *trial) { tr.vulnerable.after = "goroutine 9 [select]" }, verdict.VerdictInconclusive, 3, "one trial of an open-ended run gives no verdict by itself: "},
		{"no answer", func(tr *trial) { tr.fixed.health = "" }, verdict.VerdictInconclusive, 3, "one trial of an open-ended run gives no verdict by itself: fixed gave no answer in 1 of 1 trials"},
	} {
		run := writeWithSecond(t, c.change)
		v, err := judge.Run(filepath.Join(run, "trials", "002"))
		if err != nil || v.Verdict != c.want || v.ExitCode != c.exit || !strings.HasPrefix(v.Sentence, c.says) {
			t.Errorf("%s: %s, %q, %v; want %s (exit %d), %q", c.name, v.LastLine(), v.Sentence, err, c.want, c.exit, c.says)
		}
	}
}

// A bundle without a vulnerable arm shows nothing of a candidate, however well that is.
func TestACandidatesBundleWithoutTheVulnerableArm(t *testing.T) {
	beside, alone := newTrial(), newTrial()
	beside.vulnerable = newArm("fixed", scenario.Fixed, digestF, "goroutine 9 [select]", "well", "NotReproduced")
	beside.fixed = newArm("candidate", scenario.Candidate, digestV, "goroutine 9 [select]", "well", "NotReproduced")
	alone.only = newArm("candidate", scenario.Candidate, digestV, "goroutine 9 [select]", "well", "NotReproduced")
	for name, tr := range map[string]*trial{"beside the fixed arm": beside, "alone": alone} {
		v, err := judge.Run(tr.write(t))
		const why = "candidate is NotReproduced, and no vulnerable arm was beside it, so nothing shows that the trial brings the incident back"
		if err != nil || v.Verdict != verdict.VerdictInconclusive || v.ExitCode != verdict.ExitInconclusive || !strings.HasPrefix(v.Sentence, why) {
			t.Errorf("%s: %s, %q, %v; want %q", name, v.LastLine(), v.Sentence, err, why)
		}
	}
	own := newTrial()
	own.only = own.fixed
	if v, err := judge.Run(own.write(t)); err != nil || v.Verdict != verdict.VerdictNotReproduced || v.ExitCode != verdict.ExitOK {
		t.Errorf("the fixed arm alone: %s, %v", v.LastLine(), err)
	}
}

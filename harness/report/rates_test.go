package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// short is a rule that four trials satisfy.
var short = plan.Until{Rule: "below-target", Confidence: 0.75, Target: 0.3, Max: 6}

// writeOpen leaves an open-ended run of one pair: in one of its five trials the control gave no answer.
func writeOpen(t *testing.T) string {
	t.Helper()
	return writeWithSecond(t, func(tr *trial) { tr.vulnerable.exposed = "" })
}

// writeWithSecond leaves a run of five trials, whose second one is changed.
func writeWithSecond(t *testing.T, second func(*trial)) string {
	t.Helper()
	var run string
	for _, id := range []string{"001", "002", "003", "004", "005"} {
		tr := open(id)
		if id == "002" {
			second(tr)
		}
		if run == "" {
			run = tr.write(t)
		} else {
			tr.writeTo(t, run)
		}
	}
	return run
}

// open is a trial of such a run.
func open(id string) *trial {
	tr := newTrial()
	tr.plan.ID = id
	tr.run.Until = &short
	tr.run.Trials = []plan.Trial{{ID: "001", Pair: "modern"}}
	return tr
}

func TestOpenEndedRun(t *testing.T) {
	run := writeOpen(t)
	v, err := judge.Run(run)
	if err != nil {
		t.Fatal(err)
	}
	why := "fixed showed it in none of 4 trials that count: its rate is below 30 % (Clopper-Pearson, one-sided, 75 %), whenever one stops; vulnerable showed it in 4 of 4: at least 51 % (confidence sequence, 75 %); 1 set aside (limit 2)"
	if v.Verdict != verdict.Validated || v.ExitCode != 0 || v.Sentence != why || v.LastLine() != "relapse: Validated (exit 0)" {
		t.Errorf("%s: %q, want %q", v.LastLine(), v.Sentence, why)
	}
	var text, page, x bytes.Buffer
	for _, err := range []error{report.Text(&text, v, false), report.Markdown(&page, v, report.Read(v)), report.JUnit(&x, v)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	html, err := report.Page(v, report.Read(v))
	if err != nil {
		t.Fatal(err)
	}
	said := "0 of 4 with 4 of 4 in the control: at most 30 % (Clopper-Pearson, one-sided, 75 %); not counted: 1 NotReproduced in a trial that proves nothing"
	for name, c := range map[string]struct{ in, want string }{
		"text":     {text.String(), "pair modern, fixed: " + said + "\n"},
		"its end":  {text.String(), "pair modern ended as Validated: " + why + "; set aside: 002 Inconclusive\n"},
		"last":     {text.String(), "\nValidated: " + why + ".\n"},
		"markdown": {page.String(), "| modern | fixed | 0 of 4 | "},
		"again":    {string(html), "--until-confident --target-rate 0.3 --confidence 0.75 --max-trials 6 --seed 42"},
		"JUnit":    {x.String(), `<property name="rate/modern/fixed" value="` + said + `"></property>`},
		"an arm of a trial that is set aside fails nothing": {x.String(), `<skipped message="set aside: Inconclusive, expected Reproduced`},
	} {
		if !strings.Contains(c.in, c.want) {
			t.Errorf("%s lacks %q:\n%s", name, c.want, c.in)
		}
	}
	if strings.Contains(x.String(), "<error") || strings.Contains(x.String(), "<failure") {
		t.Errorf("JUnit has an error or a failure for a run that is Validated:\n%s", x.String())
	}
	one, err := judge.Bundle(filepath.Join(run, "trials", "002"))
	if err != nil || one.Verdict != verdict.VerdictInconclusive || one.ID != "002" {
		t.Errorf("trial 002: %s, %v", one.Verdict, err)
	}
}

// A run that was killed before its rule was satisfied gives no answer, and one that showed the incident before does.
func TestOpenEndedRunThatWasCutShort(t *testing.T) {
	for _, c := range []struct {
		name string
		last func(*trial)
		want verdict.Verdict
		says string
	}{
		{"too early", func(*trial) {}, verdict.VerdictInconclusive, "fixed showed it in none of 2 trials that count, and 4 are needed"},
		{"after it was seen", func(tr *trial) { tr.fixed.after = "goroutine 9 [chan send]" }, verdict.StillVulnerable, "fixed showed it in 1 of 2 trials that count, and one is proof"},
	} {
		first, last := open("001"), open("002")
		run := first.write(t)
		c.last(last)
		last.writeTo(t, run)
		x, err := bundle.ReadIndex(run)
		must(t, err)
		x.Complete = false
		must(t, x.Write(run))
		v, err := judge.Run(run)
		if err != nil || v.Verdict != c.want || !strings.Contains(v.Sentence, c.says) || !strings.Contains(v.Sentence, "the run was cut short, or isn't over: 2 trials were sealed") {
			t.Errorf("%s: %s, %q, %v, want %s saying %q", c.name, v.Verdict, v.Sentence, err, c.want, c.says)
		}
	}
}

func TestOpenEndedRunLacksNoTrial(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, run string)
		want   string
	}{
		{"the last is gone", func(t *testing.T, run string) { remove(t, run, "005") }, "the run isn't over: trial 005, of pair modern, comes next, and there is no bundle of it"},
		{"one in the middle is gone", func(t *testing.T, run string) { remove(t, run, "002") },
			"trial 003 of pair modern stands where trial 002 of pair modern belongs: one is missing, or isn't of this run"},
		{"one too many", func(t *testing.T, run string) {
			open("006").writeTo(t, run)
		}, "the run was over before trial 006: its rule had ended every pair"},
	} {
		run := writeOpen(t)
		c.change(t, run)
		if _, err := judge.Run(run); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// remove takes a trial away, from the index too: what is left must still add up.
func remove(t *testing.T, run, trial string) {
	t.Helper()
	must(t, os.RemoveAll(filepath.Join(run, "trials", trial)))
	x, err := bundle.ReadIndex(run)
	must(t, err)
	x.Trials = slices.DeleteFunc(x.Trials, func(t bundle.IndexedTrial) bool { return t.ID == trial })
	must(t, x.Write(run))
}

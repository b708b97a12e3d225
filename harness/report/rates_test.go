package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// outcomes is a trial of a vulnerable and a fixed arm, and of a candidate if there is a third outcome.
func outcomes(pair string, of ...verdict.Outcome) verdict.Trial {
	t := verdict.Trial{Pair: pair}
	for i, o := range of {
		role := []string{"vulnerable", "fixed", "candidate"}[i]
		t.Arms = append(t.Arms, verdict.Arm{Name: role, Role: role, Pair: pair, Outcome: o})
	}
	return t
}

func repeat(n int, t verdict.Trial) (out []verdict.Trial) {
	for range n {
		out = append(out, t)
	}
	return out
}

func TestRates(t *testing.T) {
	trials := repeat(20, outcomes("modern", verdict.Reproduced, verdict.NotReproduced))
	trials = append(trials, outcomes("modern", verdict.Reproduced, verdict.Broken), outcomes("modern", verdict.Inconclusive, verdict.Inconclusive))
	trials = append(trials, outcomes("genuine", verdict.NotReproduced, verdict.Reproduced))
	want := []report.Rate{
		{Pair: "modern", Arm: "vulnerable", Role: "vulnerable", Outcome: "Reproduced", K: 21, N: 21, Others: map[string]int{"Inconclusive": 1},
			Confidence: 0.95, Low: 0.8454, High: 1, Sentence: "21 of 21: at least 86 % at 95 %; not counted: 1 Inconclusive"},
		{Pair: "modern", Arm: "fixed", Role: "fixed", Outcome: "Reproduced", N: 20, Others: map[string]int{"Broken": 1, "Inconclusive": 1},
			Confidence: 0.95, High: 0.1611, Sentence: "0 of 20 with 21 of 21 in the control: at most 14 % at 95 %; not counted: 1 Broken, 1 Inconclusive"},
		{Pair: "genuine", Arm: "vulnerable", Role: "vulnerable", Outcome: "Reproduced", N: 1, Confidence: 0.95, High: 0.7935, Sentence: "0 of 1: at most 95 % at 95 %"},
		{Pair: "genuine", Arm: "fixed", Role: "fixed", Outcome: "Reproduced", K: 1, N: 1, Confidence: 0.95, Low: 0.2065, High: 1,
			Sentence: "1 of 1 with 0 of 1 in the control: at least 5 % at 95 %"},
	}
	if diff := cmp.Diff(want, report.Rates(trials, nil), cmpopts.EquateApprox(0, 5e-5)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	open := report.Rates(trials[:20], &plan.Until{Rule: "separated", Confidence: 0.9, Max: 30})
	if got, want := open[1].Sentence, "0 of 20 with 20 of 20 in the control: at most 20 % at 90 %, whenever one stops"; got != want {
		t.Errorf("open-ended: %q, want %q", got, want)
	}
}

// until plays an open-ended run of two pairs, of which each trial has the outcomes that of says, and returns the pairs in their order and why they stopped.
func until(t *testing.T, most int, of func(pair string) verdict.Trial) (turns []string, stopped map[string]string) {
	t.Helper()
	p := &plan.Plan{Until: &plan.Until{Rule: "separated", Confidence: 0.95, Max: most}, Trials: []plan.Trial{{ID: "001", Pair: "a"}, {ID: "002", Pair: "b"}}}
	s := report.NewSchedule(p)
	for pair, number, ok := s.Next(); ok; pair, number, ok = s.Next() {
		if turns = append(turns, pair); number != len(turns) || number > 2*most {
			t.Fatalf("trial %d is numbered %d", len(turns), number)
		}
		s.Judged(of(pair))
	}
	return turns, s.Stopped()
}

func TestSchedule(t *testing.T) {
	turns, stopped := until(t, 10, func(pair string) verdict.Trial {
		if pair == "a" {
			return outcomes(pair, verdict.Reproduced, verdict.NotReproduced)
		}
		return outcomes(pair, verdict.Reproduced, verdict.Inconclusive)
	})
	if got, want := strings.Join(turns, ""), strings.Repeat("ab", 8)+"bb"; got != want {
		t.Errorf("the pairs came in the order %s, want %s", got, want)
	}
	if diff := cmp.Diff(map[string]string{
		"a": "fixed shows it in at most 49 % of its trials, vulnerable in at least 51 %",
		"b": "the rule was not content after 10 trials: the arms can't be told apart yet",
	}, stopped); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// writeOpen leaves an open-ended run of one pair with at most three trials of it.
func writeOpen(t *testing.T) string {
	t.Helper()
	var run string
	for _, id := range []string{"001", "002", "003"} {
		tr := open(id)
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
	tr.run.Until = &plan.Until{Rule: "separated", Confidence: 0.95, Max: 3}
	tr.run.Trials = []plan.Trial{{ID: "001", Pair: "modern"}}
	return tr
}

func TestOpenEndedRun(t *testing.T) {
	run := writeOpen(t)
	v, err := report.JudgeRun(run)
	if err != nil {
		t.Fatal(err)
	}
	if v.Verdict != verdict.Validated || v.Until == nil || v.Until.Stopped["modern"] != "the rule was not content after 3 trials: the arms can't be told apart yet" {
		t.Errorf("%s, %+v", v.Verdict, v.Until)
	}
	var text, page, x bytes.Buffer
	for _, err := range []error{report.Text(&text, v, false), report.Markdown(&page, v), report.JUnit(&x, v)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	said := "0 of 3 with 3 of 3 in the control: at most 75 % at 95 %, whenever one stops"
	for name, c := range map[string]struct{ in, want string }{
		"text":     {text.String(), "pair modern, fixed: " + said + "\n"},
		"its end":  {text.String(), "pair modern ended: the rule was not content after 3 trials"},
		"markdown": {page.String(), "| modern | fixed | 0 of 3 | 0.0 % | 56.1 % | " + said + " |\n"},
		"JUnit":    {x.String(), `<property name="rate/modern/fixed" value="` + said + `"></property>`},
	} {
		if !strings.Contains(c.in, c.want) {
			t.Errorf("%s lacks %q:\n%s", name, c.want, c.in)
		}
	}
	one, err := report.JudgeTrial(filepath.Join(run, "trials", "002"))
	if err != nil || one.Verdict != verdict.Validated || one.ID != "002" {
		t.Errorf("trial 002: %s, %v", one.Verdict, err)
	}
}

func TestOpenEndedRunLacksNoTrial(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, run string)
		want   string
	}{
		{"the last is gone", func(t *testing.T, run string) { remove(t, run, "003") }, "the run isn't over: trial 003, of pair modern, comes next, and there is no bundle of it"},
		{"one in the middle is gone", func(t *testing.T, run string) { remove(t, run, "002") },
			"trial 003 of pair modern stands where trial 002 of pair modern belongs: one is missing, or isn't of this run"},
		{"one too many", func(t *testing.T, run string) {
			open("004").writeTo(t, run)
		}, "the run was over before trial 004: its rule was content with every pair"},
	} {
		run := writeOpen(t)
		c.change(t, run)
		if _, err := report.JudgeRun(run); err == nil || !strings.Contains(err.Error(), c.want) {
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

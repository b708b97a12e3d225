package report_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Whoever survives was tried with some of the ways to the bug. Every verdict that lets an arm pass says with which.
func TestAVerdictThatPassesSaysWhatWasTried(t *testing.T) {
	tried := &scenario.Tried{Ways: "the runtime is slow", Not: "a runtime that is gone"}
	const says = "; the way to the bug that was tried: the runtime is slow; ways that were not tried: a runtime that is gone"
	single, lone, shown := newTrial(), newTrial(), newTrial()
	lone.only = lone.fixed
	shown.fixed.after = "goroutine 9 [chan send]"
	for _, tr := range []*trial{single, lone, shown} {
		tr.plan.Tried = tried
	}
	var openEnded string
	for _, id := range []string{"001", "002", "003", "004"} {
		tr := open(id)
		tr.plan.Tried, tr.run.Trials = tried, []plan.Trial{{ID: "001", Pair: "modern", Tried: tried}}
		if openEnded == "" {
			openEnded = tr.write(t)
		} else {
			tr.writeTo(t, openEnded)
		}
	}
	for _, c := range []struct {
		name, run string
		exit      int
		want      bool
	}{
		{"one trial", single.write(t), 0, true}, {"the fixed arm alone", lone.write(t), 0, true}, {"an open-ended run", openEnded, 0, true},
		{"an arm that has it", shown.write(t), 1, false},
	} {
		v, err := judge.Run(c.run)
		if err != nil || v.ExitCode != c.exit || strings.Contains(v.Sentence, says) != c.want {
			t.Errorf("%s: %s, %v: %q, want it to say what was tried: %t", c.name, v.LastLine(), err, v.Sentence, c.want)
		}
	}
}

// What was tried and what weakens a run stand by themselves. What decided the verdict stays in the headline.
func TestTheHeadlineIsNotRepeated(t *testing.T) {
	tr := newTrial()
	tr.plan.Tried = &scenario.Tried{Ways: "the runtime is slow", Not: "a runtime that is gone"}
	tr.plan.Deviates = plan.Deviations{{Code: plan.CodeSetting, Name: "latency", Text: "latency is set to 80ms"}}
	run := tr.write(t)
	v, err := judge.Run(run)
	must(t, err)
	inOrder(t, reports(t, v)[report.PageFile], `<p class="why">fixed did not show the incident under the fault that reproduced it in vulnerable.</p>`, "1 thing weakens this run",
		"What was tried, and what was not</h2>", "<li>the way to the bug that was tried: the runtime is slow; ways that were not tried: a runtime that is gone.</li>",
		"What weakens this run</h2>", "<li>latency is set to 80ms.</li>")
	x, err := bundle.ReadIndex(run)
	must(t, err)
	x.Complete = false
	must(t, x.Write(run))
	v, err = judge.Run(run)
	must(t, err)
	page := reports(t, v)[report.PageFile]
	inOrder(t, page, "<h1>Inconclusive</h1>", "the run was cut short, or isn&#39;t over", "run it again to its end", "What weakens this run</h2>")
	if n := strings.Count(page, "the run was cut short"); n != 1 {
		t.Errorf("the page says %d times that the run was cut short", n)
	}
}

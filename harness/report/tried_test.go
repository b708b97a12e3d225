package report_test

import (
	"strings"
	"testing"

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
		v, err := report.JudgeRun(c.run)
		if err != nil || v.ExitCode != c.exit || strings.Contains(v.Sentence, says) != c.want {
			t.Errorf("%s: %s, %v: %q, want it to say what was tried: %t", c.name, v.LastLine(), err, v.Sentence, c.want)
		}
	}
}

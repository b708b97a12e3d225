package report_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kube-relapse/relapse/harness/check/probes"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// Each cause of an Inconclusive trial has its own next step, with which the arm's reason and the trial's sentence end.
func TestEveryInconclusiveSaysWhatToDoNext(t *testing.T) {
	const again = "run it again on a machine that is less busy"
	for _, c := range []struct {
		name   string
		change func(*trial)
		remove string // files of the bundle
		arm    string // whose reason ends with the step; "" if it is the trial's own
		next   string
	}{
		{"another binary", func(tr *trial) { tr.fixed.identity = same(digestV) }, "", "fixed", "run it again, and leave the arm's binary alone while it runs"},
		{"another toolchain", func(tr *trial) { tr.fixed.world.GoVersion = "go1.25.1" }, "", "vulnerable",
			"run relapse cache prune and then it again, so that both arms are built by one toolchain with one set of flags"},
		{"no digest", func(tr *trial) { tr.fixed.identity = same("") }, "", "fixed",
			again + ", so that identity of fixed is recorded all the time: the running binary has to be hashed before the fault and in the recovery"},
		{"an upgrade that no fault brought", func(tr *trial) {
			tr.plan.NoFaults, tr.fixed.identity = true, same("")
			tr.fixed.planned.Source.Before = []scenario.Earlier{{Version: "v1.33.0"}}
		}, "", "fixed", "run it again without --no-faults"},
		{"not looked at in the end", func(tr *trial) { tr.fixed.identity = looked(func(s int) bool { return s < 65 }) }, "", "fixed",
			again + ", so that identity of fixed is recorded all the time: the process has to be looked at within 15s of the beginning and of the end"},
		{"it ended, and nobody knows by what", func(tr *trial) {
			tr.vulnerable.identity = killedAt(55)
			tr.plan.Signature[0].Spec = &holds{Artifact: "restart", Text: "chan send", Ended: 54}
		}, "", "vulnerable", "run it again with a smaller load or fault, so that more snapshots show what came before the end of the process (--set; relapse explain says what can be set)"},
		{"not steady", func(tr *trial) { tr.fixed.steady = "no" }, "", "fixed",
			"give it longer to become steady, with --set phases.steady.deadline=4m0s, or see in the arm's log in the bundle what keeps it"},
		{"never past its steady state", func(tr *trial) {
			tr.phases = []string{"steady", "end"}
			tr.vulnerable.steady, tr.fixed.steady = "no", "no"
		}, "", "fixed", "give it longer to become steady, with --set phases.steady.deadline=4m0s, or see in the arm's log in the bundle what keeps it"},
		{"well, beside a control that wasn't", func(tr *trial) {
			tr.phases = []string{"steady", "end"}
			tr.fixed.steady = "no"
		}, "", "vulnerable", "run it again, and give it longer to get past the phase steady, with --set phases.steady.deadline=4m0s: the phase baseline never began"},
		{"nobody knows if it was steady", func(tr *trial) { tr.fixed.steady = "" }, "", "fixed",
			again + ", or give it longer, with --set phases.steady.deadline=4m0s, so that metrics of fixed says more"},
		{"ill before the fault", func(tr *trial) { tr.vulnerable.before = "goroutine 1 [chan send]" }, "", "vulnerable",
			again + "; if it is the same, this build shows the signature without any fault, and what the fault does to it can't be judged"},
		{"nobody knows how it was before the fault", func(tr *trial) { tr.vulnerable.before = "" }, "", "vulnerable",
			again + ", or give it longer, with --set phases.baseline.atLeast=16s, so that goroutines.debug2 of vulnerable says more"},
		{"not exposed", func(tr *trial) { tr.fixed.exposed = "fast" }, "", "fixed",
			"run it again with a larger fault, or give it longer to take effect, with --set phases.fault.deadline=44m0s (relapse explain says what can be set)"},
		{"nobody knows if it was exposed", func(tr *trial) { tr.fixed.exposed = "" }, "", "fixed",
			again + ", or give it longer, with --set phases.fault.deadline=44m0s, so that configz of fixed says more"},
		{"no faults", func(tr *trial) {
			tr.plan.NoFaults = true
			tr.vulnerable.exposed, tr.fixed.exposed = "fast", "fast"
		}, "", "vulnerable", "run it again without --no-faults"},
		{"no faults, so that a load left no record", func(tr *trial) {
			tr.plan.NoFaults, tr.plan.Signature[0].Kind = true, "answers"
			tr.plan.Signature[0].Spec = &probes.Answers{Load: "trigger", AtLeast: "1"}
		}, "", "vulnerable", "run it again without --no-faults"},
		{"a load that left no record", func(tr *trial) {
			tr.plan.Signature[0].Kind, tr.plan.Signature[0].Spec = "answers", &probes.Answers{Load: "calls", AtLeast: "1"}
		}, "", "vulnerable", again},
		{"a part of the signature unknown", func(tr *trial) {
			tr.plan.Signature = append(tr.plan.Signature, unseen)
			tr.vulnerable.more = func(w *bundle.Writer) { record(w, "vulnerable", bundle.Restart, 65, "x") }
		}, "", "fixed", again + ", or give it longer, with --set phases.recovery.deadline=6m0s, so that restart of fixed says more"},
		{"a part of the signature asked in a phase that never began", func(tr *trial) {
			before := tr.plan.Signature[0]
			before.Name, before.Phase = "later", "lifted"
			tr.plan.Signature = append(tr.plan.Signature, before)
		}, "", "vulnerable", "run it again, and give it longer to get past the phase recovery, with --set phases.recovery.deadline=6m0s: the phase lifted never began"},
		{"no signature", func(tr *trial) { tr.plan.Signature = nil }, "", "vulnerable", "give the scenario checks to ask: an empty list proves nothing"},
		{"nobody knows if it is well", func(tr *trial) { tr.fixed.health = "" }, "", "fixed",
			again + ", or give it longer, with --set phases.recovery.deadline=6m0s, so that containers of fixed says more"},
		{"dumps were deleted", func(*trial) {}, "goroutines.debug2-fixed", "fixed", "judge a copy of the bundle that has all of its files, or run it again"},
		{"which process it was was deleted", func(*trial) {}, "identity-fixed", "fixed", "judge a copy of the bundle that has all of its files, or run it again"},
		{"what no check reads was deleted", func(tr *trial) {
			tr.fixed.more = func(w *bundle.Writer) { record(w, "fixed", bundle.Heap, 65, "x") }
		}, "heap-fixed", "", "judge a copy of the bundle that has all of its files, or run it again"},
		{"one binary with two outcomes", func(tr *trial) { tr.vulnerable.world.Digest, tr.vulnerable.identity = digestF, same(digestF) }, "", "",
			"run it again with --repeat 5, which shows how often either outcome comes of the same binary"},
		{"the control doesn't show it", func(tr *trial) {
			tr.vulnerable.after, tr.vulnerable.health, tr.fixed.health = "goroutine 9 [select]", "well", "ill"
		}, "", "", "run it again with a larger fault, which brings the incident back in vulnerable (--set; relapse explain says what can be set)"},
		{"the control is ill with something else", func(tr *trial) { tr.vulnerable.after = "goroutine 9 [select]"; tr.vulnerable.health = "ill" }, "", "",
			again + "; if vulnerable is Broken again, its log in the bundle says what else happened to it"},
		{"a lone arm", func(tr *trial) { tr.only = tr.fixed; tr.fixed.exposed = "fast" }, "", "fixed",
			"run it again with a larger fault, or give it longer to take effect, with --set phases.fault.deadline=44m0s (relapse explain says what can be set)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTrial()
			p := &tr.plan.Phases
			p.Steady.Deadline.Duration, p.Baseline.AtLeast.Duration = 2*time.Minute, 8*time.Second
			p.Fault.Deadline.Duration, p.Recovery.Deadline.Duration = 22*time.Minute, 3*time.Minute
			c.change(tr)
			run := tr.write(t)
			if c.remove != "" {
				removeArtifact(t, run, c.remove)
			}
			v, err := judge.Run(run)
			if err != nil {
				t.Fatal(err)
			}
			if v.Verdict != verdict.VerdictInconclusive || v.ExitCode != verdict.ExitInconclusive || !strings.HasSuffix(v.Sentence, verdict.NextStep+c.next) {
				t.Errorf("%s (%d), %q, want Inconclusive (3) with the next step %q", v.Verdict, v.ExitCode, v.Sentence, c.next)
			}
			for _, a := range v.Arms {
				if strings.Contains(a.Reason, verdict.NextStep) != (a.Outcome == verdict.Inconclusive) {
					t.Errorf("%s is %s: %s", a.Name, a.Outcome, a.Reason)
				}
				if a.Name == c.arm && !strings.HasSuffix(a.Reason, verdict.NextStep+c.next) {
					t.Errorf("%s: %s, want the next step %q", a.Name, a.Reason, c.next)
				}
			}
			var text strings.Builder
			if err := report.Text(&text, v, false); err != nil || !strings.Contains(text.String(), c.next) {
				t.Errorf("%v, the text lacks the next step %q:\n%s", err, c.next, text.String())
			}
		})
	}
}

// What a check saw is cut in the terminal's text; what to do next is not.
func TestTheNextStepIsNotCut(t *testing.T) {
	tr := newTrial()
	tr.plan.Exposure = []plan.Check{tr.plan.Exposure[0].AnyOf[0]}
	tr.fixed.exposed = strings.Repeat("fast ", 300)
	v, err := judge.Run(tr.write(t))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := report.Text(&text, v, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fast …\n", "\nnext: run it again with a larger fault"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in:\n%s", want, text.String())
		}
	}
	for line := range strings.Lines(text.String()) {
		if strings.Contains(line, "…") && utf8.RuneCountInString(line) > 121 {
			t.Errorf("a line of %d characters: %s", utf8.RuneCountInString(line), line)
		}
	}
}

package probes_test

import (
	"fmt"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/probes"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestProbeDone(t *testing.T) {
	recovery := check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
	done := bundle.ProbeRecord{Ended: bundle.ProbeDone}
	second := func(tr *checktest.Trial) {
		tr.WorkProbe(checktest.Arm, 310, done, "created", "running", "again created", "again running", "again gone")
	}
	for _, c := range []struct {
		name string
		fill func(*checktest.Trial)
		met  check.Truth
		seen string
		none bool // of the evidence
	}{
		{"every step", func(tr *checktest.Trial) { tr.WorkProbe(checktest.Arm, 300, done, "created", "running", "gone") }, check.True,
			"a pod on worker: created after 1s, running after 1s, gone after 1s", false},
		{"only the second time", second, check.Unknown, "gone after 1s, in try 2; try 1 began at 10:05:10: nothing says when it has settled", false},
		{"one that never ran", func(tr *checktest.Trial) {
			tr.WorkProbe(checktest.Arm, 300, bundle.ProbeRecord{Ended: bundle.ProbeFailed, Why: "running: not done within 55s: the pod is Pending"}, "created", "running")
		}, check.False, "created after 1s, not running; running: not done within 55s: the pod is Pending", false},
		{"cut off by the end of the phase", func(tr *checktest.Trial) {
			tr.WorkProbe(checktest.Arm, 300, bundle.ProbeRecord{Ended: bundle.ProbeCut, Why: "context canceled"}, "created", "running")
		}, check.Unknown, "not running; cut off: context canceled", false},
		{"an API server that took no pod", func(tr *checktest.Trial) {
			tr.WorkProbe(checktest.Arm, 300, bundle.ProbeRecord{Ended: bundle.ProbeUnasked, Why: "created: connection refused"}, "created")
		}, check.Unknown, "not created; no probe: created: connection refused", false},
		{"done without steps", func(tr *checktest.Trial) { tr.WorkProbe(checktest.Arm, 300, done) }, check.Unknown, "it says that it is done, and not every step is there", false},
		{"nothing", func(*checktest.Trial) {}, check.Unknown, "the probe pod left no record of the phase recovery in vulnerable", true},
		{"before the fault was lifted", func(tr *checktest.Trial) { tr.WorkProbe(checktest.Arm, 60, done, "created") }, check.Unknown, "left no record of the phase recovery", true},
		{"of the other arm", func(tr *checktest.Trial) { tr.WorkProbe(checktest.Other, 300, done, "created") }, check.Unknown, "left no record of the phase recovery", true},
		{"another probe's", func(tr *checktest.Trial) {
			tr.WorkProbe(checktest.Arm, 300, bundle.ProbeRecord{Name: "collection", Ended: bundle.ProbeDone}, "created")
		}, check.Unknown, "left no record of the phase recovery", true},
		{"a record that couldn't be written", func(tr *checktest.Trial) { tr.Fail(bundle.WorkProbe, checktest.Arm, 300, "disk full") }, check.Unknown, "disk full", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := checktest.Question{Kind: "probeDone", Spec: `{"probe":"pod"}`, Scope: recovery, Met: c.met, Seen: c.seen, Wanted: "every step of the probe pod is done"}
			q.Fill = func(tr *checktest.Trial) { tr.Phases(); c.fill(tr) }
			if !c.none {
				q.Evidence = []bundle.Kind{bundle.WorkProbe}
			}
			checktest.Open(t, q)
		})
	}
}

func TestProbeDoneNamesItsProbe(t *testing.T) {
	if err := (&probes.ProbeDone{}).Validate(); err == nil || fmt.Sprint(err) != "probe is empty (want the name of a load)" {
		t.Errorf("without a probe: %v", err)
	}
}

// A second try counts only where the first began before the subject was over what the fault left behind.
func TestProbeDoneOnlyTheSecondTime(t *testing.T) {
	works := []bundle.Kind{bundle.WorkProbe}
	both := append(works, bundle.MetricSamples)
	with := func(fill func(tr *checktest.Trial, st *bundle.Stream)) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			tr.WorkProbe(checktest.Arm, 310, bundle.ProbeRecord{Ended: bundle.ProbeDone}, "created", "running", "again created", "again running", "again gone")
			st := tr.Stream(bundle.MetricSamples, checktest.Arm)
			fill(tr, st)
			st.Alive(tr.At(0))
			st.Alive(tr.At(394))
		}
	}
	every := func(seconds float64) func(*checktest.Trial) { // a relist ends
		return with(func(tr *checktest.Trial, st *bundle.Stream) {
			tr.Series(st, "relists_total", 0, 394, func(s float64) float64 { return float64(int(s / seconds)) })
		})
	}
	checktest.Run(t, []checktest.Question{
		{Name: "after it had settled", Fill: every(1.1), Met: check.False, Evidence: both, Seen: "in try 2; try 1 began at 10:05:10: relists_total had grown by"},
		{Name: "before it had settled", Fill: every(30), Met: check.True, Evidence: both, Seen: "in try 2; try 1 began at 10:05:10: relists_total had grown by"},
		{Name: "nobody counted around that time", Met: check.Unknown, Evidence: both, Seen: "nothing says whether relists_total had grown by 5 before",
			Fill: with(func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, "relists_total", 0, 200, func(s float64) float64 { return s })
			})},
		{Name: "the counter began anew", Met: check.Unknown, Evidence: both, Seen: "relists_total was reset at",
			Fill: with(func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, "relists_total", 0, 394, func(s float64) float64 { return float64(int(s) % 305) })
			})},
		{Name: "no metrics", Met: check.Unknown, Evidence: works, Seen: "nothing says whether relists_total had grown by 5 before", Fill: func(tr *checktest.Trial) {
			tr.Phases()
			tr.WorkProbe(checktest.Arm, 310, bundle.ProbeRecord{Ended: bundle.ProbeDone}, "created", "again created", "again gone")
		}},
		{Name: "the first time", Met: check.True, Evidence: works, Seen: "created after 1s, gone after 1s", Fill: func(tr *checktest.Trial) {
			tr.Phases()
			tr.WorkProbe(checktest.Arm, 310, bundle.ProbeRecord{Ended: bundle.ProbeDone}, "created", "gone")
		}},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.Wanted = "probeDone", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}, "every step of the probe pod is done"
		q.Spec = `{"probe":"pod","settled":{"metric":"relists_total","by":5}}`
	})
	checktest.Refused(t, "probeDone", `{"probe":"pod","settled":{"metric":"","by":0}}`, "settled.metric is empty\nsettled.by is 0 (want above 0)")
}

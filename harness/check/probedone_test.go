package check_test

import (
	"fmt"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestProbeDone(t *testing.T) {
	recovery := check.Scope{Arm: arm, Phase: check.Recovery}
	done := bundle.ProbeRecord{Ended: bundle.ProbeDone}
	second := func(tr *trial) {
		tr.workProbe(arm, 310, done, "created", "running", "again created", "again running", "again gone")
	}
	for _, c := range []struct {
		name string
		fill func(*trial)
		met  check.Truth
		seen string
		none bool // of the evidence
	}{
		{"every step", func(tr *trial) { tr.workProbe(arm, 300, done, "created", "running", "gone") }, check.True,
			"a pod on worker: created after 1s, running after 1s, gone after 1s", false},
		{"only the second time", second, check.Unknown, "gone after 1s, in try 2; try 1 began at 10:05:10: nothing says when it has settled", false},
		{"one that never ran", func(tr *trial) {
			tr.workProbe(arm, 300, bundle.ProbeRecord{Ended: bundle.ProbeFailed, Why: "running: not done within 55s: the pod is Pending"}, "created", "running")
		}, check.False, "created after 1s, not running; running: not done within 55s: the pod is Pending", false},
		{"cut off by the end of the phase", func(tr *trial) {
			tr.workProbe(arm, 300, bundle.ProbeRecord{Ended: bundle.ProbeCut, Why: "context canceled"}, "created", "running")
		}, check.Unknown, "not running; cut off: context canceled", false},
		{"an API server that took no pod", func(tr *trial) {
			tr.workProbe(arm, 300, bundle.ProbeRecord{Ended: bundle.ProbeUnasked, Why: "created: connection refused"}, "created")
		}, check.Unknown, "not created; no probe: created: connection refused", false},
		{"done without steps", func(tr *trial) { tr.workProbe(arm, 300, done) }, check.Unknown, "it says that it is done, and not every step is there", false},
		{"nothing", func(*trial) {}, check.Unknown, "the probe pod left no record of the phase recovery in vulnerable", true},
		{"before the fault was lifted", func(tr *trial) { tr.workProbe(arm, 60, done, "created") }, check.Unknown, "left no record of the phase recovery", true},
		{"of the other arm", func(tr *trial) { tr.workProbe(other, 300, done, "created") }, check.Unknown, "left no record of the phase recovery", true},
		{"another probe's", func(tr *trial) {
			tr.workProbe(arm, 300, bundle.ProbeRecord{Name: "collection", Ended: bundle.ProbeDone}, "created")
		}, check.Unknown, "left no record of the phase recovery", true},
		{"a record that couldn't be written", func(tr *trial) { tr.fail(bundle.WorkProbe, arm, 300, "disk full") }, check.Unknown, "disk full", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := question{kind: "probeDone", spec: `{"probe":"pod"}`, scope: recovery, met: c.met, seen: c.seen, wanted: "every step of the probe pod is done"}
			q.fill = func(tr *trial) { tr.phases(); c.fill(tr) }
			if !c.none {
				q.evidence = []bundle.Kind{bundle.WorkProbe}
			}
			ask(t, q)
		})
	}
}

func TestProbeDoneNamesItsProbe(t *testing.T) {
	if err := (&check.ProbeDone{}).Validate(); err == nil || fmt.Sprint(err) != "probe is empty (want the name of a load)" {
		t.Errorf("without a probe: %v", err)
	}
}

// A second try counts only where the first began before the subject was over what the fault left behind.
func TestProbeDoneOnlyTheSecondTime(t *testing.T) {
	works := []bundle.Kind{bundle.WorkProbe}
	both := append(works, bundle.MetricSamples)
	with := func(fill func(tr *trial, st *bundle.Stream)) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			tr.workProbe(arm, 310, bundle.ProbeRecord{Ended: bundle.ProbeDone}, "created", "running", "again created", "again running", "again gone")
			st := tr.stream(bundle.MetricSamples, arm)
			fill(tr, st)
			st.Alive(tr.at(0))
			st.Alive(tr.at(394))
		}
	}
	every := func(seconds float64) func(*trial) { // a relist ends
		return with(func(tr *trial, st *bundle.Stream) {
			tr.series(st, "relists_total", 0, 394, func(s float64) float64 { return float64(int(s / seconds)) })
		})
	}
	run(t, []question{
		{name: "after it had settled", fill: every(1.1), met: check.False, evidence: both, seen: "in try 2; try 1 began at 10:05:10: relists_total had grown by"},
		{name: "before it had settled", fill: every(30), met: check.True, evidence: both, seen: "in try 2; try 1 began at 10:05:10: relists_total had grown by"},
		{name: "nobody counted around that time", met: check.Unknown, evidence: both, seen: "nothing says whether relists_total had grown by 5 before",
			fill: with(func(tr *trial, st *bundle.Stream) {
				tr.series(st, "relists_total", 0, 200, func(s float64) float64 { return s })
			})},
		{name: "the counter began anew", met: check.Unknown, evidence: both, seen: "relists_total was reset at",
			fill: with(func(tr *trial, st *bundle.Stream) {
				tr.series(st, "relists_total", 0, 394, func(s float64) float64 { return float64(int(s) % 305) })
			})},
		{name: "no metrics", met: check.Unknown, evidence: works, seen: "nothing says whether relists_total had grown by 5 before", fill: func(tr *trial) {
			tr.phases()
			tr.workProbe(arm, 310, bundle.ProbeRecord{Ended: bundle.ProbeDone}, "created", "again created", "again gone")
		}},
		{name: "the first time", met: check.True, evidence: works, seen: "created after 1s, gone after 1s", fill: func(tr *trial) {
			tr.phases()
			tr.workProbe(arm, 310, bundle.ProbeRecord{Ended: bundle.ProbeDone}, "created", "gone")
		}},
	}, func(q *question) {
		q.kind, q.scope, q.wanted = "probeDone", check.Scope{Arm: arm, Phase: check.Recovery}, "every step of the probe pod is done"
		q.spec = `{"probe":"pod","settled":{"metric":"relists_total","by":5}}`
	})
	refused(t, "probeDone", `{"probe":"pod","settled":{"metric":"","by":0}}`, "settled.metric is empty\nsettled.by is 0 (want above 0)")
}

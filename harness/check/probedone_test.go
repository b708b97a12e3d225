package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// workProbe writes a probe's record: each step takes a second, and the last of a probe that isn't done was never seen.
func (tr *trial) workProbe(cell string, seconds float64, p bundle.ProbeRecord, steps ...string) {
	tr.t.Helper()
	p.Work, p.Start, p.End = "a pod on worker", tr.at(seconds), tr.at(seconds+float64(len(steps)))
	if p.Name == "" {
		p.Name = "pod"
	}
	for i, s := range steps {
		st := bundle.ProbeStep{Try: 1, Step: s, Asked: tr.at(seconds + float64(i))}
		if rest, again := strings.CutPrefix(s, "again "); again {
			st.Try, st.Step = 2, rest
		}
		if i < len(steps)-1 || p.Ended == bundle.ProbeDone {
			st.Seen = tr.at(seconds + float64(i) + 1)
		}
		p.Steps = append(p.Steps, st)
	}
	_, err := tr.w.WriteJSON(bundle.Meta{Kind: bundle.WorkProbe, Cell: cell, Time: p.Start}, p)
	tr.must(err)
}

func TestProbeDone(t *testing.T) {
	recovery := check.Scope{Cell: arm, Phase: check.Recovery}
	done := bundle.ProbeRecord{Ended: bundle.ProbeDone}
	for _, c := range []struct {
		name string
		fill func(*trial)
		met  check.Tri
		seen string
		none bool // of the evidence
	}{
		{"every step", func(tr *trial) { tr.workProbe(arm, 300, done, "created", "running", "gone") }, check.Met,
			"a pod on worker: created after 1s, running after 1s, gone after 1s", false},
		{"only the second time", func(tr *trial) {
			tr.workProbe(arm, 300, done, "created", "running", "again created", "again running", "again gone")
		}, check.Met, "created after 1s, running after 1s, gone after 1s, in try 2", false},
		{"one that never ran", func(tr *trial) {
			tr.workProbe(arm, 300, bundle.ProbeRecord{Ended: bundle.ProbeFailed, Why: "running: not done within 55s: the pod is Pending"}, "created", "running")
		}, check.NotMet, "created after 1s, not running; running: not done within 55s: the pod is Pending", false},
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

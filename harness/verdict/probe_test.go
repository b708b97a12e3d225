package verdict_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/kube-relapse/relapse/harness/build/mutate"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/objects"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// ticks are the kinds of healed checks for which ticking records evidence, probes aside.
var ticks = []string{"metricIncrease", "nodeReady", "healthy"}

// ticking is a trial of a scenario's fixed arm, whose node was NotReady in the fault phase and is Ready, and which does
// everything that shows that it lives: its counters grow, its endpoints answer. Of healed it has the scenario's own
// checks.
func ticking(t *testing.T, name string, probe *bundle.ProbeRecord) verdict.Trial {
	t.Helper()
	s, err := scenario.Load("../../scenarios/" + name + "/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(s, plan.Options{Arms: []string{"fixed"}})
	if err != nil {
		t.Fatal(err)
	}
	tr := p.Trials[0]
	ready := func(phase, status string) []plan.Check {
		return []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "node", Kind: "nodeReady", Phase: phase}, Spec: &objects.NodeReady{Status: status, Hold: "5s"}}}
	}
	tr.Steady, tr.Exposure, tr.Signature, tr.Info, tr.Restart = ready(check.Steady, "True"), ready(check.Fault, "False"), ready(check.Recovery, "False"), nil, nil
	tr.Healed = slices.DeleteFunc(tr.Healed, func(c plan.Check) bool { return !slices.Contains(append(ticks, "probeDone"), c.Kind) })

	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	at := func(second int) time.Time { return time.Date(2026, 3, 1, 10, 0, second, 0, time.UTC) }
	must(w.SetWorld(bundle.World{Arms: []bundle.ArmWorld{{Arm: "fixed", Digest: strings.Repeat("a", 64)}}}))
	for i, phase := range []string{check.Steady, check.Baseline, check.Fault, check.Lifting, check.Recovery, bundle.EndPhase} {
		w.Emit(event.Event{Time: at([]int{0, 20, 40, 100, 105, 305}[i]), Type: event.Phase, Message: phase})
	}
	stream := func(kind bundle.Kind, line func(second int) []any) {
		st, err := w.Stream(bundle.Meta{Kind: kind, Arm: "fixed", Time: at(0)}, "jsonl")
		must(err)
		for second := 0; second <= 305; second += 2 {
			for _, l := range line(second) {
				must(st.JSON(l))
			}
		}
		st.Alive(at(305))
		must(st.Close())
	}
	stream(bundle.Identity, func(s int) []any {
		return []any{bundle.IdentitySample{Time: at(s), PID: 7, StartTicks: 1000, SHA256: strings.Repeat("a", 64)}}
	})
	stream(bundle.Nodes, func(s int) []any {
		n := bundle.NodeStatus{Time: at(s), Node: "worker", Status: "True", Reason: "KubeletReady", Beat: at(s)}
		if s >= 50 && s < 104 {
			n.Status, n.Reason = "False", "KubeletNotReady"
		}
		return []any{n}
	})
	stream(bundle.MetricSamples, func(s int) []any {
		var out []any
		for _, name := range []string{"kubelet_pleg_last_seen_seconds", "kubelet_pleg_relist_duration_seconds_count"} {
			out = append(out, bundle.MetricSample{Time: at(s), Done: at(s), Name: name, Value: float64(at(s).Unix())})
		}
		return out
	})
	stream(bundle.Health, func(s int) []any {
		var out []any
		for _, path := range []string{"/readyz", "/healthz/syncloop"} {
			out = append(out, bundle.HealthSample{Time: at(s), Done: at(s), Path: path, Code: 200})
		}
		return out
	})
	if probe != nil {
		probe.Start, probe.End = at(115), at(170)
		for i := range probe.Steps {
			probe.Steps[i].Asked = at(115 + i)
			if probe.Ended == bundle.ProbeDone || i < len(probe.Steps)-1 {
				probe.Steps[i].Seen = at(116 + i)
			}
		}
		_, err := w.WriteJSON(bundle.Meta{Kind: bundle.WorkProbe, Arm: "fixed", Time: probe.Start}, probe)
		must(err)
	}
	must(w.Seal())
	sealed, err := bundle.Open(w.Dir())
	must(err)
	out, err := verdict.Judge(sealed, tr)
	must(err)
	return out
}

// A subject that ticks and doesn't do its work is not well.
func TestWhatTicksAndDoesNotWorkIsBroken(t *testing.T) {
	try := func(names ...string) []bundle.ProbeStep {
		var out []bundle.ProbeStep
		for _, n := range names {
			out = append(out, bundle.ProbeStep{Try: 1, Step: n})
		}
		return out
	}
	for _, c := range []struct {
		name, scenario string
		probe          *bundle.ProbeRecord
		outcome        verdict.Outcome
		reason         string
	}{
		{"a kubelet that runs its pod", "pleg-deadlock",
			&bundle.ProbeRecord{Name: "pod", Work: "a pod on worker", Ended: bundle.ProbeDone, Steps: try("created", "running", "gone")}, verdict.NotReproduced, "pod-runs: a pod on worker: created after 1s, running after 1s, gone after 1s"},
		{"a kubelet that relists, is Ready and never runs its pod", "pleg-deadlock",
			&bundle.ProbeRecord{Name: "pod", Work: "a pod on worker", Ended: bundle.ProbeFailed, Why: "running: not done within 55s: the pod is Pending", Steps: try("created", "running")}, verdict.Broken, "pod-runs: a pod on worker: created after 1s, not running; running: not done within 55s: the pod is Pending"},
		{"a kubelet that nobody asked", "pleg-deadlock", nil, verdict.Inconclusive, "the probe pod left no record of the phase recovery in fixed"},
		{"an API server that empties the collection", "apiserver-goroutine-leak",
			&bundle.ProbeRecord{Name: "collection", Work: "one DELETECOLLECTION", Ended: bundle.ProbeDone, Steps: try("created", "deleted", "emptied")}, verdict.NotReproduced, "collection-emptied: one DELETECOLLECTION: created after 1s, deleted after 1s, emptied after 1s"},
		{"an API server that answers 200 and leaves the objects", "apiserver-goroutine-leak",
			&bundle.ProbeRecord{Name: "collection", Work: "one DELETECOLLECTION", Ended: bundle.ProbeFailed, Why: "emptied: not done: 50 of 50 ConfigMaps are left", Steps: try("created", "deleted", "emptied")}, verdict.Broken, "not emptied; emptied: not done: 50 of 50 ConfigMaps are left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := ticking(t, c.scenario, c.probe).Arms[0]
			if a.Outcome != c.outcome || !strings.Contains(a.Reason, c.reason) {
				t.Errorf("%s: %s\nwant %s: %s", a.Outcome, a.Reason, c.outcome, c.reason)
			}
			for _, f := range a.Healed {
				if probe := strings.Contains(f.Wanted, "probe"); !probe && f.Met != check.True {
					t.Errorf("%s is %s: %s", f.Name, f.Met, f.Seen)
				}
			}
		})
	}
}

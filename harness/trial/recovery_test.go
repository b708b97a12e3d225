package trial

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/probes"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// worker is a load that does its work when it is let, or is cut off.
type worker struct {
	*story
	let chan struct{} // nil lets it at once
	err error
}

func (*worker) Prepare(context.Context, load.Target) error { return nil }
func (*worker) Makes() []bundle.Kind                       { return []bundle.Kind{bundle.WorkProbe} }
func (l *worker) Run(ctx context.Context, t load.Target, w *bundle.Writer) error {
	l.tell("%s asked in %s on %d nodes", t.Name, t.Arm, len(t.Nodes))
	p := bundle.ProbeRecord{Name: t.Name, Ended: bundle.ProbeDone, Steps: []bundle.ProbeStep{{Try: 1, Step: "worked"}}}
	if l.let != nil {
		select {
		case <-l.let:
		case <-ctx.Done():
			p.Ended = bundle.ProbeCut
		}
	}
	l.tell("%s %s", t.Name, p.Ended)
	at, _ := w.View().Phase(t.Arm, check.Recovery)
	p.Start, p.Steps[0].Asked, p.Steps[0].Seen = at.Start, at.Start, at.Start
	_, err := w.WriteJSON(bundle.Meta{Kind: bundle.WorkProbe, Arm: t.Arm}, p)
	return errors.Join(l.err, err)
}

// recovering is a trial whose healed check asks for a probe, with one load of each phase.
func recovering(t *testing.T, probe *worker) (*trial, *story) {
	t.Helper()
	const arm = "candidate"
	topology := cluster.Topology{Nodes: []cluster.NodeSpec{{Name: cluster.ControlPlane, Role: cluster.ControlPlane, Arm: arm}}}
	w, err := bundle.Create(filepath.Join(t.TempDir(), "trial"))
	if err != nil {
		t.Fatal(err)
	}
	heard := &story{}
	tr := plan.Trial{
		Arms: []plan.Arm{{Arm: scenario.Arm{Name: arm}}}, Clusters: []plan.Cluster{{Name: arm, Topology: topology}},
		Healed: []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "works", Kind: "probeDone", Phase: check.Recovery}, Spec: &probes.ProbeDone{Probe: "probe"}}},
	}
	everywhere := scenario.Target{Mode: "all", Selector: scenario.Selector{Component: "kube-apiserver"}}
	elsewhere := everywhere
	elsewhere.Arm = "fixed"
	events := event.NewStream(w, event.SinkFunc(func(e event.Event) { heard.tell("%s", e.Message) }))
	env := fakeEnvironment(t, tr, &clustertest.Provider{}, event.NewStream())
	return &trial{
		plan: tr, env: env, writer: w, events: events, live: newLive(tr, w, events), collectors: &collectors{phases: map[string]string{}},
		items: &injections{env: env, events: events, loads: []plan.Load{
			{ItemHeader: scenario.ItemHeader{Name: "early", Target: everywhere}, Spec: &worker{story: probe.story}},
			{ItemHeader: scenario.ItemHeader{Name: "probe", Phase: check.Recovery, Target: everywhere}, Spec: probe},
			{ItemHeader: scenario.ItemHeader{Name: "foreign", Phase: check.Recovery, Target: elsewhere}, Spec: probe},
		}},
	}, heard
}

// The recovery goes on until the probe that it is asked about has answered, and only its own loads run in it.
func TestTheRecoveryWaitsForItsProbe(t *testing.T) {
	s := &story{}
	r, heard := recovering(t, &worker{story: s, let: make(chan struct{})})
	r.plan.Phases.Recovery.Deadline.Duration = coverTime
	done := make(chan error, 1)
	go func() { done <- r.watchRecovery(t.Context(), []string{"candidate"}) }()
	r.items.loads[1].Spec.(*worker).let <- struct{}{}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got, want := s.told(), []string{"probe asked in candidate on 1 nodes", "probe done"}; !slices.Equal(got, want) {
		t.Errorf("it went %q, want %q", got, want)
	}
	if said := strings.Join(heard.told(), "\n"); strings.Contains(said, "deadline") {
		t.Errorf("it waited for more: %s", said)
	}
}

// A probe that never answers holds nothing up for longer than the deadline, and is cut off before the phase is over.
func TestAProbeThatNeverAnswersIsCutOff(t *testing.T) {
	s := &story{}
	r, heard := recovering(t, &worker{story: s, let: make(chan struct{})})
	r.plan.Phases.Recovery.Deadline.Duration = 1
	if err := r.watchRecovery(t.Context(), []string{"candidate"}); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(heard.told(), "\n")
	if !strings.Contains(said, "still waiting for candidate (works is unknown: the probe probe left no record of the phase recovery in candidate)") {
		t.Errorf("said: %s", said)
	}
	if got := s.told(); !slices.Contains(got, "probe cut off") && len(got) > 0 { // it may not even have begun
		t.Errorf("it went %q", got)
	}
}

// What a probe can't write down is ours, and no verdict comes of it.
func TestAProbesErrorEndsTheRecovery(t *testing.T) {
	r, _ := recovering(t, &worker{story: &story{}, err: errors.New("disk full")})
	r.live.plan.Healed = nil // it would go on for good
	if err := r.watchRecovery(t.Context(), []string{"candidate"}); err == nil || err.Error() != "running the load probe in candidate: disk full" {
		t.Errorf("it ended with %v", err)
	}
}

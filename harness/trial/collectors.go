package trial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial/environment"
)

// collectors runs a trial's collectors: streams from start to stop, snapshots at intervals and on demand.
type collectors struct {
	env    *environment.Environment
	writer *bundle.Writer
	events *event.Stream
	cancel context.CancelFunc
	wg     sync.WaitGroup
	snaps  []snapshotter

	mu     sync.Mutex
	phases map[string]string
	errs   []error
}

type snapshotter struct {
	name   string
	kind   capture.Snapshotter
	target capture.Target
	turn   chan struct{} // full while a snapshot is taken, so that a collector takes one at a time
}

// startCollectors starts every collector on its targets in the arms. It doesn't wait for the first records of streams,
// because the steady state does.
func startCollectors(
	ctx context.Context,
	env *environment.Environment,
	w *bundle.Writer,
	events *event.Stream,
	arms []string,
) (*collectors, error) {
	all, err := withBuiltIn(env.Trial.Collectors, env.Trial.Place())
	if err != nil {
		return nil, err
	}
	// After Ctrl-C, collectors live long enough to be stopped in order. Their requests have their own time limits.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &collectors{
		env:    env,
		writer: w,
		events: events,
		cancel: cancel,
		phases: map[string]string{},
	}
	for _, item := range all {
		targets, err := s.targets(ctx, item, arms)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("collector %s: %w", item.Name, err), s.stop())
		}
		for _, t := range targets {
			s.start(ctx, item, t)
		}
	}
	return s, nil
}

// withBuiltIn adds the collectors that every trial has. They record which process the subject is, how loaded the host
// is, and, if the arm is a pod, the kubelet's report on it.
func withBuiltIn(items []plan.Collector, placement plan.Placement) ([]plan.Collector, error) {
	builtIn := []string{"identity", "hostPressure"}
	if placement.SharedNodes() {
		builtIn = append(builtIn, "containerStatuses")
	}
	var out []plan.Collector
	for _, kind := range builtIn {
		if hasKind(items, kind) {
			continue
		}
		spec, err := kinds.Make[capture.Collector](kinds.Collector, kind)
		if err != nil {
			return nil, err
		}
		out = append(
			out,
			plan.Collector{
				CollectorHeader: scenario.CollectorHeader{Name: kind, Kind: kind},
				Spec:            spec,
			},
		)
	}
	return append(out, items...), nil
}

func hasKind(items []plan.Collector, kind string) bool {
	for _, i := range items {
		if i.Kind == kind {
			return true
		}
	}
	return false
}

// targets returns what a collector records: the subject in each arm, or each cluster once. Evidence of a cluster that
// belongs to one arm counts for that arm; evidence of a shared cluster counts for no arm.
func (s *collectors) targets(
	ctx context.Context,
	item plan.Collector,
	arms []string,
) ([]capture.Target, error) {
	wide, ok := item.Spec.(capture.ClusterWide)
	whole := ok && wide.ClusterWide() || item.Component != ""
	if whole && !s.env.Trial.Place().OwnCluster() {
		t := capture.Target{
			Arm:     bundle.Shared,
			Cluster: s.env.ClusterOf(arms[0]),
			Phase:   func() string { return "" },
		}
		return instances(t, item.Component), nil
	}
	var out []capture.Target
	for _, arm := range arms {
		t := capture.Target{
			Arm:     arm,
			Cluster: s.env.ClusterOf(arm),
			Phase:   func() string { return s.phaseOf(arm) },
		}
		switch {
		case whole:
			out = append(out, instances(t, item.Component)...)
		case s.env.Trial.Place().SharedNodes():
			comp, err := s.env.Workload(ctx, arm)
			if err != nil {
				return nil, err
			}
			t.Node, t.Component, t.Namespace = comp.Node(), comp, s.env.Namespace(arm)
			out = append(out, t)
		default:
			for _, one := range instances(t, s.env.Trial.Subject) {
				if one.Node.Arm() == arm {
					out = append(out, one)
				}
			}
		}
	}
	return out, nil
}

// instances returns a target for each instance of a component in t's cluster. For "" it returns t, the cluster itself.
func instances(t capture.Target, component string) []capture.Target {
	if component == "" {
		return []capture.Target{t}
	}
	var out []capture.Target
	for _, comp := range t.Cluster.Components(component) {
		t.Node, t.Component = comp.Node(), comp
		out = append(out, t)
	}
	return out
}

func (s *collectors) start(ctx context.Context, item plan.Collector, t capture.Target) {
	if st, ok := item.Spec.(capture.Streamer); ok {
		s.wg.Go(func() {
			if err := st.Stream(ctx, t, s.writer); err != nil && ctx.Err() == nil {
				s.fail(item.Name, t, err)
			}
		})
	}
	sn, ok := item.Spec.(capture.Snapshotter)
	if !ok {
		return
	}
	one := snapshotter{item.Name, sn, t, make(chan struct{}, 1)}
	s.snaps = append(s.snaps, one)
	if every := scenario.Length(item.Every); every > 0 {
		s.wg.Go(func() {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					if item.During == "" || item.During == s.phaseOf(t.Arm) {
						s.take(ctx, one, "schedule")
					}
				}
			}
		})
	}
}

// snapshot makes every snapshotter of the arms take a snapshot now, and waits for all of them.
func (s *collectors) snapshot(ctx context.Context, arms []string, mark string) {
	var wg sync.WaitGroup
	for _, one := range s.snaps {
		for _, c := range arms {
			if one.target.Arm == c {
				wg.Go(func() { s.take(ctx, one, mark) })
			}
		}
	}
	wg.Wait()
}

func (s *collectors) take(ctx context.Context, one snapshotter, mark string) {
	select {
	case one.turn <- struct{}{}:
		defer func() { <-one.turn }()
	case <-ctx.Done(): // Ctrl-C doesn't wait for a long snapshot
	}
	if ctx.Err() != nil {
		return
	}
	one.target.Mark = mark
	err := one.kind.Snapshot(ctx, one.target, s.writer)
	msg := one.name + " taken (" + mark + ")"
	if err != nil {
		msg = one.name + " not taken (" + mark + "): " + err.Error()
	}
	s.events.Emit(event.Event{Type: event.Capture, Arm: one.target.Arm, Message: msg})
}

// fail records that a collector gave up. Checks that need its evidence are unknown from then on.
func (s *collectors) fail(name string, t capture.Target, err error) {
	s.events.Emit(event.Event{Type: event.Warning, Arm: t.Arm,
		Message: fmt.Sprintf("collector %s gave up: %v", name, err)})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, fmt.Errorf("collector %s: %w", name, err))
}

func (s *collectors) phase(arms []string, phase string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range arms {
		s.phases[c] = phase
	}
}

func (s *collectors) phaseOf(arm string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phases[arm]
}

// stop ends the streams, waits for them and returns the collectors' errors.
func (s *collectors) stop() error {
	s.cancel()
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

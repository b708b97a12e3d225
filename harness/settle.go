package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// This file brings up a candidate that may not run at all. A cluster that is made with it would never come up, and nobody could tell whose fault that
// is. So a candidate's node begins with a control's build, and once all nodes are there every arm, control or not, has its own laid and is
// restarted from it: what fails from then on is the arm's doing, and is evidence. An arm that is a pod begins with its own build: its cluster comes up
// without it.

// answerTime is how long a static pod may take to answer after it was restarted; it takes 10 to 40 seconds.
const answerTime = 2 * time.Minute

// silentTime is for how long a candidate that didn't answer is watched beside controls that are well: long enough for any gap to show.
const silentTime = 45 * time.Second

// starter is the build that a cell's node begins with: the arm's own, but for a candidate that of a control that fits its cluster, the fixed one first.
func (w *World) starter(cell string) built {
	own := w.cells[cell]
	i := slices.IndexFunc(w.trial.Cells, func(c plan.Cell) bool { return c.Name == cell })
	if i < 0 || w.trial.Cells[i].Arm.Role != scenario.Candidate || w.trial.Placement == plan.PlacementWorkload {
		return own
	}
	for _, role := range []string{scenario.Fixed, scenario.Vulnerable} {
		for _, c := range w.trial.Cells {
			if c.Arm.Role == role && w.trial.ClusterOf(c.Name).Topology.Version == w.trial.ClusterOf(cell).Topology.Version {
				return w.cells[c.Name]
			}
		}
	}
	return own
}

// lays reports whether arms get their own builds after their clusters are up.
func (w *World) lays() bool {
	return slices.ContainsFunc(w.trial.Cells, func(c plan.Cell) bool { return w.starter(c.Name).digest != w.cells[c.Name].digest })
}

// settle lays every arm's own build in a cluster that has come up, and restarts the arm from it. Controls must answer again; a candidate that doesn't is
// remembered as silent.
func (w *World) settle(ctx context.Context, made cluster.Cluster) error {
	if !w.lays() {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, comp := range made.Components(w.trial.Subject) {
		cell := comp.Node().Cell()
		arm, ours := w.cells[cell]
		if !ours {
			continue
		}
		g.Go(func() error {
			if err := w.replace(ctx, comp, w.trial.Subject, arm.path); err != nil {
				return fmt.Errorf("laying the build of %s: %w", cell, err)
			}
			if w.trial.Subject == "kubelet" { // the steady state waits for nodes
				return nil
			}
			err := answers(ctx, comp)
			if err == nil || ctx.Err() != nil {
				return err
			}
			if !w.candidate(cell) {
				return fmt.Errorf("the %s of %s, a control, doesn't come back: %w", w.trial.Subject, cell, err)
			}
			w.lab.Events.Emit(event.Event{Type: event.Warning, Cell: cell, Message: fmt.Sprintf("the %s of %s doesn't answer: %v", w.trial.Subject, cell, err)})
			w.mu.Lock()
			defer w.mu.Unlock()
			w.silent = append(w.silent, cell)
			return nil
		})
	}
	return g.Wait()
}

// answers waits until a component of the control plane says that it is ready.
func answers(ctx context.Context, comp cluster.Component) error {
	if comp.Name() != "kube-apiserver" { // the others can't be asked from outside: the steady state has to tell
		return nil
	}
	limit, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for {
		body, err := comp.Get(limit, "/readyz")
		if err == nil {
			return body.Close()
		}
		if wait(limit, time.Second) != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("not within %s: %w", answerTime, err)
		}
	}
}

func (w *World) candidate(cell string) bool {
	return slices.ContainsFunc(w.trial.Cells, func(c plan.Cell) bool { return c.Name == cell && c.Arm.Role == scenario.Candidate })
}

// speaking are the cells whose subject answered when it was laid.
func (w *World) speaking(cells []string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(cells), func(c string) bool { return slices.Contains(w.silent, c) })
}

// steady waits for the steady state. Candidates that never get there are left behind, and the controls go on: that one doesn't run is an answer, if a
// control does. It returns the cells that go on; none where a control is not well either.
func (r *trial) steady(ctx context.Context, everyone, speaking []string) ([]string, error) {
	stage := r.lab.stage("steady state", "waiting until every arm is well", r.plan.Phases.Steady.AtLeast.Duration+15*time.Second)
	last := map[string]bool{} // who was well when they were asked last: another look at a busy machine may come before their records do
	well := func(cell string) bool {
		last[cell] = r.met(cell, check.Steady, r.plan.Steady)
		return last[cell]
	}
	p := r.plan.Phases.Steady
	err := r.until(ctx, speaking, p.AtLeast.Duration, p.Deadline.Duration, well)
	if err == nil && len(speaking) < len(everyone) { // a silent one has had its time, and has no loads prepared: it is only watched
		behind := slices.DeleteFunc(slices.Clone(everyone), func(c string) bool { return slices.Contains(speaking, c) })
		err = r.until(ctx, behind, silentTime, silentTime, func(string) bool { return false })
	}
	stage(err)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err == nil {
		return everyone, nil
	}
	var on, behind []string
	control := false // that isn't well
	for _, cell := range everyone {
		switch {
		case last[cell]:
			on = append(on, cell)
		case r.world.candidate(cell):
			behind = append(behind, cell)
		default:
			control = true
		}
	}
	if control || len(on) == 0 {
		r.events.Say(event.Warning, "the steady state never came, so nothing is injected: "+err.Error())
		r.enter(bundle.EndPhase, everyone)
		return nil, nil
	}
	r.events.Say(event.Warning, fmt.Sprintf("%s never got to its steady state, and the others go on: %v", strings.Join(behind, " and "), err))
	r.enter(bundle.EndPhase, behind)
	return on, nil
}

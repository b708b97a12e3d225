package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/fault"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// lifting is the stretch between the fault, which ends when its lift is asked for, and the recovery, which begins when the lift was seen.
const lifting = "lifting"

// lookEvery is how often live checks are asked.
const lookEvery = 2 * time.Second

// trial is one trial under way.
type trial struct {
	plan   plan.Trial
	lab    *Lab
	world  *World
	writer *bundle.Writer
	events *event.Stream
	faults []namedFault
	sched  *scheduler

	complained sync.Once
}

type namedFault struct {
	item  plan.Item
	fault fault.Fault
}

// Trial runs t's phases on the world and leaves a sealed bundle in dir. When ctx ends, faults are recovered and the unsealed bundle stays for
// the caller to remove. An error is something of ours that failed, never a verdict.
func (w *World) Trial(ctx context.Context, t plan.Trial, dir string) (err error) {
	writer, err := bundle.Create(dir)
	if err != nil {
		return err
	}
	for _, e := range w.earlier {
		writer.Emit(e)
	}
	detach := w.lab.Events.Attach(writer)
	defer detach()
	r := &trial{plan: t, lab: w.lab, world: w, writer: writer, events: w.lab.Events}
	if err := r.prepare(); err != nil {
		return err
	}
	r.enter(check.Steady, r.cellNames()) // before the collectors' first record, so that it counts
	if r.sched, err = startCollectors(ctx, r); err != nil {
		return err
	}
	err = r.phases(ctx)
	if err == nil {
		err = r.prove(ctx)
	}
	err = errors.Join(err, r.sched.stop())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil { // the bundle still tells what was seen, and why no verdict can come of it
		r.events.Emit(event.Event{Type: event.Failure, Message: err.Error()})
	}
	detach()
	return errors.Join(err, writer.Seal())
}

// prepare makes the faults, computes their parameters and records what the trial rests on.
func (r *trial) prepare() error {
	raw, err := json.MarshalIndent(r.world.single(r.plan), "", "  ")
	if err != nil {
		return err
	}
	if err := r.writer.PutPlan(raw); err != nil {
		return err
	}
	facts := r.world.facts(r.plan)
	var all []fault.Fault
	for _, item := range r.plan.Faults {
		f, err := fault.New(item.Kind, item.Spec)
		if err != nil {
			return fmt.Errorf("fault %s: %w", item.Name, err)
		}
		r.faults = append(r.faults, namedFault{item, f})
		all = append(all, f)
	}
	var constants []map[string]int64
	for _, c := range facts.Cells {
		constants = append(constants, c.Constants)
	}
	for _, f := range r.faults {
		if c, ok := f.fault.(fault.Computer); ok {
			explained, err := c.Compute(constants, all)
			if err != nil {
				return fmt.Errorf("computing fault %s: %w", f.item.Name, err)
			}
			for k, v := range explained {
				facts.Computed[f.item.Name+"."+k] = v
			}
		}
		if m, ok := f.fault.(fault.Modeller); ok && !r.plan.NoFaults {
			facts.Modelled = append(facts.Modelled, m.Modelled()...)
		}
	}
	return r.writer.SetWorld(facts)
}

// phases runs steady state, baseline, fault and recovery. A steady state that never comes ends the trial: there is nothing to judge.
func (r *trial) phases(ctx context.Context) error {
	everyone := r.cellNames()
	r.sched.phase(everyone, check.Steady)
	stage := r.lab.stage("steady state", "waiting until every arm is well", r.plan.Phases.Steady.AtLeast.Duration+15*time.Second)
	steady := r.until(ctx, everyone, r.plan.Phases.Steady.AtLeast.Duration, r.plan.Phases.Steady.Deadline.Duration, func(cell string) bool {
		return r.met(cell, check.Steady, r.plan.Steady)
	})
	stage(steady)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if steady != nil {
		r.events.Say(event.Warning, "the steady state never came, so nothing is injected: "+steady.Error())
		r.enter("end", everyone)
		return nil
	}
	r.enter(check.Baseline, everyone)
	stage = r.lab.stage("baseline", "recording what is normal", r.plan.Phases.Baseline.AtLeast.Duration)
	err := wait(ctx, r.plan.Phases.Baseline.AtLeast.Duration)
	stage(err)
	if err != nil {
		return err
	}
	if !r.plan.Sequential {
		return r.treat(ctx, everyone)
	}
	for _, cell := range everyone {
		if err := r.treat(ctx, []string{cell}); err != nil {
			return err
		}
	}
	return nil
}

// treat puts cells through fault and recovery together.
func (r *trial) treat(ctx context.Context, cells []string) (err error) {
	p := r.plan.Phases
	r.sched.snapshot(ctx, cells, "phase") // the last of the baseline
	r.enter(check.Fault, cells)
	stage := r.lab.stage("fault", "injecting, and holding until each arm has blocked or has gone on", r.holdEstimate())
	lifted := false
	defer func() { // whatever happens, what was injected is recovered, also after Ctrl-C
		if !lifted {
			err = errors.Join(err, r.recover(context.WithoutCancel(ctx), cells))
		}
	}()
	if err := r.inject(ctx, cells); err != nil {
		stage(err)
		return err
	}
	held := r.until(ctx, cells, r.hold(), p.Fault.Deadline.Duration, r.onset(ctx))
	if held != nil && ctx.Err() == nil {
		r.events.Say(event.Warning, "lifting at the deadline: "+held.Error())
	}
	r.sched.snapshot(ctx, cells, "phase") // the last with the fault in force
	stage(nil)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	stage = r.lab.stage("recovery", "lifting, and watching what heals", p.Recovery.AtLeast.Duration+5*time.Second)
	lifted = true
	r.enter(lifting, cells) // what the lift itself brings about is evidence of neither phase
	if err := r.recover(ctx, cells); err != nil {
		stage(err)
		return err
	}
	r.enter(check.Recovery, cells)
	r.sched.snapshot(ctx, cells, "phase")
	healed := r.until(ctx, cells, p.Recovery.AtLeast.Duration, p.Recovery.Deadline.Duration, func(cell string) bool {
		return r.signature(cell) || r.met(cell, check.Recovery, r.plan.Healed)
	})
	if healed != nil && ctx.Err() == nil {
		r.events.Say(event.Warning, "judging at the deadline: "+healed.Error())
	}
	r.sched.snapshot(ctx, cells, "phase")
	r.enter("end", cells)
	stage(context.Cause(ctx))
	return context.Cause(ctx)
}

// onset is a live check of exposure that has the cell's evidence taken at once when it first turns true.
func (r *trial) onset(ctx context.Context) func(cell string) bool {
	if r.plan.NoFaults { // nothing will ever be exposed
		return func(string) bool { return true }
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(cell string) bool {
		if !r.met(cell, check.Fault, r.plan.Exposure) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if !seen[cell] {
			seen[cell] = true
			r.events.Emit(event.Event{Type: event.Note, Cell: cell, Message: "exposure met"})
			r.sched.snapshot(ctx, []string{cell}, "onset")
		}
		return true
	}
}

// nullHold is how long the null control waits where a fault would have been held.
const nullHold = 10 * time.Second

// hold is how long the fault phase lasts at least.
func (r *trial) hold() time.Duration {
	if r.plan.NoFaults {
		return max(nullHold, r.plan.Phases.Fault.AtLeast.Duration)
	}
	return r.plan.Phases.Fault.AtLeast.Duration
}

// holdEstimate is how long the fault is likely to be held: the subject's largest duration, and a third on top.
func (r *trial) holdEstimate() time.Duration {
	if r.plan.NoFaults {
		return r.hold()
	}
	longest := int64(0)
	for _, c := range r.world.facts(r.plan).Cells {
		for _, v := range c.Constants {
			if v > longest && v >= int64(time.Second) {
				longest = v
			}
		}
	}
	return (time.Duration(longest) * 4 / 3).Round(time.Second)
}

// met reports whether all checks hold for a cell right now. It stops at the first that doesn't: live, that answer is all that is wanted.
func (r *trial) met(cell, phase string, checks []plan.Check) bool {
	for i := range checks {
		_, all, err := verdict.Evaluate(r.writer.View(), cell, phase, checks[i:i+1])
		if !r.asked(err) || all != check.Met {
			return false
		}
	}
	return len(checks) > 0
}

// signature reports whether the cell shows the whole signature right now.
func (r *trial) signature(cell string) bool {
	for i := range r.plan.Signature {
		_, all, err := verdict.EvaluateSignature(r.writer.View(), cell, r.plan.Signature[i:i+1])
		if !r.asked(err) || all != check.Met {
			return false
		}
	}
	return len(r.plan.Signature) > 0
}

// asked says once what kept a check from being asked: judging will fail on it too, and say so.
func (r *trial) asked(err error) bool {
	if err != nil {
		r.complained.Do(func() { r.events.Say(event.Warning, err.Error()) })
	}
	return err == nil
}

// until asks ok for each cell again and again, until it was true for all of them at once and atLeast has passed. At the deadline the error
// says what was still missing.
func (r *trial) until(ctx context.Context, cells []string, atLeast, deadline time.Duration, ok func(string) bool) error {
	began := time.Now()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		var missing []string
		for _, c := range cells {
			if !ok(c) {
				missing = append(missing, c)
			}
		}
		so := time.Since(began)
		if len(missing) == 0 && so >= atLeast {
			return nil
		}
		if deadline > 0 && so >= deadline {
			return fmt.Errorf("after %s, still waiting for %v", so.Round(time.Second), missing)
		}
		if len(missing) > 0 {
			r.events.Emit(event.Event{Type: event.Progress, Message: fmt.Sprintf("waiting for %v", missing)})
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// inject injects every fault into every cell at once; a fault with `at` or `after` waits for its moment.
func (r *trial) inject(ctx context.Context, cells []string) error {
	if r.plan.NoFaults {
		r.events.Say(event.Note, "null control: no fault is injected")
		return nil
	}
	var mu sync.Mutex
	took := map[string]chan struct{}{}
	gate := func(cell, name string) chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		key := cell + "/" + name
		if took[key] == nil {
			took[key] = make(chan struct{})
		}
		return took[key]
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, cell := range cells {
		for _, f := range r.faults {
			t, ok := r.target(cell, f.item)
			if !ok {
				continue
			}
			g.Go(func() error {
				if err := wait(ctx, time.Duration(f.item.At)); err != nil {
					return err
				}
				if a := f.item.After; a != nil {
					select {
					case <-gate(cell, a.Name):
					case <-ctx.Done():
						return context.Cause(ctx)
					}
					if err := wait(ctx, time.Duration(a.Plus)); err != nil {
						return err
					}
				}
				if err := f.fault.Inject(ctx, t); err != nil {
					return fmt.Errorf("injecting %s into %s: %w", f.item.Name, cell, err)
				}
				close(gate(cell, f.item.Name))
				return nil
			})
		}
	}
	return g.Wait()
}

// recover lifts every fault in every cell and returns when each lift was observed.
func (r *trial) recover(ctx context.Context, cells []string) error {
	if r.plan.NoFaults {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for _, cell := range cells {
		for _, f := range r.faults {
			t, ok := r.target(cell, f.item)
			if !ok {
				continue
			}
			wg.Go(func() {
				if err := f.fault.Recover(ctx, t); err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, fmt.Errorf("recovering %s in %s: %w", f.item.Name, cell, err))
				}
			})
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// target is where an item acts in a cell; false if it doesn't act there.
func (r *trial) target(cell string, item plan.Item) (fault.Target, bool) {
	if item.Target.Cell != "" && item.Target.Cell != cell {
		return fault.Target{}, false
	}
	nodes := slices.DeleteFunc(slices.Clone(r.world.cluster.Nodes()), func(n cluster.Node) bool { return n.Cell() != cell })
	if len(nodes) == 0 {
		return fault.Target{}, false
	}
	return fault.Target{
		Run: r.world.name, Name: item.Name, Cell: cell, Cluster: r.world.cluster, Nodes: nodes,
		Constants: r.world.cells[cell].constants,
		Expires:   r.plan.Phases.Fault.Deadline.Duration + 2*time.Minute, Events: r.events,
	}, true
}

// enter marks that a phase was seen to begin.
func (r *trial) enter(phase string, cells []string) {
	if len(cells) == len(r.plan.Cells) {
		r.events.Emit(event.Event{Type: event.Phase, Message: phase})
	} else {
		for _, c := range cells {
			r.events.Emit(event.Event{Type: event.Phase, Cell: c, Message: phase})
		}
	}
	if r.sched != nil {
		r.sched.phase(cells, phase)
	}
}

func (r *trial) cellNames() []string {
	var out []string
	for _, c := range r.plan.Cells {
		out = append(out, c.Name)
	}
	return out
}

// wait waits for d, or for ctx.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

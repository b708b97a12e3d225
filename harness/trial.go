package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/fault"
	"github.com/kube-relapse/relapse/harness/load"
	"github.com/kube-relapse/relapse/harness/plan"
)

// trial is one trial under way.
type trial struct {
	plan   plan.Trial
	lab    *Lab
	world  *World
	run    *RunDir
	writer *bundle.Writer
	events *event.Stream
	faults []namedFault
	loads  []namedLoad
	sched  *scheduler // of the group that is in its phases

	complained sync.Once
	lacking    lacking
	said       sync.Map // cells of which it was said that they aren't waited for
}

type namedFault struct {
	item  plan.Item
	fault fault.Fault
}

type namedLoad struct {
	item plan.Item
	load load.Load
}

// Trial runs t's phases on the world and leaves a sealed bundle in the run's directory, entered in its index. When ctx ends, faults are recovered and the unsealed bundle stays for
// the caller to remove. An error is something of ours that failed, never a verdict.
func (w *World) Trial(ctx context.Context, t plan.Trial, run *RunDir) (err error) {
	if err := run.begin(bundle.IndexedTrial{ID: t.ID, Pair: t.Pair, Arms: w.digests(t)}); err != nil {
		return err
	}
	writer, err := bundle.Create(run.Trial(t.ID))
	if err != nil {
		return err
	}
	for _, e := range w.earlier {
		writer.Emit(e)
	}
	detach := w.lab.Events.Attach(writer)
	defer detach()
	r := &trial{plan: t, lab: w.lab, world: w, run: run, writer: writer, events: w.lab.Events}
	if err := r.prepare(); err != nil {
		return err
	}
	for i, cells := range t.Groups() {
		if i > 0 {
			err = w.lowerOf(ctx, t.Groups()[i-1])
		}
		if err == nil {
			err = r.group(ctx, cells)
		}
		if err != nil || ctx.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return interrupted(ctx, err)
	}
	if err != nil { // the bundle still tells what was seen, and why no verdict can come of it
		r.events.Emit(event.Event{Type: event.Failure, Message: err.Error()})
	}
	detach()
	return errors.Join(err, writer.Seal(), run.sealed(t.ID))
}

// interrupted is what comes of a trial that was broken off: why, and which faults were not seen to be lifted. What else failed did so because it was
// broken off.
func interrupted(ctx context.Context, err error) error {
	var left *LiftError
	if errors.As(err, &left) {
		return errors.Join(context.Cause(ctx), left)
	}
	return context.Cause(ctx)
}

// group creates the clusters of some cells unless they are up, and puts the cells through all phases with their collectors running.
func (r *trial) group(ctx context.Context, cells []string) (err error) {
	if err := r.world.raise(ctx, cells); err != nil {
		return err
	}
	r.enter(check.Steady, cells) // before the collectors' first record, so that it counts
	if r.sched, err = startCollectors(ctx, r, cells); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, r.sched.stop())
		r.sched = nil
	}()
	if err := r.phases(ctx, cells); err != nil {
		return err
	}
	return r.prove(ctx, cells)
}

// prepare makes the loads and faults, computes their parameters and records what the trial rests on.
func (r *trial) prepare() error {
	raw, err := json.MarshalIndent(r.world.single(r.plan), "", "  ")
	if err != nil {
		return err
	}
	if err := r.writer.PutPlan(raw); err != nil {
		return err
	}
	for _, item := range r.plan.Loads {
		l, err := load.New(item.Kind, item.Spec)
		if err != nil {
			return fmt.Errorf("load %s: %w", item.Name, err)
		}
		r.loads = append(r.loads, namedLoad{item, l})
	}
	facts := r.run.bind(r.world.facts(r.plan))
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
	assumed := map[string]int64{}
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
		if a, ok := f.fault.(fault.Assumer); ok {
			maps.Copy(assumed, a.Assumed())
		}
		if m, ok := f.fault.(fault.Modeller); ok && !r.plan.NoFaults {
			facts.Modelled = append(facts.Modelled, m.Modelled()...)
		}
	}
	assume(&facts, r.plan.Constants, assumed)
	if err := r.diffs(); err != nil {
		return err
	}
	return r.writer.SetWorld(facts)
}

// phases runs steady state, baseline, fault and recovery. A control whose steady state never comes ends it: there is nothing to judge.
func (r *trial) phases(ctx context.Context, everyone []string) error {
	r.sched.phase(everyone, check.Steady)
	speaking := r.world.speaking(everyone)
	if err := r.prepareLoads(ctx, speaking); err != nil {
		return err
	}
	everyone, err := r.steady(ctx, everyone, speaking)
	if err != nil || len(everyone) == 0 {
		return err
	}
	r.enter(check.Baseline, everyone)
	stage := r.lab.stage("baseline", "recording what is normal", r.plan.Phases.Baseline.AtLeast.Duration)
	err = wait(ctx, r.plan.Phases.Baseline.AtLeast.Duration)
	stage(err)
	if err != nil {
		return err
	}
	if !r.plan.Sequential || len(everyone) == 1 {
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
	defer func() { // whatever happens, what was injected is recovered, also after Ctrl-C, and once more where that failed
		if lifted {
			return
		}
		if e := r.recover(context.WithoutCancel(ctx), cells); e != nil {
			err = errors.Join(err, &LiftError{e})
		}
	}()
	u, err := r.begin(ctx, cells, check.Fault)
	if err != nil {
		stage(err)
		return err
	}
	held := u.effective()
	if held == nil {
		held = r.until(u.ctx, cells, r.hold(), p.Fault.Deadline.Duration, u.settled(r.onset(u.ctx)))
	}
	if err := u.end(); err != nil {
		stage(err)
		return err
	}
	if held != nil && ctx.Err() == nil {
		r.events.Say(event.Warning, "lifting at the deadline: "+held.Error())
	}
	r.sched.snapshot(ctx, cells, "phase") // the last with the fault in force
	stage(nil)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	stage = r.lab.stage("recovery", "lifting, and watching what heals", p.Recovery.AtLeast.Duration+5*time.Second)
	r.enter(check.Lifting, cells) // what the lift itself brings about is evidence of neither phase
	if err := r.recover(ctx, cells); err != nil {
		stage(err)
		return err
	}
	lifted = true
	err = r.watchRecovery(ctx, cells)
	stage(err)
	return err
}

// watchRecovery is the recovery, from when every lift was seen: its loads ask the subjects for work while is waited for what decides. A load that is
// still on when that is known is cut off.
func (r *trial) watchRecovery(ctx context.Context, cells []string) error {
	p := r.plan.Phases.Recovery
	r.enter(check.Recovery, cells)
	u, err := r.begin(ctx, cells, check.Recovery)
	if err != nil {
		return err
	}
	r.sched.snapshot(ctx, cells, "phase")
	healed := r.until(u.ctx, cells, p.AtLeast.Duration, p.Deadline.Duration, r.judgeable)
	if err := u.end(); err != nil {
		return err
	}
	if healed != nil && ctx.Err() == nil {
		r.events.Say(event.Warning, "judging at the deadline: "+healed.Error())
	}
	r.sched.snapshot(ctx, cells, "phase")
	r.enter("end", cells)
	return r.covered(ctx, cells)
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

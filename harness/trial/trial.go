// Package trial takes the arms of one trial through the phases: steady state, baseline, fault, recovery. Collectors
// record meanwhile, and a sealed bundle holds all evidence. The package gives no verdict.
package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/trial/environment"
)

// trial is a running trial.
type trial struct {
	plan       plan.Trial
	env        *environment.Environment
	run        *RunDir
	writer     *bundle.Writer
	events     *event.Stream
	items      *injections
	live       *live
	collectors *collectors // of the arms that are going through the phases
	began      sync.Map    // name of each load that took effect -> the first arm in which it did
}

// Run runs the environment's trial. It leaves a sealed bundle in the run's directory, listed in the run's index. The
// bundle's timeline begins with earlier, the events from before the bundle existed. When ctx ends, faults are
// recovered, and the caller has to remove the unsealed bundle. An error is a failure of the harness, never a verdict.
func Run(ctx context.Context, env *environment.Environment, run *RunDir, events *event.Stream,
	earlier []event.Event) (err error) {
	t := env.Trial
	if err := run.begin(bundle.IndexedTrial{ID: t.ID, Pair: t.Pair, Arms: env.Digests()}); err != nil {
		return err
	}
	writer, err := bundle.Create(run.Trial(t.ID))
	if err != nil {
		return err
	}
	for _, e := range earlier {
		writer.Emit(e)
	}
	detach := events.Attach(writer)
	defer detach()
	r := &trial{
		plan:   t,
		env:    env,
		run:    run,
		writer: writer,
		events: events,
		live:   newLive(t, writer, events),
	}
	if err := r.prepare(); err != nil {
		return err
	}
	for i, arms := range t.Groups() {
		if i > 0 {
			err = env.DeleteOf(ctx, t.Groups()[i-1])
		}
		if err == nil {
			err = r.group(ctx, arms)
		}
		if err != nil || ctx.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return interrupted(ctx, err)
	}
	if err != nil { // the bundle still shows what was seen, and why there can be no verdict
		r.events.Emit(event.Event{Type: event.Failure, Message: err.Error()})
	}
	detach()
	return errors.Join(err, writer.Seal(), run.sealed(t.ID))
}

// interrupted returns the error of a trial that was interrupted: the reason, and the faults whose lifting was not seen.
// Other errors only follow from the interruption.
func interrupted(ctx context.Context, err error) error {
	var left *LiftError
	if errors.As(err, &left) {
		return errors.Join(context.Cause(ctx), left)
	}
	return context.Cause(ctx)
}

// group takes some arms through all phases while their collectors run.
func (r *trial) group(ctx context.Context, arms []string) (err error) {
	if err := r.env.CreateFor(ctx, arms); err != nil {
		return err
	}
	r.enter(check.Steady, arms) // before the collectors' first record, which then counts
	if r.collectors, err = startCollectors(ctx, r.env, r.writer, r.events, arms); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, r.collectors.stop())
		r.collectors = nil
	}()
	for _, phase := range r.phases() {
		if arms, err = phase(ctx, arms); err != nil || len(arms) == 0 {
			return err
		}
	}
	return nil
}

// prepare computes the parameters of the trial's faults and records the plan, the facts and the source diffs in the
// bundle.
func (r *trial) prepare() (err error) {
	raw, err := json.MarshalIndent(r.env.Plan(), "", "  ")
	if err != nil {
		return err
	}
	if err := r.writer.PutPlan(raw); err != nil {
		return err
	}
	r.items = &injections{
		env:    r.env,
		events: r.events,
		writer: r.writer,
		faults: slices.Clone(r.plan.Faults),
		loads:  r.plan.Loads,
	}
	facts := r.run.bind(r.env.Facts())
	var constants []map[string]int64
	for _, c := range facts.Arms {
		constants = append(constants, c.Constants)
	}
	var all []fault.Fault
	for _, f := range r.items.faults {
		all = append(all, f.Spec)
	}
	sized := map[string]int64{}
	for i := range r.items.faults {
		f := &r.items.faults[i]
		if c, ok := f.Spec.(fault.Computer); ok {
			var explained map[string]string
			if f.Spec, explained, err = c.Compute(constants, all); err != nil {
				return fmt.Errorf("computing fault %s: %w", f.Name, err)
			}
			for k, v := range explained {
				facts.Computed[f.Name+"."+k] = v
			}
		}
		if a, ok := f.Spec.(fault.Assumer); ok {
			maps.Copy(sized, a.Assumed())
		}
		if m, ok := f.Spec.(fault.Modeller); ok && !r.plan.NoFaults {
			facts.Modelled = append(facts.Modelled, m.Modelled()...)
		}
	}
	fillUnknownConstants(&facts, r.plan.Constants, sized)
	for _, c := range r.plan.Arms { // how their sources differ from what was published
		b := r.env.Build(c.Name)
		for _, d := range []struct {
			kind bundle.Kind
			text []byte
		}{{bundle.SourceDiff, b.Diff}, {bundle.SourceLocal, b.Local}} {
			if len(d.text) == 0 {
				continue
			}
			if _, err := r.writer.Write(bundle.Meta{Kind: d.kind, Arm: c.Name}, "diff", bytes.NewReader(d.text)); err != nil {
				return err
			}
		}
	}
	return r.writer.SetWorld(facts)
}

// enter records that a phase was seen to begin.
func (r *trial) enter(phase string, arms []string) {
	if len(arms) == len(r.plan.Arms) {
		r.events.Emit(event.Event{Type: event.Phase, Message: phase})
	} else {
		for _, c := range arms {
			r.events.Emit(event.Event{Type: event.Phase, Arm: c, Message: phase})
		}
	}
	if r.collectors != nil {
		r.collectors.phase(arms, phase)
	}
}

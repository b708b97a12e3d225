package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// unresponsiveTime is how long a candidate that doesn't answer is watched, while controls do answer. It is long enough
// that the candidate's evidence has no gap.
const unresponsiveTime = 45 * time.Second

// nullHold is how long a run without faults, the null control, waits in place of a fault.
const nullHold = 10 * time.Second

// phases returns the steps of a trial, in order. Each step returns the arms that go on. If there are none the trial
// ends, because there is nothing to judge.
func (r *trial) phases() []func(ctx context.Context, arms []string) (on []string, err error) {
	return []func(context.Context, []string) ([]string, error){
		r.steady,
		r.baseline,
		r.faultAndRecovery,
		r.verifyRestart,
	}
}

// steady makes the loads create what they need and waits for the steady state. If candidates never reach it, the
// controls go on without them: not running where a control does is an answer. If a control doesn't reach it, no arm
// goes on.
func (r *trial) steady(ctx context.Context, arms []string) ([]string, error) {
	r.collectors.phase(arms, check.Steady)
	responsive := r.env.Responsive(arms)
	if err := r.items.prepareLoads(ctx, responsive); err != nil {
		return nil, err
	}
	p := r.plan.Phases.Steady
	usual := p.AtLeast.Duration + 15*time.Second
	stage := r.events.Stage("steady state", "waiting until every arm is well", usual)
	last := map[string]bool{} // each arm's last answer; on a busy machine a new one may come before its records
	well := func(arm string) bool {
		last[arm] = r.live.met(arm, check.Steady, r.plan.Steady) && r.live.looked(arm) &&
			r.live.reported(arm, r.env.Restarted(arm))
		return last[arm]
	}
	err := r.live.until(ctx, waiting{responsive, p.AtLeast.Duration, p.Deadline.Duration, usual, ""}, well)
	if err == nil && len(responsive) < len(arms) { // unresponsive arms had their time; they are only watched
		behind := slices.DeleteFunc(slices.Clone(arms), func(c string) bool { return slices.Contains(responsive, c) })
		err = r.live.until(ctx, waiting{behind, unresponsiveTime, unresponsiveTime, unresponsiveTime, ""},
			func(string) bool { return false })
	}
	stage(err)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err == nil {
		return arms, nil
	}
	on, behind, control := split(arms, last, r.env.IsCandidate)
	if control || len(on) == 0 {
		r.events.Say(
			event.Warning,
			"the steady state never came, so nothing is injected: "+err.Error(),
		)
		r.enter(bundle.EndPhase, arms)
		return nil, nil
	}
	r.events.Say(
		event.Warning,
		fmt.Sprintf("%s never got to its steady state, and the others go on: %v",
			strings.Join(behind, " and "), err),
	)
	r.enter(bundle.EndPhase, behind)
	return on, nil
}

// split separates the arms that are well from the candidates that aren't. control reports whether a control isn't well.
func split(
	arms []string,
	well map[string]bool,
	candidate func(string) bool,
) (on, behind []string, control bool) {
	for _, arm := range arms {
		switch {
		case well[arm]:
			on = append(on, arm)
		case candidate(arm):
			behind = append(behind, arm)
		default:
			control = true
		}
	}
	return on, behind, control
}

// baseline records the normal state, under the baseline's loads. A load that still runs at the end is stopped. The
// first snapshot is taken at the beginning, and the next phase takes the last one, so that even a short baseline has
// two.
func (r *trial) baseline(ctx context.Context, arms []string) ([]string, error) {
	r.enter(check.Baseline, arms)
	stage := r.events.Stage(
		"baseline",
		"recording what is normal",
		r.plan.Phases.Baseline.AtLeast.Duration,
	)
	i, err := begin(ctx, r, arms, check.Baseline)
	if err == nil {
		var first sync.WaitGroup
		first.Go(func() { r.collectors.snapshot(i.ctx, arms, "phase") })
		err = wait(i.ctx, r.plan.Phases.Baseline.AtLeast.Duration)
		first.Wait()
		if err == nil {
			i.atDeadline()
		}
		err = cmp.Or(i.end(), err)
	}
	stage(err)
	return arms, err
}

// faultAndRecovery takes arms through fault and recovery, together or, if the plan is sequential, one after the other.
func (r *trial) faultAndRecovery(ctx context.Context, arms []string) ([]string, error) {
	if !r.plan.Sequential || len(arms) == 1 {
		return arms, r.injectAndRecover(ctx, arms)
	}
	for _, arm := range arms {
		if err := r.injectAndRecover(ctx, []string{arm}); err != nil {
			return nil, err
		}
	}
	return arms, nil
}

// injectAndRecover takes arms through fault and recovery together.
func (r *trial) injectAndRecover(ctx context.Context, arms []string) (err error) {
	r.collectors.snapshot(ctx, arms, "phase") // the last of the baseline
	r.enter(check.Fault, arms)
	stage := r.events.Stage(
		"fault",
		"injecting, and holding until each arm has blocked or has gone on",
		r.holdEstimate(),
	)
	lifted := false
	defer func() { // Faults are lifted whatever happens, even after Ctrl-C. If that failed below, it is tried again.
		if lifted {
			return
		}
		if e := r.items.recover(context.WithoutCancel(ctx), arms); e != nil {
			err = errors.Join(err, &LiftError{e})
		}
	}()
	err = r.hold(ctx, arms)
	stage(err)
	if err != nil {
		return err
	}
	stage = r.events.Stage("recovery", "lifting, and watching what heals", r.recoveryEstimate())
	defer func() { stage(err) }()
	r.enter(check.Lifting, arms) // effects of the lifting itself are evidence of neither phase
	if err := r.items.recover(ctx, arms); err != nil {
		return err
	}
	lifted = true
	return r.watchRecovery(ctx, arms)
}

// hold injects the faults while the loads run, and keeps them in force until each arm has shown how it reacts.
func (r *trial) hold(ctx context.Context, arms []string) error {
	i, err := begin(ctx, r, arms, check.Fault)
	if err != nil {
		return err
	}
	held := i.effective()
	if held == nil {
		onset := r.live.onset(func(arm string) { r.collectors.snapshot(i.ctx, []string{arm}, "onset") })
		held = r.live.until(i.ctx, waiting{arms, r.holdTime(), r.plan.Phases.Fault.Deadline.Duration, r.holdEstimate(), ""},
			i.settled(onset))
	}
	if held != nil {
		i.atDeadline()
	}
	if err := i.end(); err != nil {
		return err
	}
	if held != nil && ctx.Err() == nil {
		r.events.Say(event.Warning, "lifting at the deadline: "+held.Error())
	}
	r.collectors.snapshot(ctx, arms, "phase") // the last with the fault in force
	return context.Cause(ctx)
}

// holdTime returns how long the fault phase lasts at least.
func (r *trial) holdTime() time.Duration {
	if r.plan.NoFaults {
		return max(nullHold, r.plan.Phases.Fault.AtLeast.Duration)
	}
	return r.plan.Phases.Fault.AtLeast.Duration
}

// holdEstimate returns how long the fault will probably be held: the largest of the subject's constants that can be a
// duration, and a third on top.
func (r *trial) holdEstimate() time.Duration {
	if r.plan.NoFaults {
		return r.holdTime()
	}
	longest := int64(0)
	for _, c := range r.plan.Arms {
		for _, v := range r.env.Build(c.Name).Constants {
			if v > longest && v >= int64(time.Second) {
				longest = v
			}
		}
	}
	if longest == 0 {
		return time.Minute
	}
	return (time.Duration(longest) * 4 / 3).Round(time.Second)
}

// recoveryEstimate returns how long the recovery will probably last.
func (r *trial) recoveryEstimate() time.Duration {
	return r.plan.Phases.Recovery.AtLeast.Duration + 5*time.Second
}

// watchRecovery runs the recovery phase, after every lift was observed. The phase's loads give the subjects work until
// the outcome is known. A load that still runs then is stopped.
func (r *trial) watchRecovery(ctx context.Context, arms []string) error {
	p := r.plan.Phases.Recovery
	r.enter(check.Recovery, arms)
	i, err := begin(ctx, r, arms, check.Recovery)
	if err != nil {
		return err
	}
	r.collectors.snapshot(ctx, arms, "phase")
	healed := r.live.until(
		i.ctx,
		waiting{arms, p.AtLeast.Duration, p.Deadline.Duration, r.recoveryEstimate(),
			"for all signs of the incident"},
		r.live.judgeable,
	)
	if healed != nil {
		i.atDeadline()
	}
	if err := i.end(); err != nil {
		return err
	}
	if healed != nil && ctx.Err() == nil {
		r.events.Say(event.Warning, "judging at the deadline: "+healed.Error())
	}
	r.collectors.snapshot(ctx, arms, "phase")
	r.enter(bundle.EndPhase, arms)
	return r.live.covered(ctx, arms)
}

package trial

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// injection is one phase of some arms. It runs the phase's loads and, in the fault phase, its faults, each at its time.
type injection struct {
	trial    *trial
	phase    string
	ctx      context.Context // ends when a load or a fault fails
	cancel   context.CancelFunc
	group    *errgroup.Group
	progress *progress
	first    sync.WaitGroup // done when every fault has taken effect once, or never will

	mu   sync.Mutex
	arms map[string]*armInjection
	late bool // the phase ends at its deadline
}

// armInjection is the state of an injection in one arm, or in those that share their nodes.
type armInjection struct {
	ctx    context.Context
	stop   context.CancelFunc
	loads  int               // that haven't ended
	faults int               // that are still to come, or in force
	over   time.Time         // when the last load or fault was over; zero before
	missed map[string]string // why faults and loads never came, by their names
	given  bool              // it was reported that exposure is given up
}

// begin starts every load of a phase in the arms and, in the fault phase, every fault.
func begin(ctx context.Context, r *trial, arms []string, phase string) (*injection, error) {
	i := &injection{
		trial:    r,
		phase:    phase,
		progress: newProgress(),
		arms:     map[string]*armInjection{},
	}
	ctx, i.cancel = context.WithCancel(ctx)
	i.group, i.ctx = errgroup.WithContext(ctx)
	var aimed []aimedFault
	switch {
	case phase != check.Fault:
	case r.plan.NoFaults:
		r.events.Say(event.Note, "null control: no fault is injected")
		for _, arm := range r.items.targeted(arms) {
			for _, f := range r.items.faults { // what comes after a fault doesn't wait for it
				i.progress.note(arm, f.Name, 1, true)
				i.progress.finish(arm, f.Name)
			}
		}
		for _, arm := range arms {
			for _, l := range r.items.loads {
				if l.Trigger {
					i.progress.note(arm, l.Name, 1, true)
					i.progress.finish(arm, l.Name)
				}
			}
		}
	default:
		var err error
		if aimed, err = r.items.aim(arms); err != nil {
			i.cancel()
			return nil, err
		}
	}
	for _, arm := range slices.Concat(arms, r.items.targeted(arms)) {
		if i.arms[arm] == nil {
			c := &armInjection{missed: map[string]string{}}
			c.ctx, c.stop = context.WithCancel(i.ctx)
			i.arms[arm] = c
		}
	}
	for _, f := range aimed {
		i.arms[f.at.Arm].faults++
	}
	for _, arm := range arms {
		i.arms[arm].loads = len(r.items.loadsOf(arm, phase))
	}
	for _, arm := range arms {
		for _, l := range r.items.loadsOf(arm, phase) {
			i.group.Go(func() error { return i.load(arm, l) })
		}
	}
	for _, f := range aimed {
		i.first.Add(1)
		i.group.Go(func() error { return i.fault(f) })
	}
	return i, nil
}

// end stops everything that still runs and waits for it. It returns the first error of a load or fault, unless end
// itself stopped them.
func (i *injection) end() error {
	failed := context.Cause(i.ctx) != nil // before it is stopped
	i.cancel()
	if err := i.group.Wait(); failed {
		return err
	}
	return nil
}

// effective waits until every fault has taken effect once.
func (i *injection) effective() error {
	done := make(chan struct{})
	go func() { i.first.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-i.ctx.Done():
		return context.Cause(i.ctx)
	}
}

// evidenceLag is how long evidence may take to be written to disk.
const evidenceLag = plan.GiveUp

// settled returns a function that reports whether the fault phase may end for an arm: its loads are over, its exposure
// is met, and the incident, if it ended the subject's process, is complete. It also may end if the subject failed in
// another way, or if what is missing is given up. It stops the loads early once the incident has ended the subject's
// process. While the process lives the loads go on, because the incident may still end it.
func (i *injection) settled(exposed func(string) bool) func(string) bool {
	live := i.trial.live
	return func(arm string) bool {
		c := i.arms[arm]
		i.mu.Lock()
		loads := c.loads
		i.mu.Unlock()
		if loads > 0 {
			if live.restarted(arm) && live.signature(arm) && exposed(arm) {
				c.stop()
			}
			live.pending.set(arm, pending{what: "the work that the fault needs to be done"})
			return false
		}
		return live.broken(arm) || exposed(arm) && !live.open(arm) || i.givesUp(arm)
	}
}

// givesUp reports whether nothing is waited for any longer in an arm, because its last load and fault have been over
// for evidenceLag. What isn't met by then never will be. An arm without any load or fault has the whole phase.
func (i *injection) givesUp(arm string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	var last time.Time
	for _, name := range []string{arm, bundle.Shared} {
		c := i.arms[name]
		switch {
		case c == nil:
		case c.loads+c.faults > 0:
			return false
		case c.over.After(last):
			last = c.over
		}
	}
	if last.IsZero() || time.Since(last) <= evidenceLag {
		return false
	}
	if c := i.arms[arm]; !c.given {
		c.given = true
		i.trial.events.Emit(event.Event{
			Type: event.Warning,
			Arm:  arm,
			Message: fmt.Sprintf("given up, %s after its last "+
				"load and fault: %s", evidenceLag, i.trial.live.pending.describe([]string{arm})),
		})
	}
	return true
}

// done counts a load or a fault of an arm as over.
func (i *injection) done(arm string, count func(*armInjection)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	c := i.arms[arm]
	if count(c); c.loads+c.faults == 0 {
		c.over = time.Now()
	}
}

// load runs one load in one arm.
func (i *injection) load(arm string, l plan.Load) error {
	defer func() {
		i.progress.finish(arm, l.Name)
		i.done(arm, func(c *armInjection) { c.loads-- })
	}()
	ctx := i.arms[arm].ctx
	comes, err := i.turn(arm, l.ItemHeader, 1)
	switch {
	case ctx.Err() != nil && i.ctx.Err() == nil: // this arm is done
		return nil
	case err == nil && !comes:
		err = i.neverComes(arm, event.LoadMissed, l.ItemHeader)
	}
	if err != nil || !comes {
		i.tooLate(arm, l.ItemHeader, err)
		return err
	}
	t, err := i.trial.items.loadTarget(arm, l.ItemHeader)
	if err != nil {
		return err
	}
	t.Round = func(n int, began bool) {
		if began {
			i.trial.began.LoadOrStore(l.Name, arm)
		}
		i.progress.note(arm, l.Name, n, began)
	}
	if err := l.Spec.Run(ctx, t, i.trial.writer); err != nil && ctx.Err() == nil {
		return fmt.Errorf("running the load %s in %s: %w", l.Name, arm, err)
	}
	return nil
}

// fault injects one fault into one arm. A fault that has a duration is injected again in every round of the load that
// it comes after. Without a duration it holds until the phase ends.
func (i *injection) fault(f aimedFault) error {
	said := sync.OnceFunc(i.first.Done)
	defer said()
	arm, name, holds := f.at.Arm, f.Name, false
	defer func() {
		if !holds {
			i.progress.finish(arm, name)
			i.done(arm, func(c *armInjection) { c.faults-- })
		}
	}()
	ctx := i.arms[arm].ctx
	for round := 1; ; round++ {
		comes, err := i.turn(arm, f.ItemHeader, round)
		if ctx.Err() != nil && i.ctx.Err() == nil { // this arm is done; its fault is lifted with the others
			return nil
		}
		switch {
		case err != nil:
			return err
		case !comes && round == 1:
			return i.neverComes(arm, event.FaultMissed, f.ItemHeader)
		case !comes:
			return nil
		}
		if err := f.Spec.Inject(ctx, f.at); err != nil {
			if ctx.Err() != nil && i.ctx.Err() == nil {
				return nil
			}
			return i.notInjected(f, err)
		}
		i.progress.note(arm, name, round, true)
		said()
		if scenario.Length(f.Duration) == 0 {
			holds = true
			return nil
		}
		if err := i.pulse(f, round); err != nil || f.After == nil {
			return err
		}
	}
}

// pulse lifts a fault after its duration, or earlier if the round of its load is over.
func (i *injection) pulse(f aimedFault, round int) error {
	arm := f.at.Arm
	ctx, cancel := context.WithTimeout(i.arms[arm].ctx, scenario.Length(f.Duration))
	defer cancel()
	if a := f.After; a != nil {
		// An error means that the fault's time is up.
		_, _ = i.progress.await(
			ctx,
			arm,
			a.Name,
			func(p state) bool { return p.ended >= round || p.over },
		)
	} else {
		<-ctx.Done()
	}
	if i.ctx.Err() != nil {
		return context.Cause(i.ctx)
	}
	if err := f.Spec.Recover(i.ctx, f.at); err != nil {
		return fmt.Errorf("lifting %s in %s after its duration: %w", f.Name, arm, err)
	}
	i.progress.note(arm, f.Name, round, false)
	i.trial.collectors.snapshot(i.ctx, []string{arm}, "round")
	return nil
}

// turn waits for an item's time in a round. It returns false if the item comes after another one that ended without
// reaching this round.
func (i *injection) turn(arm string, item scenario.ItemHeader, round int) (bool, error) {
	ctx := i.arms[arm].ctx
	if round == 1 {
		if err := wait(ctx, scenario.Length(item.At)); err != nil {
			return false, err
		}
	}
	if item.After == nil {
		return true, nil
	}
	p, err := i.progress.await(ctx, i.placeOf(arm, item.After.Name), item.After.Name,
		func(p state) bool { return p.began >= round || p.over })
	if err != nil || p.began < round {
		return false, err
	}
	return true, wait(ctx, scenario.Length(item.After.Plus))
}

// placeOf returns where an item that acts in an arm takes effect. A fault of arms that share their nodes acts once, for
// all of them.
func (i *injection) placeOf(arm, name string) string {
	if slices.ContainsFunc(i.trial.items.faults, func(f plan.Fault) bool { return f.Name == name }) {
		return i.trial.items.targeted([]string{arm})[0]
	}
	return arm
}

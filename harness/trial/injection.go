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
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// injection is one phase of some arms. It runs the phase's loads and, in the fault phase, its faults, each at its time.
type injection struct {
	trial    *trial
	ctx      context.Context // ends when a load or a fault fails
	cancel   context.CancelFunc
	group    *errgroup.Group
	progress *progress
	first    sync.WaitGroup // done when every fault has taken effect once, or never will

	mu   sync.Mutex
	arms map[string]*armInjection
}

// armInjection is the state of an injection in one arm.
type armInjection struct {
	ctx  context.Context
	stop context.CancelFunc
	left int       // loads that haven't ended
	over time.Time // when the last load ended; zero before
}

// begin starts every load of a phase in the arms and, in the fault phase, every fault.
func begin(ctx context.Context, r *trial, arms []string, phase string) (*injection, error) {
	i := &injection{trial: r, progress: newProgress(), arms: map[string]*armInjection{}}
	ctx, i.cancel = context.WithCancel(ctx)
	i.group, i.ctx = errgroup.WithContext(ctx)
	var aimed []aimedFault
	switch {
	case phase != check.Fault:
	case r.plan.NoFaults:
		r.events.Say(event.Note, "null control: no fault is injected")
		for _, arm := range arms {
			for _, f := range r.items.faults { // loads that come after a fault don't wait for it
				i.progress.finish(arm, f.Name)
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
			c := &armInjection{left: len(r.items.loadsOf(arm, phase))}
			c.ctx, c.stop = context.WithCancel(i.ctx)
			i.arms[arm] = c
		}
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

// evidenceLag is how long after the last load its evidence may take to be written to disk.
const evidenceLag = 15 * time.Second

// settled returns an exposure check that also waits for the arm's loads to end. It turns true at the latest evidenceLag
// after that, because exposure that isn't met by then never will be. It stops the loads early once the incident has
// ended the subject's process. While the process lives the loads go on, because the incident may still end it.
func (i *injection) settled(exposed func(string) bool) func(string) bool {
	return func(arm string) bool {
		c := i.arms[arm]
		i.mu.Lock()
		left, over := c.left, c.over
		i.mu.Unlock()
		if left > 0 {
			if i.trial.live.restarted(arm) && i.trial.live.signature(arm) && exposed(arm) {
				c.stop()
			}
			return false
		}
		return exposed(arm) || !over.IsZero() && time.Since(over) > evidenceLag
	}
}

// load runs one load in one arm.
func (i *injection) load(arm string, l plan.Load) error {
	defer func() {
		i.progress.finish(arm, l.Name)
		i.mu.Lock()
		defer i.mu.Unlock()
		c := i.arms[arm]
		if c.left--; c.left == 0 {
			c.over = time.Now()
		}
	}()
	ctx := i.arms[arm].ctx
	if _, err := i.turn(arm, l.ItemHeader, 1); err != nil {
		return err
	}
	t, err := i.trial.items.loadTarget(arm, l.ItemHeader)
	if err != nil {
		return err
	}
	t.Round = func(n int, began bool) { i.progress.note(arm, l.Name, n, began) }
	if err := l.Spec.Run(ctx, t, i.trial.writer); err != nil && ctx.Err() == nil {
		return fmt.Errorf("running the load %s in %s: %w", l.Name, arm, err)
	}
	return nil
}

// fault injects one fault into one arm. A fault that has a duration is injected again in every round of the load that
// it comes after.
func (i *injection) fault(f aimedFault) error {
	said := sync.OnceFunc(i.first.Done)
	defer said()
	arm, name := f.at.Arm, f.Name
	defer i.progress.finish(arm, name)
	ctx := i.arms[arm].ctx
	for round := 1; ; round++ {
		comes, err := i.turn(arm, f.ItemHeader, round)
		if ctx.Err() != nil && i.ctx.Err() == nil { // this arm is done; its fault is lifted with the others
			return nil
		}
		if err != nil {
			return err
		}
		if !comes {
			if round == 1 {
				i.trial.events.Emit(event.Event{Type: event.Warning, Arm: arm,
					Message: fmt.Sprintf("%s never took effect, so %s, which comes after it, is not injected",
						f.After.Name, name)})
			}
			return nil
		}
		if err := f.Spec.Inject(ctx, f.at); err != nil {
			if ctx.Err() != nil && i.ctx.Err() == nil {
				return nil
			}
			return fmt.Errorf("injecting %s into %s: %w", name, arm, err)
		}
		i.progress.note(arm, name, round, true)
		said()
		if scenario.Length(f.Duration) == 0 {
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
		_, _ = i.progress.await(ctx, arm, a.Name, func(p state) bool { return p.ended >= round || p.over })
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
	p, err := i.progress.await(ctx, arm, item.After.Name, func(p state) bool { return p.began >= round || p.over })
	if err != nil || p.began < round {
		return false, err
	}
	return true, wait(ctx, scenario.Length(item.After.Plus))
}

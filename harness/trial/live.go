package trial

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// live evaluates a trial's checks while it runs, to end waits early. It decides no outcome: the sealed bundle is judged
// again.
type live struct {
	plan   plan.Trial
	writer *bundle.Writer
	events *event.Stream

	complained sync.Once
	pending    pendingChecks
	restarts   restarts
}

func newLive(t plan.Trial, w *bundle.Writer, events *event.Stream) *live {
	return &live{plan: t, writer: w, events: events}
}

// lookEvery is the interval at which live checks are evaluated.
const lookEvery = 2 * time.Second

// sayEvery is the interval at which a wait without any change is reported.
const sayEvery = 30 * time.Second

// waiting is what until waits for, and for how long: at least, at most (0 is no limit) and probably.
type waiting struct {
	arms                      []string
	atLeast, deadline, expect time.Duration
	or                        string // what would end the wait of an arm as well; "" if nothing
}

// onset returns a live check of exposure. It calls first when an arm first meets its exposure, so that snapshots are
// taken at once.
func (l *live) onset(first func(arm string)) func(arm string) bool {
	if l.plan.NoFaults { // without faults there is no exposure
		return func(string) bool { return true }
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(arm string) bool {
		if !l.met(arm, check.Fault, l.exposure(true)) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if !seen[arm] {
			seen[arm] = true
			l.events.Emit(event.Event{Type: event.Note, Arm: arm, Message: "exposure met"})
			first(arm)
		}
		return true
	}
}

// exposure returns the exposure checks of the recovery, or, if inForce, all others.
func (l *live) exposure(inForce bool) []plan.Check {
	return slices.DeleteFunc(slices.Clone(l.plan.Exposure),
		func(c plan.Check) bool { return (c.Phase == check.Recovery) == inForce })
}

// judgeable reports whether an arm has shown all that its verdict needs. A restart of its subject that the incident
// doesn't explain is enough. Otherwise the exposure checks of the recovery have to hold, and one of three things has to
// be true: the arm shows the signature; the arm is well and every part of the signature is known; the arm can no longer
// be shown to be well.
func (l *live) judgeable(arm string) bool {
	if l.broken(arm) {
		return true
	}
	if later := l.exposure(false); len(later) > 0 && !l.met(arm, check.Recovery, later) {
		return false
	}
	return l.signature(arm) || l.met(arm, check.Recovery, l.plan.Healed) && l.known(arm) ||
		l.decided(arm)
}

// known reports whether every part of the signature has an answer right now. Only then can a missing signature be
// called absent.
func (l *live) known(arm string) bool {
	for i := range l.plan.Signature {
		f, all, err := verdict.EvaluateSignature(l.writer.View(), arm, l.plan.Signature[i:i+1])
		if !l.asked(err) || all == check.Unknown {
			c := l.plan.Signature[i]
			c.Await = cmp.Or(c.Await, "proof that the incident's signs are not there")
			l.pending.note(arm, c, f)
			return false
		}
	}
	return true
}

// decided reports whether an arm can no longer be shown to be well, because it wasn't well while the fault was in
// force.
func (l *live) decided(arm string) bool {
	return slices.ContainsFunc(l.plan.Healed, func(c plan.Check) bool {
		if c.Phase != check.Fault {
			return false
		}
		_, all, err := verdict.Evaluate(l.writer.View(), arm, check.Recovery, []plan.Check{c})
		return l.asked(err) && all != check.True
	})
}

// met reports whether all checks hold for an arm right now. It stops at the first check that doesn't hold, and keeps
// that check's finding for the progress display.
func (l *live) met(arm, phase string, checks []plan.Check) bool {
	for i := range checks {
		f, all, err := verdict.Evaluate(l.writer.View(), arm, phase, checks[i:i+1])
		if !l.asked(err) || all != check.True {
			l.pending.note(arm, checks[i], f)
			return false
		}
	}
	l.pending.clear(arm)
	return len(checks) > 0
}

// signature reports whether the arm shows the whole signature right now.
func (l *live) signature(arm string) bool {
	for i := range l.plan.Signature {
		_, all, err := verdict.EvaluateSignature(l.writer.View(), arm, l.plan.Signature[i:i+1])
		if !l.asked(err) || all != check.True {
			return false
		}
	}
	return len(l.plan.Signature) > 0
}

// asked reports whether err is nil. It emits the first error as a warning; judging will fail for the same reason.
func (l *live) asked(err error) bool {
	if err != nil {
		l.complained.Do(func() { l.events.Say(event.Warning, err.Error()) })
	}
	return err == nil
}

// until calls ok for each arm, again and again, until it is true for all of them at once and the least time has passed.
// At the deadline it returns an error that says what was missing.
func (l *live) until(ctx context.Context, w waiting, ok func(string) bool) error {
	began := time.Now()
	var said string
	var saidAt time.Time
	for {
		var missing []string
		looked := time.Now()
		for _, c := range w.arms {
			if !ok(c) {
				missing = append(missing, c)
			}
		}
		cost := time.Since(looked)
		so := time.Since(began)
		if len(missing) == 0 && so >= w.atLeast {
			return nil
		}
		if w.deadline > 0 && so >= w.deadline {
			return fmt.Errorf(
				"after %s, still waiting for %s",
				so.Round(time.Second),
				l.pending.describe(missing),
			)
		}
		if now := l.sentence(missing, w); now != said || time.Since(saidAt) > sayEvery {
			said, saidAt = now, time.Now()
			l.events.Waiting(event.Wait{
				What:   now,
				So:     so,
				Expect: w.expect,
				State:  l.pending.describe(missing),
			})
		}
		// Evaluating reads the evidence, which grows. It must not use up the time of what is being watched.
		if err := wait(ctx, max(lookEvery, cost)); err != nil {
			return err
		}
	}
}

// sentence says what is waited for, as it goes on after "waiting for".
func (l *live) sentence(missing []string, w waiting) string {
	if len(missing) == 0 {
		return "the shortest time of the phase to be over"
	}
	out := l.pending.sentence(missing, w.arms)
	if w.or != "" {
		out += ", or " + w.or
	}
	return out
}

const (
	// coverTime is how long a stream that lags behind the end of the last phase may stand still. Then nobody waits for
	// it any longer.
	coverTime = 15 * time.Second
	// silence is the time without a record after which a stream counts as ended. endedTime is how long such a stream is
	// watched all the same, because one that moves on has only fallen behind.
	silence   = 30 * time.Second
	endedTime = 3 * time.Second
	// catchUpTime is how long a stream that moves on may take to reach the end. What is kept in a file, such as an audit
	// log, is read minutes late on a loaded machine.
	catchUpTime = 3 * time.Minute
)

// covered waits until the records of some arms reach this moment. On a loaded machine records lag behind, and a phase
// whose end they don't cover can't be judged.
func (l *live) covered(ctx context.Context, arms []string) error {
	end := time.Now()
	type reach struct {
		last, moved time.Time
		patience    time.Duration
	}
	seen := map[string]reach{}
	lags := func(a bundle.Artifact) bool {
		if a.Coverage == nil || !a.Coverage.Last.Before(end) || a.Arm != bundle.Shared && !slices.Contains(arms, a.Arm) {
			return false
		}
		p, known := seen[a.Path]
		switch last := a.Coverage.Last; {
		case !known && end.Sub(last) < silence:
			p = reach{last, end, coverTime}
		case !known:
			p = reach{last, end, endedTime}
		case last.After(p.last):
			p = reach{last, time.Now(), coverTime}
		}
		seen[a.Path] = p
		return time.Since(p.moved) < p.patience
	}
	for time.Since(end) < catchUpTime {
		waiting := false
		for _, a := range l.writer.View().Artifacts(bundle.Query{}) {
			waiting = lags(a) || waiting // each is looked at, so that no progress is missed
		}
		if !waiting {
			break
		}
		if err := wait(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for d, or until ctx ends.
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

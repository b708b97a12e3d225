package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// lookEvery is how often live checks are asked.
const lookEvery = 2 * time.Second

// sayEvery is how often a wait in which nothing changes says that it goes on.
const sayEvery = 30 * time.Second

// onset is a live check of exposure that has the cell's evidence taken at once when it first turns true.
func (r *trial) onset(ctx context.Context) func(cell string) bool {
	if r.plan.NoFaults { // nothing will ever be exposed
		return func(string) bool { return true }
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(cell string) bool {
		if r.restarted(cell) { // asked first: it takes little, and a subject that crashes again and again has a log that takes long to read
			return true
		}
		if !r.met(cell, check.Fault, r.exposure(true)) {
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

// exposure are the checks of exposure that can be met while the fault is in force, or those that are about what comes after it.
func (r *trial) exposure(inForce bool) []plan.Check {
	return slices.DeleteFunc(slices.Clone(r.plan.Exposure), func(c plan.Check) bool { return (c.Phase == check.Recovery) == inForce })
}

// judgeable reports whether a cell has shown the signature, or that it is well with every part of the signature known, and whatever of the exposure
// belongs to the recovery.
func (r *trial) judgeable(cell string) bool {
	if r.restarted(cell) {
		return true
	}
	if later := r.exposure(false); len(later) > 0 && !r.met(cell, check.Recovery, later) {
		return false
	}
	return r.signature(cell) || r.met(cell, check.Recovery, r.plan.Healed) && r.known(cell) || r.decided(cell)
}

// known reports whether every part of the signature has an answer right now: what isn't met is only shown not to be there by that.
func (r *trial) known(cell string) bool {
	for i := range r.plan.Signature {
		f, all, err := verdict.EvaluateSignature(r.writer.View(), cell, r.plan.Signature[i:i+1])
		if !r.asked(err) || all == check.Unknown {
			r.lacking.note(cell, f)
			return false
		}
	}
	return true
}

// decided reports whether a cell can't be shown to be well any more, because it wasn't while the fault was in force: nothing that is still to come
// changes that.
func (r *trial) decided(cell string) bool {
	return slices.ContainsFunc(r.plan.Healed, func(c plan.Check) bool {
		if c.Phase != check.Fault {
			return false
		}
		_, all, err := verdict.Evaluate(r.writer.View(), cell, check.Recovery, []plan.Check{c})
		return r.asked(err) && all != check.Met
	})
}

// restarted reports whether a cell's subject has become another process. Its outcome is then certain, and nothing is gained by waiting for what it
// hasn't shown.
func (r *trial) restarted(cell string) bool {
	f, ok := verdict.OneProcess(r.writer.View(), cell)
	if !ok || f.Met != check.NotMet {
		return false
	}
	if _, said := r.said.LoadOrStore(cell, true); !said {
		r.events.Emit(event.Event{Type: event.Warning, Cell: cell, Message: "its subject restarted, so it isn't waited for: " + f.Seen})
	}
	return true
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
	if longest == 0 {
		return time.Minute
	}
	return (time.Duration(longest) * 4 / 3).Round(time.Second)
}

// met reports whether all checks hold for a cell right now. It stops at the first that doesn't, and keeps what that one said: live, that answer is all
// that is wanted.
func (r *trial) met(cell, phase string, checks []plan.Check) bool {
	for i := range checks {
		f, all, err := verdict.Evaluate(r.writer.View(), cell, phase, checks[i:i+1])
		if !r.asked(err) || all != check.Met {
			r.lacking.note(cell, f)
			return false
		}
	}
	r.lacking.note(cell, nil)
	return len(checks) > 0
}

// lacking is which check each cell was last seen to wait for.
type lacking struct {
	mu   sync.Mutex
	said map[string]string
}

func (l *lacking) note(cell string, findings []check.Finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.said == nil {
		l.said = map[string]string{}
	}
	delete(l.said, cell)
	if len(findings) > 0 {
		l.said[cell] = fmt.Sprintf("%s is %s: %s", findings[0].Name, findings[0].Met, findings[0].Seen)
	}
}

// of tells what cells wait for, in their order.
func (l *lacking) of(cells []string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, c := range cells {
		if why := l.said[c]; why != "" {
			out = append(out, c+" ("+why+")")
		} else {
			out = append(out, c)
		}
	}
	return strings.Join(out, ", ")
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
	var said string
	var saidAt time.Time
	for {
		var missing []string
		looked := time.Now()
		for _, c := range cells {
			if !ok(c) {
				missing = append(missing, c)
			}
		}
		cost := time.Since(looked)
		so := time.Since(began)
		if len(missing) == 0 && so >= atLeast {
			return nil
		}
		if deadline > 0 && so >= deadline {
			return fmt.Errorf("after %s, still waiting for %s", so.Round(time.Second), r.lacking.of(missing))
		}
		if now := strings.Join(missing, ", "); now != "" && (now != said || time.Since(saidAt) > sayEvery) {
			said, saidAt = now, time.Now()
			r.events.Emit(event.Event{Type: event.Progress, Message: fmt.Sprintf("%s so far, waiting for %s", so.Round(time.Second), r.lacking.of(missing))})
		}
		// Asking reads the evidence, which grows: it must not take the time of what is being watched.
		if err := wait(ctx, max(lookEvery, cost)); err != nil {
			return err
		}
	}
}

// coverTime is how long evidence may lag behind the end of the last phase, and silence for how long a record stands still that is taken for ended.
const (
	coverTime = 15 * time.Second
	silence   = 30 * time.Second
)

// covered waits until the records of some cells reach this moment: on a loaded machine they lag behind, and a phase whose end they don't cover can't be
// judged.
func (r *trial) covered(ctx context.Context, cells []string) error {
	end := time.Now()
	lags := func(a bundle.Artifact) bool {
		return a.Coverage != nil && a.Coverage.Last.Before(end) && end.Sub(a.Coverage.Last) < silence && (a.Cell == bundle.Shared || slices.Contains(cells, a.Cell))
	}
	for time.Since(end) < coverTime && slices.ContainsFunc(r.writer.View().Artifacts(bundle.Query{}), lags) {
		if err := wait(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
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

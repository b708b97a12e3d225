package trial

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// restarts holds what was reported of the arms whose subject has become another process.
type restarts struct {
	mu   sync.Mutex
	arms map[string]*restart
}

type restart struct {
	at          time.Time   // when it was first noticed
	unexplained atomic.Bool // it is no part of the incident
}

// restarted reports whether an arm's subject has become another process, or none.
func (l *live) restarted(arm string) bool {
	_, ok := l.restart(arm)
	return ok
}

// restart returns the restart of an arm's subject. The first time it reports it.
func (l *live) restart(arm string) (*restart, bool) {
	f, ok := verdict.OneProcess(l.writer.View(), arm)
	if !ok || f.Met != check.False {
		return nil, false
	}
	l.restarts.mu.Lock()
	defer l.restarts.mu.Unlock()
	if l.restarts.arms == nil {
		l.restarts.arms = map[string]*restart{}
	}
	r := l.restarts.arms[arm]
	if r == nil {
		r = &restart{at: time.Now()}
		l.restarts.arms[arm] = r
		l.events.Emit(event.Event{
			Type:    event.Warning,
			Arm:     arm,
			Message: "its subject restarted: " + f.Seen,
		})
	}
	return r, true
}

// broken reports whether an arm's subject restarted, and not because of the incident. Its outcome is certain then, so
// there is no reason to wait. What would explain the end of the process may be recorded later than the end itself.
// Without faults nothing has to be explained.
func (l *live) broken(arm string) bool {
	r, ok := l.restart(arm)
	switch {
	case !ok:
		return false
	case l.plan.NoFaults || r.unexplained.Load():
		return true
	case time.Since(r.at) <= evidenceLag || l.explained(arm):
		return false
	}
	if !r.unexplained.Swap(true) {
		l.events.Emit(event.Event{
			Type:    event.Warning,
			Arm:     arm,
			Message: "its subject restarted, which no check of the signature explains, so it isn't waited for",
		})
	}
	return true
}

// explained reports whether a part of the signature says that the incident ended the arm's subject, or may have.
func (l *live) explained(arm string) bool {
	f, _, err := verdict.EvaluateSignature(l.writer.View(), arm, l.plan.Signature)
	return l.asked(err) && slices.ContainsFunc(f, endsProcess)
}

func endsProcess(f check.Finding) bool {
	return !f.Ended.IsZero() || slices.ContainsFunc(f.AnyOf, endsProcess)
}

// open reports whether an arm's subject restarted although its signature isn't complete, as far as it is asked of the
// fault phase: another end of the process, for example, may still be missing.
func (l *live) open(arm string) bool {
	if l.plan.NoFaults || !l.restarted(arm) {
		return false
	}
	inFault := slices.DeleteFunc(
		slices.Clone(l.plan.Signature),
		func(c plan.Check) bool { return !ofFault(c) },
	)
	for i := range inFault {
		f, all, err := verdict.EvaluateSignature(l.writer.View(), arm, inFault[i:i+1])
		if !l.asked(err) || all != check.True {
			l.pending.note(arm, inFault[i], f)
			return true
		}
	}
	return false
}

// ofFault reports whether a check, or one of its alternatives, is asked of the fault phase.
func ofFault(c plan.Check) bool {
	if len(c.AnyOf) > 0 {
		return slices.ContainsFunc(c.AnyOf, ofFault)
	}
	return c.Phase == check.Fault
}

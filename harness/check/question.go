package check

import (
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// question is a check that is being asked: where it looks, and its finding so far.
type question struct {
	Finding
	view   bundle.View
	arm    string
	phase  string
	began  time.Time     // when the phase began
	window bundle.Window // from the scope's offset after that to the end of the phase, or to now while it lasts
}

// ask is how every Eval begins: it refuses an invalid spec, and opens the window. If it can't, or if unready has a
// reason such as an unknown constant, ok is false and the question's finding is the answer: unknown, and why.
func ask(c interface{ Validate() error }, v bundle.View, s Scope, wanted string,
	unready ...error) (q *question, ok bool) {
	q = &question{Finding: Finding{Wanted: wanted}, view: v, arm: s.Arm, phase: s.Phase}
	for _, err := range append([]error{c.Validate()}, unready...) {
		if err != nil {
			q.Seen = err.Error()
			return q, false
		}
	}
	q.window, ok = s.Window(v)
	q.began = q.window.Start.Add(-s.After)
	switch {
	case !ok:
		q.Seen = "the phase " + s.Phase + " never began"
	case !q.window.End.After(q.window.Start): // nothing was looked at, which must not pass for having found nothing
		q.Seen = fmt.Sprintf("the phase %s did not last longer than %s", s.Phase, s.After)
		ok = false
	}
	return q, ok
}

// over is the same question about another window.
func (q *question) over(w bundle.Window) *question {
	other := *q
	other.window = w
	return &other
}

// inArm is the same question about another arm.
func (q *question) inArm(arm string) *question {
	other := *q
	other.arm = arm
	return &other
}

// sinceFault is the same question about a window that begins with the fault at the latest: what a restart took away
// since then was not healed.
func (q *question) sinceFault() *question {
	w := q.window
	if fault, ok := q.view.Phase(q.arm, Fault); ok {
		w.Start = earlierOf(w.Start, fault.Start)
	}
	return q.over(w)
}

// restarted says why what was seen in the window may be of several processes, "" if it isn't.
func (q *question) restarted() string {
	if f := OneProcess(q.view, q.arm, q.window, slack(q.window)); f.Met != True {
		return f.Seen
	}
	return ""
}

// answer is the question's finding.
func (q *question) answer(met Truth, seen string) Finding {
	q.Met, q.Seen = met, seen
	return q.Finding
}

// answerByCount is the finding of a search in which one is enough. That there is none is known only without a doubt.
func (q *question) answerByCount(n int, doubt string) Finding {
	switch {
	case n > 0:
		q.Met = True
	case doubt != "":
		return q.unknown(q.Seen + "; " + doubt)
	default:
		q.Met = False
	}
	return q.Finding
}

// unknown is the finding if the evidence doesn't answer, and why. How it nearly matched says nothing then.
func (q *question) unknown(why string) Finding {
	return Finding{Met: Unknown, Seen: why, Wanted: q.Wanted, Evidence: q.Evidence}
}

// lastSeen reads what is asked about the last stretch of the window. The stretch ends with the source's last look, so
// that all of it was watched.
func lastSeen[T any](q *question, kind bundle.Kind, arm string,
	hold time.Duration) (all []T, last bundle.Window, doubt string) {
	last = lastOf(q.window, hold)
	st := read[T](q.over(last).inArm(arm), kind)
	q.Evidence = st.paths
	if st.last.Before(last.End) {
		last = lastOf(bundle.Window{Start: q.window.Start, End: st.last}, hold)
	}
	return st.records, last, st.doubt
}

// throughout is the finding over the last stretch of the window: it has to hold for all of the time that is asked
// for.
func (q *question) throughout(last bundle.Window, hold time.Duration) Finding {
	if so := length(last); q.Met == True && so < hold {
		return q.unknown(fmt.Sprintf("%s, but for %s only", q.Seen, max(so, 0).Round(100*time.Millisecond)))
	}
	return q.Finding
}

// lastAt says when the last of some looks was.
func (q *question) lastAt(at time.Time) string {
	return fmt.Sprintf(", the last %s after %s began", at.Sub(q.began).Round(time.Second), q.phase)
}

// reached reports whether that was as long after the beginning of the phase as a check's lastAfter says; "" asks for
// nothing.
func (q *question) reached(lastAfter string, at time.Time) bool {
	return lastAfter == "" || at.Sub(q.began) >= duration(lastAfter)
}

// lastWanted is what lastAfter adds to what is wanted.
func lastWanted(lastAfter string) string {
	if lastAfter == "" {
		return ""
	}
	return ", the last at least " + lastAfter + " into the phase"
}

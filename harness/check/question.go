package check

import (
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// question is a check that is being asked: where the check looks, and its finding so far.
type question struct {
	Finding
	view   bundle.View
	arm    string
	phase  string
	began  time.Time     // when the phase began
	window bundle.Window // from the scope's offset after began to the end of the phase, or to now while the phase lasts
}

// ask begins every Eval: it validates the spec and opens the window. If either fails, or if unready holds an error,
// such as an unknown constant, ok is false and the question's finding is the answer: unknown, and why.
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
	case !q.window.End.After(q.window.Start): // an empty window must not pass for one in which nothing was found
		q.Seen = fmt.Sprintf("the phase %s did not last longer than %s", s.Phase, s.After)
		ok = false
	}
	return q, ok
}

// over returns the same question about another window.
func (q *question) over(w bundle.Window) *question {
	other := *q
	other.window = w
	return &other
}

// inArm returns the same question about another arm.
func (q *question) inArm(arm string) *question {
	other := *q
	other.arm = arm
	return &other
}

// sinceFault returns the same question about a window that begins with the fault or earlier. What a restart removed
// since the fault was not healed.
func (q *question) sinceFault() *question {
	w := q.window
	if fault, ok := q.view.Phase(q.arm, Fault); ok {
		w.Start = earlierOf(w.Start, fault.Start)
	}
	return q.over(w)
}

// restarted says why the evidence of the window may come from several processes, "" if it comes from one.
func (q *question) restarted() string {
	if f := OneProcess(q.view, q.arm, q.window, slack(q.window)); f.Met != True {
		return f.Seen
	}
	return ""
}

// answer completes the finding and returns it.
func (q *question) answer(met Truth, seen string) Finding {
	q.Met, q.Seen = met, seen
	return q.Finding
}

// answerByCount returns the finding of a search in which one match is enough. Without a match, the answer is False only
// if there is no doubt.
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

// unknown returns the finding for evidence that doesn't answer, with the reason. It drops near matches, which say
// nothing then.
func (q *question) unknown(why string) Finding {
	return Finding{Met: Unknown, Seen: why, Wanted: q.Wanted, Evidence: q.Evidence}
}

// lastSeen reads the records about the last stretch of the window. The stretch ends when the source was last read, or
// with the window if that is earlier, so that all of it was watched.
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

// throughout returns the finding over the last stretch of the window. True becomes unknown if the stretch is shorter
// than hold.
func (q *question) throughout(last bundle.Window, hold time.Duration) Finding {
	if so := length(last); q.Met == True && so < hold {
		return q.unknown(fmt.Sprintf("%s, but for %s only", q.Seen, max(so, 0).Round(100*time.Millisecond)))
	}
	return q.Finding
}

// lastAt says how long after the beginning of the phase the last of several looks was.
func (q *question) lastAt(at time.Time) string {
	return fmt.Sprintf(", the last %s after %s began", at.Sub(q.began).Round(time.Second), q.phase)
}

// reached reports whether at is as long after the beginning of the phase as a check's lastAfter asks; an empty
// lastAfter asks for nothing.
func (q *question) reached(lastAfter string, at time.Time) bool {
	return lastAfter == "" || at.Sub(q.began) >= duration(lastAfter)
}

// lastWanted returns the text that lastAfter adds to what is wanted.
func lastWanted(lastAfter string) string {
	if lastAfter == "" {
		return ""
	}
	return ", the last at least " + lastAfter + " into the phase"
}

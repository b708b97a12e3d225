// Package question is what checks are written with. Open validates a check's spec and opens the window of time that the
// check asks about. The Question that Open returns carries the window and the finding so far. The readers return what
// the artifacts of a kind say about the window, and the doubt that remains: gaps, failed captures, evidence of several
// processes. Where the evidence doesn't answer, Unknown makes the finding that says why.
package question

import (
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Question is a check that is being asked: where the check looks, and its finding so far.
type Question struct {
	check.Finding
	View   bundle.View
	Arm    string
	Phase  string
	Began  time.Time     // when the phase began
	Window bundle.Window // from the scope's offset after Began to the end of the phase, or to now while the phase lasts
}

// Open begins every Eval: it validates the spec and opens the window. If either fails, or if unready holds an error,
// such as an unknown constant, ok is false and the question's finding is the answer: unknown, and why.
func Open(c interface{ Validate() error }, v bundle.View, s check.Scope, wanted string,
	unready ...error) (q *Question, ok bool) {
	q = &Question{Finding: check.Finding{Wanted: wanted}, View: v, Arm: s.Arm, Phase: s.Phase}
	for _, err := range append([]error{c.Validate()}, unready...) {
		if err != nil {
			q.Finding = q.Unknown(check.Doubt(check.BadCheck, "%w", err))
			return q, false
		}
	}
	q.Window, ok = s.Window(v)
	q.Began = q.Window.Start.Add(-s.After)
	switch {
	case !ok:
		q.Finding = q.Unknown(check.Doubt(check.NoPhase, "the phase %s never began", s.Phase))
	case !q.Window.End.After(q.Window.Start): // an empty window must not pass for one in which nothing was found
		q.Finding = q.Unknown(
			check.Doubt(
				check.NoPhase,
				"the phase %s did not last longer than %s",
				s.Phase,
				s.After,
			),
		)
		ok = false
	}
	return q, ok
}

// Over returns the same question about another window.
func (q *Question) Over(w bundle.Window) *Question {
	other := *q
	other.Window = w
	return &other
}

// InArm returns the same question about another arm.
func (q *Question) InArm(arm string) *Question {
	other := *q
	other.Arm = arm
	return &other
}

// SinceFault returns the same question about a window that begins with the fault or earlier. What a restart removed
// since the fault was not healed.
func (q *Question) SinceFault() *Question {
	w := q.Window
	if fault, ok := q.View.Phase(q.Arm, check.Fault); ok {
		w.Start = EarlierOf(w.Start, fault.Start)
	}
	return q.Over(w)
}

// Restarted says why the evidence of the window may come from several processes, nil if it comes from one.
func (q *Question) Restarted() error {
	f := OneProcess(q.View, q.Arm, q.Window, Slack(q.Window))
	switch f.Met {
	case check.True:
		return nil
	case check.False:
		f.Code = check.OtherProcess
	}
	return check.Doubt(f.Code, "%s", f.Seen)
}

// Decide sets the answer. A doubt that a part of the question left is forgotten if another part has decided.
func (q *Question) Decide(met check.Truth) {
	if q.Met = met; met != check.Unknown {
		q.Code = ""
	}
}

// Answer completes the finding and returns it.
func (q *Question) Answer(met check.Truth, seen string) check.Finding {
	q.Met, q.Seen = met, seen
	return q.Finding
}

// AnswerByCount returns the finding of a search in which one match is enough. Without a match, the answer is False only
// if there is no doubt.
func (q *Question) AnswerByCount(n int, doubt error) check.Finding {
	switch {
	case n > 0:
		q.Met = check.True
	case doubt != nil:
		return q.UnknownAfter(doubt)
	default:
		q.Met = check.False
	}
	return q.Finding
}

// Unknown returns the finding for evidence that doesn't answer, with the reason. It drops what was seen, and near
// matches, which say nothing then; what was counted stays among the figures.
func (q *Question) Unknown(doubt error) check.Finding {
	return check.Finding{
		Met:      check.Unknown,
		Code:     check.CodeOf(doubt),
		Seen:     doubt.Error(),
		Wanted:   q.Wanted,
		Evidence: q.Evidence,
		Figures:  q.Figures,
	}
}

// UnknownAfter returns the finding for evidence that doesn't answer. It tells the reason after what was seen, and drops
// near matches.
func (q *Question) UnknownAfter(doubt error) check.Finding {
	return q.Unknown(fmt.Errorf("%s; %w", q.Seen, doubt))
}

// Doubt makes the answer unknown, and tells the reason after what was seen. Near matches stay.
func (q *Question) Doubt(doubt error) {
	q.DoubtBy(check.CodeOf(doubt), "; %s", doubt)
}

// DoubtBy does what Doubt does, and appends the text as it is.
func (q *Question) DoubtBy(code check.Code, format string, args ...any) {
	q.Met, q.Code = check.Unknown, code
	q.Add(format, args...)
}

// ReadLast reads the records about the last stretch of the window. The stretch ends when the source was last read, or
// with the window if that is earlier, so that all of it was watched.
func ReadLast[T any](q *Question, kind bundle.Kind, arm string,
	hold time.Duration) (all []T, last bundle.Window, doubt error) {
	last = LastOf(q.Window, hold)
	st := Read[T](q.Over(last).InArm(arm), kind)
	q.Evidence = st.Paths
	if st.Last.Before(last.End) {
		last = LastOf(bundle.Window{Start: q.Window.Start, End: st.Last}, hold)
	}
	return st.Records, last, st.Doubt
}

// Throughout returns the finding over the last stretch of the window. True becomes unknown if the stretch is shorter
// than hold.
func (q *Question) Throughout(last bundle.Window, hold time.Duration) check.Finding {
	if so := Length(last); q.Met == check.True && so < hold {
		return q.Unknown(
			check.Doubt(
				check.TooShort,
				"%s, but for %s only",
				q.Seen,
				max(so, 0).Round(100*time.Millisecond),
			),
		)
	}
	return q.Finding
}

// LastAt says how long after the beginning of the phase the last of several looks was.
func (q *Question) LastAt(at time.Time) string {
	return fmt.Sprintf(
		", the last %s after %s began",
		at.Sub(q.Began).Round(time.Second),
		q.Phase,
	)
}

// Reached reports whether at is as long after the beginning of the phase as a check's lastAfter asks; an empty
// lastAfter asks for nothing.
func (q *Question) Reached(lastAfter string, at time.Time) bool {
	return lastAfter == "" || at.Sub(q.Began) >= Duration(lastAfter)
}

// LastWanted returns the text that lastAfter adds to what is wanted.
func LastWanted(lastAfter string) string {
	if lastAfter == "" {
		return ""
	}
	return ", the last at least " + lastAfter + " into the phase"
}

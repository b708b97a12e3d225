// Package check defines the questions that scenarios ask of the evidence. The answer to a check is true, false, or
// unknown where data is missing. A check reads only a bundle.View, so the answer is the same live and afterwards.
//
// Checks are written with package question. A kind that makes sense for one scenario only stands beside it, in
// scenarios/NAME/kinds. A kind that several scenarios use, or that says nothing of any incident, stands in a shared
// package below, by what it asks of: logs, objects, goroutines (heap profiles, too), metrics (CPU time, too), probes,
// or expr, for an expression over all of these.
package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// Truth is the answer to a check: True, False or Unknown. The zero value is Unknown, which JSON shows as null.
type Truth int

// The three values of a Truth.
const (
	Unknown Truth = iota
	False
	True
)

// Of turns a bool into True or False.
func Of(b bool) Truth {
	if b {
		return True
	}
	return False
}

// String returns "met" for True, "not met" for False and "unknown" for Unknown.
func (t Truth) String() string { return [...]string{"unknown", "not met", "met"}[t] }

// asJSON has the JSON text of Unknown, False and True, in this order.
var asJSON = [...]string{"null", "false", "true"}

// MarshalJSON writes true, false or null.
func (t Truth) MarshalJSON() ([]byte, error) { return []byte(asJSON[t]), nil }

// UnmarshalJSON reads true, false or null.
func (t *Truth) UnmarshalJSON(b []byte) error {
	i := slices.Index(asJSON[:], string(b))
	if i < 0 {
		return fmt.Errorf("reading a three-valued truth: %q is none of true, false, null", b)
	}
	*t = Truth(i)
	return nil
}

// All returns True if every part is True, False if any part is False, and else Unknown. Without parts, All returns
// Unknown: an empty list proves nothing.
func All(parts ...Truth) Truth { return combine(parts, False) }

// Any returns True if any part is True, False if every part is False, and else Unknown. Without parts, Any returns
// Unknown.
func Any(parts ...Truth) Truth { return combine(parts, True) }

// combine returns decisive if one part has that value, and Unknown if a part is Unknown or there is no part. Otherwise
// all parts are the same, and combine returns their value.
func combine(parts []Truth, decisive Truth) Truth {
	switch {
	case slices.Contains(parts, decisive):
		return decisive
	case len(parts) == 0 || slices.Contains(parts, Unknown):
		return Unknown
	}
	return parts[0]
}

// The phases of a trial, in order. Lifting lasts from when the harness begins to lift the faults until it has seen
// that every fault is gone. No check is asked about Lifting: what happens then may be caused by the lifting itself.
const (
	Steady   = "steady"
	Baseline = "baseline"
	Fault    = "fault"
	Lifting  = "lifting"
	Recovery = "recovery"
)

// Scope says where a check looks: at which arm, in which phase, and from which offset after the phase was seen to
// begin.
type Scope struct {
	Arm   string
	Phase string
	After time.Duration
}

// Window returns the scope's stretch of time in v: from the phase's start plus After to the phase's end, or to now
// while the phase lasts. The bool is false if the phase never began.
func (s Scope) Window(v bundle.View) (bundle.Window, bool) {
	w, ok := v.Phase(s.Arm, s.Phase)
	if !ok {
		return w, false
	}
	w.Start = w.Start.Add(s.After)
	if w.End.IsZero() {
		w.End = time.Now()
	}
	return w, true
}

// Check is a question over the evidence.
type Check interface {
	// Reads returns the kinds of artifacts that the check needs. A plan in which no collector makes them is refused.
	Reads() []bundle.Kind
	// Eval answers the question. Missing or damaged data never makes Eval panic: the finding is then Unknown, and Seen
	// says what was missing.
	Eval(v bundle.View, s Scope) Finding
}

// Comparer is a Check that may compare the subject with its baseline, and then needs the very process of the baseline. A
// plan whose fault ends that process is refused.
type Comparer interface{ NeedsBaselineProcess() bool }

// CPUBound is a Check that may rest on how much CPU time something took. Other work on the host changes such a figure, or
// keeps it from being an answer.
type CPUBound interface{ RestsOnCPU() bool }

// Vacuous is a Check that may be met because nothing was there, such as a log without a single line. A plan in which only
// such checks decide an arm's outcome by that evidence is refused.
type Vacuous interface{ Vacuous() bool }

// VacuousByName is a Vacuous check that is unknown where nothing was read: only a name that is misspelt makes it vacuous.
// In a group, an alternative that asks for the same name is enough beside it.
type VacuousByName interface {
	Vacuous
	VacuousByName()
}

// LoadAsker is a Check of what a load recorded that may be told by the load's spec that it can't be met: it asks for a
// call that the load doesn't make, or for more calls than that. A plan with such a check is refused. The error may be a
// kinds.FieldError.
type LoadAsker interface {
	AsksLoad() string    // the load's name
	Fits(load any) error // the load's spec; nil if it may be met
}

// Figure names a quantity over time that a report can draw for a check. One field is set, or none if there is nothing
// to draw.
type Figure struct {
	Goroutines goroutine.Match // draws how many such goroutines each dump shows
	Writes     string          // a resource: draws how often its objects are written to
	Counter    string          // a metric: draws how fast it grows
}

// Figured is a Check that names a quantity for a report to draw.
type Figured interface{ Figure() Figure }

// Kind describes a kind of check, for Register.
type Kind = kinds.Kind[Check]

// Register adds a kind of check to the registry.
func Register(k Kind) { kinds.Register(kinds.Check, k) }

// LinePicker is a check that needs only some lines of a log. It answers the same whether it gets all lines, or only the
// lines that it wants and the number of the others. Code that keeps only some of a log's lines asks each check for this
// interface: a check without it wants all lines.
type LinePicker interface {
	Check
	// Lines returns regular expressions over a line's text, without regard to case: the check wants each line that
	// matches one. It also wants the last words of a Go program, which begin with panic: or fatal error:, and the
	// stacks below them. Those are kept for every check.
	Lines() []string
}

// Package check has the questions that scenarios ask of the evidence. A check is met, not met, or unknown because its
// data is not there. It reads only a bundle.View, so it gives the same answer live and afterwards.
//
// All kinds work alike: ask validates the spec and opens the window, a question carries both through the package, and
// unknown says why the evidence doesn't answer.
package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// Truth is a three-valued truth. Its zero value is Unknown, and JSON shows it as true, false or null.
type Truth int

// The three values.
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

// String is "met", "not met" or "unknown".
func (t Truth) String() string { return [...]string{"unknown", "not met", "met"}[t] }

// asJSON are the three values in JSON.
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

// All is met when every part is met, not met when any part is not met, else unknown. Nothing at all is unknown: an
// empty list proves nothing.
func All(parts ...Truth) Truth { return combine(parts, False) }

// Any is met when a part is met, not met when every part is not met, else unknown.
func Any(parts ...Truth) Truth { return combine(parts, True) }

// combine returns the decisive value if one part has it. Otherwise the parts are all the same, or one is unknown.
func combine(parts []Truth, decisive Truth) Truth {
	switch {
	case slices.Contains(parts, decisive):
		return decisive
	case len(parts) == 0 || slices.Contains(parts, Unknown):
		return Unknown
	}
	return parts[0]
}

// Finding is a check's answer. Seen and Wanted complete sentences for people, Evidence lists the paths of the
// artifacts that decided, and Differs says how it nearly matched.
type Finding struct {
	Name     string    `json:"name"`
	Met      Truth     `json:"met"`
	Seen     string    `json:"seen"`
	Wanted   string    `json:"wanted"`
	Differs  []string  `json:"differs"`
	Evidence []string  `json:"evidence"`
	Detail   string    `json:"detail,omitempty"` // the decisive stack or line, verbatim
	AnyOf    []Finding `json:"anyOf,omitempty"`
	// Tried says in numbers what the subject was exposed to, where the check measures that: an arm is only shown to
	// survive that much.
	Tried string `json:"tried,omitempty"`
	// Ended is when the subject's process ended, set by a check that asks whether the incident ended it. If the check
	// is met, the process's identity is judged up to that time. If it is unknown, so is whether it was one process
	// all along.
	Ended time.Time `json:"ended,omitzero"`
}

// The phases of a trial, in order. Lifting lasts from when the harness begins to lift the faults until it has seen
// every one gone. No check is asked about it: what happens then may be caused by the lifting itself.
const (
	Steady   = "steady"
	Baseline = "baseline"
	Fault    = "fault"
	Lifting  = "lifting"
	Recovery = "recovery"
)

// Scope says what a check is about: an arm, the phase that it is judged in, and the offset from where that
// phase was seen to begin.
type Scope struct {
	Arm   string
	Phase string
	After time.Duration
}

// Window is the scope's stretch of time in v: from the phase's start plus After to the phase's end, or to now while
// it lasts. It is false when the phase never began.
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
	// Reads says which artifacts it needs. A plan in which no collector makes them is refused.
	Reads() []bundle.Kind
	// Eval answers. It never panics on missing or damaged data: that is Unknown, with Seen saying what was missing.
	Eval(v bundle.View, s Scope) Finding
}

// Needs are what a Check names of the rest of its scenario.
type Needs struct {
	Constants []string // of the subject, which the scenario declares
	Nodes     []string // relative to the arm's cluster
	Loads     []string // which say themselves what they did
	Probes    []string // in the phase of the check
}

// Needer is a Check that names something. A plan that lacks any of it is refused.
type Needer interface{ Needs() Needs }

// Figure is a quantity over time that a check is about. One of its fields is set; a check that has nothing to draw
// has none.
type Figure struct {
	Goroutines goroutine.Match // how many of them each dump shows
	Writes     string          // objects of a resource: how often they are written to
	Counter    string          // a metric: how fast it grows
}

// Figured is a Check that says what a report can draw of it.
type Figured interface{ Figure() Figure }

// kind is what each file registers.
type kind = kinds.Kind[Check]

func register(k kind) { kinds.Register(kinds.Check, k) }

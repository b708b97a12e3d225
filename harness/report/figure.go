package report

import (
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
)

// Figure is one quantity over time, with a line for each arm that has values.
type Figure struct {
	Title string // "goroutines in registry.(*Store).DeleteCollection [chan send]"
	Unit  string // of the values: "goroutines"
	Dumps bool   // each value comes from a snapshot; nothing is known in between
	Lines []Line
	Lacks []string // which values are missing and why; each is the end of a sentence
}

// Line is one arm's part of a figure, in order of time. With Of set it is context: a component that all arms share, or
// one in which the arms don't differ.
type Line struct {
	Arm    string // "" for a component that all arms share
	Of     string // the component, "" for the subject
	Points []Point
}

// Label returns a name that tells the line from the others of its figure.
func (l Line) Label() string {
	switch {
	case l.Of == "":
		return l.Arm
	case l.Arm == "":
		return l.Of + " (shared)"
	}
	return l.Of + " of " + l.Arm
}

// Point is a value and when it was taken, in seconds after the Zero of the arm's Clock.
type Point struct{ Seconds, Value float64 }

// Clock places an arm on the time axis that all arms share, even if the arms ran one after the other.
type Clock struct {
	Arm, Role string
	Zero      time.Time
	Seen      bool   // Zero is when a fault was first seen; else it is where the fault phase began
	Faults    []Span // when a fault was seen to be in force
}

// Span is a stretch of a Clock's time, in seconds.
type Span struct{ From, To float64 }

// figures returns the figures that can be drawn, and the clocks of the arms. A figure without any value of an arm is
// left out.
func figures(e *evidence, t plan.Trial) ([]Figure, []Clock) {
	var clocks []Clock
	for _, c := range t.Arms {
		if k, ok := clockOf(e.View, c); ok {
			clocks = append(clocks, k)
		}
	}
	var out []Figure
	for _, s := range sources(t) {
		f := s.Figure
		for _, k := range clocks {
			values, lacks := s.read(e, k.Arm)
			if lacks != "" {
				f.Lacks = append(f.Lacks, k.Arm+": "+lacks)
			}
			if len(values) > 0 {
				f.Lines = append(f.Lines, Line{Arm: k.Arm, Points: k.points(values)})
			}
		}
		if len(f.Lines) == 0 {
			continue
		}
		if s.beside != nil {
			f.Lines = append(f.Lines, context(e, t, clocks, s.beside)...)
		}
		out = append(out, f)
	}
	return out, clocks
}

// context returns lines for components other than an arm's own subject. The components of an arm are on the clock of
// that arm. Shared components are on the clock of the first arm, which is right for all arms where the fault is shared
// too.
func context(e *evidence, t plan.Trial, clocks []Clock, of func(series) []value) []Line {
	var out []Line
	for i, k := range clocks {
		arms := []string{k.Arm}
		if i == 0 {
			arms = append(arms, bundle.Shared)
		}
		for _, arm := range arms {
			for _, a := range e.Artifacts(bundle.Query{Kind: bundle.MetricSamples, Arm: arm}) {
				if a.Component == "" || a.Component == t.Subject && arm != bundle.Shared {
					continue
				}
				s, _ := e.samples(a) // what is missing of the context takes nothing away from the arms
				values := of(s)
				if len(values) == 0 {
					continue
				}
				l := Line{Arm: k.Arm, Of: a.Component, Points: k.points(values)}
				if arm == bundle.Shared {
					l.Arm = ""
				}
				if slices.ContainsFunc(out, func(have Line) bool { return have.Label() == l.Label() }) {
					l.Of += " on " + a.Node
				}
				out = append(out, l)
			}
		}
	}
	return out
}

func (k Clock) seconds(at time.Time) float64 { return at.Sub(k.Zero).Seconds() }

func (k Clock) points(values []value) []Point {
	slices.SortStableFunc(values, func(a, b value) int { return a.at.Compare(b.at) })
	out := make([]Point, 0, len(values))
	for _, v := range values {
		out = append(out, Point{k.seconds(v.at), v.n})
	}
	return out
}

// clockOf returns the arm's time origin: the first fault, or the start of the fault phase. It returns false if there
// was neither.
func clockOf(v bundle.View, c plan.Arm) (Clock, bool) {
	k := Clock{Arm: c.Name, Role: c.Role}
	seen := inForce(v.Timeline(), c.Name)
	if len(seen) > 0 {
		k.Zero, k.Seen = seen[0].Start, true
	} else if w, ok := v.Phase(c.Name, check.Fault); ok {
		k.Zero = w.Start
	} else {
		return k, false
	}
	for _, w := range seen {
		k.Faults = append(k.Faults, Span{k.seconds(w.Start), k.seconds(w.End)})
	}
	return k, true
}

// inForce returns when at least one fault of an arm, or of all arms, was seen and not yet seen gone. If a fault is
// reported gone twice, the first report counts. A fault that was never seen gone lasts to the end.
func inForce(events []event.Event, arm string) []bundle.Window {
	var out []bundle.Window
	open := map[[2]string]bool{}
	for _, e := range events {
		if e.Arm != "" && e.Arm != bundle.Shared && e.Arm != arm {
			continue
		}
		name, _ := e.Fields["fault"].(string)
		node, _ := e.Fields["node"].(string)
		before := len(open)
		switch e.Type {
		case event.FaultSeen:
			open[[2]string{name, node}] = true
		case event.FaultGone:
			delete(open, [2]string{name, node})
		}
		switch {
		case before == 0 && len(open) > 0:
			out = append(out, bundle.Window{Start: e.Time})
		case before > 0 && len(open) == 0:
			out[len(out)-1].End = e.Time
		}
	}
	if n := len(out); n > 0 {
		out[n-1].End = out[n-1].Until(events)
	}
	return out
}

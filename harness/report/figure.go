package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/goroutine"
	"github.com/kube-relapse/relapse/harness/plan"
)

// Figure is one quantity over time, with a line for each arm that has values.
type Figure struct {
	Title string // "goroutines in registry.(*Store).DeleteCollection [chan send]"
	Unit  string // of the values: "goroutines"
	Dumps bool   // each value comes from a snapshot, with nothing known in between
	Lines []Line
	Lacks []string // which values are missing and why, one sentence's end each
}

// Line is one arm's part of a figure, in order of time.
type Line struct {
	Arm    string
	Points []Point
}

// Point is a value and when it was taken: seconds since the arm's Clock has 0.
type Point struct{ Seconds, Value float64 }

// Clock lays an arm on the time axis that all arms share, also arms that ran one after the other.
type Clock struct {
	Arm, Role, Cell string
	Zero            time.Time
	Seen            bool   // Zero is when a fault was first seen; else it is where the fault phase began
	Faults          []Span // when a fault was seen to be in force
}

// Span is a stretch of a Clock's time, in seconds.
type Span struct{ From, To float64 }

// source is something that can be drawn: one figure, and how an arm's values are had.
type source struct {
	Figure
	read func(v bundle.View, cell string) (values []value, lacks string)
}

type value struct {
	at time.Time
	n  float64
}

// sources is what can be drawn of a trial. A new quantity is a new entry here; one that no collector recorded isn't drawn.
func sources(t plan.Trial) []source {
	all := []source{{
		Figure: Figure{Title: "all goroutines of " + cmp.Or(t.Subject, "the subject"), Unit: "goroutines"},
		read: func(v bundle.View, cell string) ([]value, string) {
			return sampled(v, bundle.Query{Kind: bundle.MetricSamples, Cell: cell, Component: t.Subject}, "go_goroutines")
		},
	}}
	for _, m := range asked(t) {
		title := "goroutines in " + m.Func
		if m.State != "" {
			title += " [" + m.State + "]"
		}
		all = append(all, source{
			Figure: Figure{Title: title, Unit: "goroutines", Dumps: true},
			read: func(v bundle.View, cell string) ([]value, string) {
				return counted(v, bundle.Query{Cell: cell, Component: t.Subject}, m)
			},
		})
	}
	return all
}

// counting are the checks that count goroutines in a function, and whether its closures belong to it.
var counting = map[string]bool{"goroutines": false, "leakedGoroutines": true, "killedForMemory": true}

// asked lists which goroutines a trial's signature asks for, each once.
func asked(t plan.Trial) []goroutine.Match {
	var out []goroutine.Match
	var walk func([]plan.Check)
	walk = func(list []plan.Check) {
		for _, c := range list {
			walk(c.AnyOf)
			closures, ok := counting[c.Kind]
			var spec struct{ Func, State string }
			if !ok || json.Unmarshal(c.Spec, &spec) != nil || spec.Func == "" {
				continue
			}
			m := goroutine.Match{Func: spec.Func, State: spec.State, FoldCase: true, Closures: closures, Depth: 1}
			if !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	walk(t.Signature)
	return out
}

// figures reads what there is to draw. A figure without any value is left out.
func figures(v bundle.View, t plan.Trial) ([]Figure, []Clock) {
	var clocks []Clock
	for _, c := range t.Cells {
		if k, ok := clockOf(v, c); ok {
			clocks = append(clocks, k)
		}
	}
	var out []Figure
	for _, s := range sources(t) {
		f := s.Figure
		for _, k := range clocks {
			values, lacks := s.read(v, k.Cell)
			if lacks != "" {
				f.Lacks = append(f.Lacks, k.Arm+": "+lacks)
			}
			if len(values) > 0 {
				f.Lines = append(f.Lines, Line{Arm: k.Arm, Points: k.points(values)})
			}
		}
		if len(f.Lines) > 0 {
			out = append(out, f)
		}
	}
	return out, clocks
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

// clockOf has its 0 where a fault was first seen in the cell, or else where the fault phase began; false if neither happened.
func clockOf(v bundle.View, c plan.Cell) (Clock, bool) {
	k := Clock{Arm: c.Arm.Name, Role: c.Arm.Role, Cell: c.Name}
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

// inForce is when at least one fault of a cell, or of all, was seen and not yet seen gone. A fault that is told to be gone twice was gone the first time;
// one that never was lasts to the end.
func inForce(events []event.Event, cell string) []bundle.Window {
	var out []bundle.Window
	open := map[[2]string]bool{}
	for _, e := range events {
		if e.Cell != "" && e.Cell != bundle.Shared && e.Cell != cell {
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

// sampled are one metric's samples, all its label sets added up.
func sampled(v bundle.View, q bundle.Query, metric string) (out []value, lacks string) {
	for _, a := range v.Artifacts(q) {
		r, err := v.Open(a)
		if err != nil {
			lacks = err.Error()
			continue
		}
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var s bundle.MetricSample
			if err = json.Unmarshal(lines.Bytes(), &s); err != nil {
				break
			}
			if s.Name != metric {
				continue
			}
			if n := len(out); n > 0 && out[n-1].at.Equal(s.Time) {
				out[n-1].n += s.Value
				continue
			}
			out = append(out, value{s.Time, s.Value})
		}
		if err == nil {
			err = lines.Err()
		}
		if r.Close(); err != nil {
			lacks = fmt.Sprintf("reading %s: %v", a.Path, err)
		}
	}
	return out, lacks
}

// counted are the goroutines that m chooses in each dump: in debug=2, which alone has states, or in debug=1 if m asks for none. A dump that
// failed or is cut short has no count.
func counted(v bundle.View, q bundle.Query, m goroutine.Match) (out []value, lacks string) {
	q.Kind = bundle.Goroutines1
	if m.State != "" {
		q.Kind = bundle.Goroutines2
	}
	bad, last := 0, ""
	for _, a := range v.Artifacts(q) {
		d, err := readDump(v, a)
		if err == nil && d.Truncated {
			err = fmt.Errorf("%s is cut short", a.Path)
		}
		if err != nil {
			bad, last = bad+1, err.Error()
			continue
		}
		out = append(out, value{a.Time, float64(d.Count(m))})
	}
	if bad > 0 {
		lacks = fmt.Sprintf("dumps without a count: %d, the last because %s", bad, last)
	}
	return out, lacks
}

func readDump(v bundle.View, a bundle.Artifact) (*goroutine.Dump, error) {
	r, err := v.Open(a)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	d, err := goroutine.Read(r)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", a.Path, err)
	}
	return d, nil
}

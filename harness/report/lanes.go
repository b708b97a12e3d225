package report

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
)

// Lane is what happened to an arm, on the clock of that arm.
type Lane struct {
	Clock
	Phases   []Bar
	Rows     []Row // a row for each load, fault and probe
	Captures []Tick
	Onset    []Tick // when a live check first saw what it waited for
}

// Row is the bars of one load, fault or probe.
type Row struct {
	Name, Class string // Class is "fault" or "load"
	Bars        []Bar
}

// Bar is a named stretch of a lane.
type Bar struct {
	Span
	Name string // drawn where it fits
	More string // shown to a reader who points at the bar
}

// Tick is a moment, and what was recorded then.
type Tick struct {
	Seconds float64
	What    string
}

// onsetMark marks captures that a live check asked for when it first succeeded.
const onsetMark = "onset"

// laneOf returns the lane of an arm. If the fault phase never began in the arm, 0 is the beginning of the trial.
func laneOf(v bundle.View, c plan.Arm, loads []Load) Lane {
	events := v.Timeline()
	k, ok := clockOf(v, c)
	if !ok && len(events) > 0 {
		k.Zero = events[0].Time
	}
	l := Lane{Clock: k}
	for _, phase := range []string{check.Steady, check.Baseline, check.Fault, check.Lifting, check.Recovery} {
		if w, ok := v.Phase(c.Name, phase); ok {
			l.Phases = append(l.Phases, Bar{Span: l.span(w), Name: phase})
		}
	}
	for _, load := range loads {
		if load.Arm != c.Name && load.Arm != bundle.Shared && load.Arm != "" {
			continue
		}
		r := Row{Name: load.Name, Class: "load"}
		for _, round := range load.Rounds {
			w := bundle.Window{Start: round.Start, End: round.End}
			w.End = w.Until(events)
			r.Bars = append(r.Bars, Bar{l.span(w), load.Name,
				fmt.Sprintf(" (round %d of %d calls)", round.Round, round.Calls)})
		}
		l.Rows = append(l.Rows, r)
	}
	for _, name := range faultNames(events, c.Name) {
		r := Row{Name: name, Class: "fault"}
		only := slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool {
			fault, _ := e.Fields["fault"].(string)
			return (e.Type == event.FaultSeen || e.Type == event.FaultGone) && fault != name
		})
		for _, w := range inForce(only, c.Name) {
			r.Bars = append(r.Bars, Bar{Span: l.span(w), Name: name})
		}
		l.Rows = append(l.Rows, r)
	}
	for _, p := range probesOf(v, c.Name) {
		w := bundle.Window{Start: p.Start, End: p.End}
		l.Rows = append(l.Rows, Row{Name: p.Name, Class: "load",
			Bars: []Bar{{l.span(w), p.Name, " (" + p.Ended + ")"}}})
	}
	l.capture(v, c.Name)
	return l
}

func (k Clock) span(w bundle.Window) Span { return Span{k.seconds(w.Start), k.seconds(w.End)} }

// probesOf returns the records of an arm's probes. It leaves out a record that can't be read, which the check that asks
// for it reports.
func probesOf(v bundle.View, arm string) (out []bundle.ProbeRecord) {
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.WorkProbe, Arm: arm}) {
		r, err := v.Open(a)
		if err != nil {
			continue
		}
		var p bundle.ProbeRecord
		if json.NewDecoder(r).Decode(&p) == nil {
			out = append(out, p)
		}
		r.Close()
	}
	return out
}

// faultNames returns the faults that were seen in an arm, in the order in which they were first seen.
func faultNames(events []event.Event, arm string) []string {
	var out []string
	for _, e := range events {
		name, _ := e.Fields["fault"].(string)
		if e.Type == event.FaultSeen && (e.Arm == "" || e.Arm == bundle.Shared || e.Arm == arm) &&
			!slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// capture lists the snapshots of an arm. Those that were begun within one second share a tick.
func (l *Lane) capture(v bundle.View, arm string) {
	for _, a := range v.Artifacts(bundle.Query{}) {
		if a.Coverage != nil || a.Time.IsZero() || a.Arm != arm || a.Kind == bundle.LoadSummary ||
			a.Kind == bundle.WorkProbe {
			continue
		}
		what := string(a.Kind)
		if a.Error != "" {
			what += " (failed)"
		}
		at := l.seconds(a.Time)
		into := &l.Captures
		if a.Mark == onsetMark {
			into = &l.Onset
		}
		if n := len(*into); n > 0 && at-(*into)[n-1].Seconds < 1 {
			(*into)[n-1].What += ", " + what
			continue
		}
		*into = append(*into, Tick{at, what})
	}
}

// reach returns the stretch of time that covers all lanes. It always includes 0.
func reach(lanes []Lane) (from, to float64) {
	for _, l := range lanes {
		for _, b := range l.Phases {
			from, to = min(from, b.From), max(to, b.To)
		}
		for _, r := range l.Rows {
			for _, b := range r.Bars {
				from, to = min(from, b.From), max(to, b.To)
			}
		}
	}
	return from, to
}

// zero says what time of day the lane's 0 is.
func (l Lane) zero() string {
	if l.Zero.IsZero() {
		return "nothing was recorded"
	}
	return l.Zero.UTC().Format(clockForm)
}

package check

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "goroutines",
		Doc: "Goroutines in a wait state inside a function, in the debug=2 dumps of the window.\n\n" +
			"With persist, every dump must show them: that tells stuck from busy. With span, dumps in a row must. Without either, one dump is enough. Each " +
			"answer needs the dumps: fewer than asked for, a cut dump or a missing file is unknown. The state blocked stands for every state in which a goroutine waits " +
			"for another one, a lock or a timer, but not for the network; any for all there are.",
		Example: "name: relist-blocked\nkind: goroutines\nphase: recovery\nspec:\n  func: pleg.(*GenericPLEG).Relist\n  state: chan send\n  dumps: 3\n  lastAfter: 60s\n  persist: true\n",
		New:     func() Check { return &Goroutines{Dumps: 1, Count: 1} },
	})
}

// Goroutines asks for goroutines that are blocked in a function.
type Goroutines struct {
	Func      string   `json:"func" jsonschema:"the function that is blocked, without arguments; the import path's front may be left out; case does not matter"`
	State     string   `json:"state" jsonschema:"the wait state as a dump prints it, chan send, or blocked: any in which it waits for another goroutine, a lock or a timer, or any: whatever it is"`
	Depth     string   `json:"depth,omitempty" jsonschema:"top: the function itself is blocked, which is the default; any: it may have called what is"`
	Without   []string `json:"without,omitempty" jsonschema:"beginnings of functions' names, such as an import path: a stack with one of these doesn't count"`
	Count     int      `json:"count,omitzero" jsonschema:"how many goroutines at least in each dump"`
	Dumps     int      `json:"dumps,omitzero" jsonschema:"how many dumps the answer must rest on, at least"`
	LastAfter string   `json:"lastAfter,omitempty" jsonschema:"how long after the start of the phase the last dump must lie: a duration with its unit"`
	Persist   bool     `json:"persist,omitempty" jsonschema:"every dump of the window must show them, not just one"`
	Span      string   `json:"span,omitempty" jsonschema:"for how long dumps in a row must show them, anywhere in the window: a duration with its unit"`
	Since     *Mark    `json:"since,omitempty" jsonschema:"only dumps of the stretch that begins here count"`
}

// Reads names debug=2 dumps, and what the mark comes from.
func (c *Goroutines) Reads() []bundle.Kind {
	if c.Since == nil {
		return []bundle.Kind{bundle.Goroutines2}
	}
	return with(c.Since.reads(), bundle.Goroutines2)
}

// NeedsConstants names the constant of the mark.
func (c *Goroutines) NeedsConstants() []string {
	if c.Since == nil {
		return nil
	}
	return c.Since.Plus.constants()
}

// Validate refuses what any dump would meet, or no dump at all.
func (c *Goroutines) Validate() error {
	switch {
	case c.Func == "":
		return fmt.Errorf("func is empty, which every goroutine would match")
	case c.Count < 1:
		return fmt.Errorf("count is %d (want at least 1)", c.Count)
	case c.Dumps < 1:
		return fmt.Errorf("dumps is %d (want at least 1)", c.Dumps)
	case c.Depth != "" && c.Depth != "top" && c.Depth != "any":
		return fmt.Errorf("depth is %q (want top or any)", c.Depth)
	case slices.Contains(c.Without, ""):
		return fmt.Errorf("without has an empty name, which every function begins with")
	case c.Persist && c.Span != "":
		return fmt.Errorf("persist and span are both given (want every dump, or dumps in a row)")
	}
	var errs []error
	if c.LastAfter != "" {
		errs = append(errs, positive("lastAfter", c.LastAfter))
	}
	if c.Span != "" {
		errs = append(errs, positive("span", c.Span))
	}
	if c.Since != nil {
		errs = append(errs, c.Since.validate("since"))
	}
	return errors.Join(errs...)
}

// Eval reads every dump of the window.
func (c *Goroutines) Eval(v bundle.View, s Scope) Finding {
	wanted := fmt.Sprintf("at least %d goroutine [%s] in %s in %s", c.Count, c.State, c.Func, c.howMany())
	if err := c.Validate(); err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	w, never := s.open(v)
	if never != "" {
		return unknown(wanted, never, nil)
	}
	from := w.Start.Add(-s.After)
	if c.Since != nil {
		mark := c.Since.at(v, s.Cell, w)
		if mark.doubt != "" {
			return unknown(wanted, mark.doubt, mark.paths)
		}
		wanted += mark.after()
		if mark.short != "" {
			return Finding{Met: NotMet, Wanted: wanted, Seen: mark.short, Evidence: mark.paths}
		}
		w.Start, w.End = later(w.Start, mark.Start), mark.End
	}
	r := c.survey(v, s, w)
	f := Finding{Wanted: wanted, Evidence: r.evidence, Differs: r.notes, Detail: r.stack}
	f.Seen = fmt.Sprintf("%d of %d dumps show it", r.with, r.read)
	if !r.last.IsZero() {
		f.Seen += fmt.Sprintf(", the last %s after %s began", r.last.Sub(from).Round(time.Second), s.Phase)
	}
	if c.Span != "" {
		f.Seen += fmt.Sprintf(", in a row over %s", r.row.Round(time.Second))
	}
	late, err := c.lateEnough(r.last, from)
	switch {
	case err != nil:
		return unknown(wanted, err.Error(), nil)
	case r.missing != "":
		f.Met, f.Seen = Unknown, f.Seen+"; "+r.missing
	case c.Span != "" && r.row >= c.row():
		f.Met = Met
	case c.Span != "" && r.watched < c.row():
		f.Met, f.Seen = Unknown, f.Seen+": they are too few to answer by"
	case c.Span == "" && !c.Persist && r.with > 0:
		f.Met = Met
	case r.read < c.Dumps || !late:
		f.Met, f.Seen = Unknown, f.Seen+": too few to answer by"
	case c.Persist:
		f.Met = Of(r.with == r.read)
	default:
		f.Met = NotMet
	}
	return f
}

func (c *Goroutines) howMany() string {
	which := "one dump"
	if c.Persist {
		which = fmt.Sprintf("every one of at least %d dumps", max(c.Dumps, 1))
	}
	if c.Span != "" {
		which = "dumps in a row over " + c.Span
	}
	if c.LastAfter != "" {
		which += ", the last at least " + c.LastAfter + " into the phase"
	}
	return which
}

func (c *Goroutines) lateEnough(last, start time.Time) (bool, error) {
	if c.LastAfter == "" {
		return true, nil
	}
	d, err := time.ParseDuration(c.LastAfter)
	return !last.IsZero() && last.Sub(start) >= d, err
}

// survey is what the dumps of a window show.
type survey struct {
	read, with int
	last       time.Time
	row        time.Duration // the longest stretch between dumps in a row that all show it
	watched    time.Duration // from the first dump to the last
	stack      string        // the last one seen
	missing    string
	notes      []string
	evidence   []string
}

func (c *Goroutines) survey(v bundle.View, s Scope, w bundle.Window) survey {
	var r survey
	var first, rowBegan time.Time
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Goroutines2, Cell: s.Cell, From: w.Start, To: w.End}) {
		if a.Error != "" { // a capture that failed is no dump: it neither shows the goroutines nor their absence
			r.notes = append(r.notes, fmt.Sprintf("the dump of %s failed: %s", a.Time.UTC().Format("15:04:05"), a.Error))
			continue
		}
		if a.Missing {
			r.missing = broken(a)
			continue
		}
		d, err := dump(v, a)
		if err != nil {
			r.missing = fmt.Sprintf("reading %s: %v", a.Path, err)
			continue
		}
		showing := slices.DeleteFunc(d.Find(c.match()), c.leavesOut)
		n := 0
		for _, g := range showing {
			n += g.Count
		}
		if d.Truncated && n < c.Count {
			r.missing = a.Path + " is cut short"
			continue
		}
		r.read, r.last = r.read+1, a.Time
		if first.IsZero() {
			first = a.Time
		}
		r.watched = a.Time.Sub(first)
		r.evidence = append(r.evidence, a.Path)
		if n >= c.Count {
			r.with++
			r.stack = text(showing[0])
			if rowBegan.IsZero() {
				rowBegan = a.Time
			}
			r.row = max(r.row, a.Time.Sub(rowBegan))
			continue
		}
		rowBegan = time.Time{}
		if near := d.Find(goroutine.Match{Func: c.Func, FoldCase: true}); len(near) > 0 {
			r.notes = append(r.notes, fmt.Sprintf("%s: in that function, but [%s] in %s", a.Time.UTC().Format("15:04:05"), near[0].State, top(near[0])))
		}
	}
	r.notes = few(r.notes)
	return r
}

// match chooses what may be it; leavesOut is asked about the rest.
func (c *Goroutines) match() goroutine.Match {
	m := goroutine.Match{Func: c.Func, State: c.State, FoldCase: true, Depth: 1}
	if c.Depth == "any" {
		m.Depth = 0
	}
	if c.State == anyWait || c.State == anyState {
		m.State = ""
	}
	return m
}

// leavesOut reports that a goroutine isn't it: one that waits for nobody, or for what is named in Without.
func (c *Goroutines) leavesOut(g goroutine.Group) bool {
	if c.State == anyWait && !waits(g.State) {
		return true
	}
	return slices.ContainsFunc(g.Frames, func(f goroutine.Frame) bool {
		return slices.ContainsFunc(c.Without, func(name string) bool { return strings.HasPrefix(f.Func, name) })
	})
}

func (c *Goroutines) row() time.Duration {
	d, _ := time.ParseDuration(c.Span) // Validate has read it
	return d
}

// anyWait is the state that stands for all of waits, anyState the one that stands for all there are: a hard loop goes on no more than a wait does.
const (
	anyWait  = "blocked"
	anyState = "any"
)

// waits reports whether a goroutine in a state waits for another one, a lock or a timer: `chan send`, `select (no cases)`, `sync.Mutex.Lock`.
func waits(state string) bool {
	for _, begins := range []string{"chan ", "select", "semacquire", "sync.", "sleep"} {
		if strings.HasPrefix(state, begins) {
			return true
		}
	}
	return false
}

func dump(v bundle.View, a bundle.Artifact) (*goroutine.Dump, error) {
	d, err := v.Remember(a, "dump", func(_ any, r io.Reader) (any, error) { return goroutine.Read(r) })
	if err != nil {
		return nil, err
	}
	return d.(*goroutine.Dump), nil
}

func text(g goroutine.Group) string {
	var b strings.Builder
	_ = g.Write(&b) // a strings.Builder never fails
	return strings.TrimSpace(b.String())
}

func top(g goroutine.Group) string {
	if len(g.Frames) == 0 {
		return "an empty stack"
	}
	return g.Frames[0].Func
}

// few keeps the first and the last notes of many.
func few(notes []string) []string {
	if len(notes) <= 4 {
		return notes
	}
	left := fmt.Sprintf("… and %d more", len(notes)-4)
	return slices.Concat(notes[:2], []string{left}, notes[len(notes)-2:])
}

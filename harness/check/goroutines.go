package check

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/goroutine"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "goroutines",
		Doc: "Goroutines in a wait state inside a function, in the debug=2 dumps of the window.\n\n" +
			"With persist, every dump must show them: that tells stuck from busy. Without it, one dump is enough. Either answer needs the dumps: fewer " +
			"than asked for, a cut dump or a missing file is unknown.",
		Example: "name: relist-blocked\nkind: goroutines\nphase: recovery\nspec:\n  func: pleg.(*GenericPLEG).Relist\n  state: chan send\n  dumps: 3\n  lastAfter: 60s\n  persist: true\n",
		New:     func() Check { return &Goroutines{Dumps: 1, Count: 1} },
	})
}

// Goroutines asks for goroutines that are blocked in a function.
type Goroutines struct {
	Func      string `json:"func" jsonschema:"the function that is blocked, without arguments; the import path's front may be left out; case does not matter"`
	State     string `json:"state" jsonschema:"the wait state as a dump prints it: chan send"`
	Count     int    `json:"count,omitzero" jsonschema:"how many goroutines at least in each dump"`
	Dumps     int    `json:"dumps,omitzero" jsonschema:"how many dumps the answer must rest on, at least"`
	LastAfter string `json:"lastAfter,omitempty" jsonschema:"how long after the start of the phase the last dump must lie: a duration with its unit"`
	Persist   bool   `json:"persist,omitempty" jsonschema:"every dump of the window must show them, not just one"`
}

// Reads names debug=2 dumps.
func (c *Goroutines) Reads() []bundle.Kind { return []bundle.Kind{bundle.Goroutines2} }

// Validate refuses what any dump would meet, or no dump at all.
func (c *Goroutines) Validate() error {
	switch {
	case c.Func == "":
		return fmt.Errorf("func is empty, which every goroutine would match")
	case c.Count < 1:
		return fmt.Errorf("count is %d (want at least 1)", c.Count)
	case c.Dumps < 1:
		return fmt.Errorf("dumps is %d (want at least 1)", c.Dumps)
	case c.LastAfter != "":
		return positive("lastAfter", c.LastAfter)
	}
	return nil
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
	r := c.survey(v, s, w)
	f := Finding{Wanted: wanted, Evidence: r.evidence, Differs: r.notes, Detail: r.stack}
	f.Seen = fmt.Sprintf("%d of %d dumps show it", r.with, r.read)
	if !r.last.IsZero() {
		f.Seen += fmt.Sprintf(", the last %s after %s began", r.last.Sub(w.Start.Add(-s.After)).Round(time.Second), s.Phase)
	}
	late, err := c.lateEnough(r.last, w.Start.Add(-s.After))
	switch {
	case err != nil:
		return unknown(wanted, err.Error(), nil)
	case r.missing != "":
		f.Met, f.Seen = Unknown, f.Seen+"; "+r.missing
	case !c.Persist && r.with > 0:
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
	stack      string // the last one seen
	missing    string
	notes      []string
	evidence   []string
}

func (c *Goroutines) survey(v bundle.View, s Scope, w bundle.Window) survey {
	var r survey
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
		m := goroutine.Match{Func: c.Func, State: c.State, FoldCase: true, Depth: 1}
		n := d.Count(m)
		if d.Truncated && n < c.Count {
			r.missing = a.Path + " is cut short"
			continue
		}
		r.read, r.last = r.read+1, a.Time
		r.evidence = append(r.evidence, a.Path)
		if n >= c.Count {
			r.with++
			r.stack = text(d.Find(m)[0])
			continue
		}
		if near := d.Find(goroutine.Match{Func: c.Func, FoldCase: true}); len(near) > 0 {
			r.notes = append(r.notes, fmt.Sprintf("%s: in that function, but [%s] in %s", a.Time.UTC().Format("15:04:05"), near[0].State, top(near[0])))
		}
	}
	r.notes = few(r.notes)
	return r
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

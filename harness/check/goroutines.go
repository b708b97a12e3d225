package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

func init() {
	register(kind{
		Name: "goroutines",
		Doc: "Goroutines in a wait state inside a function, in the debug=2 dumps of the window.\n\n" +
			"With persist, every dump must show them: that tells stuck from busy. With span, dumps in a row must. " +
			"Without either, one dump is enough. Each answer needs the dumps: fewer than asked for, a cut dump or " +
			"a missing file is unknown. With same, it must be the same goroutines each time, told by their ids. With " +
			"waited, goroutines that wait for less, as far as the dump says, are no answer: it prints no time below " +
			"one minute, nor before a garbage collection. The " +
			"state blocked stands for every state in which a goroutine waits for " +
			"another one, a lock or a timer, but not for the network; ready for running and runnable, where the runtime's own " +
			"frames on top of the function, such as runtime.Gosched, don't count; any for all there are. With createdBy, " +
			"who started a goroutine tells which are meant: a cure is free to name what they run.",
		Example: "name: relist-blocked\nkind: goroutines\nphase: recovery\nspec:\n  func: " +
			"pleg.(*GenericPLEG).Relist\n  state: chan send\n  dumps: 3\n  lastAfter: 60s\n  persist: true\n",
		Meets:   `{"func":"pleg.(*GenericPLEG).Relist","state":"chan send","dumps":2,"persist":true}`,
		Differs: `{"func":"pleg.(*GenericPLEG).Relist","state":"select","dumps":2}`,
		New:     func() Check { return &Goroutines{Dumps: 1, Count: 1} },
	})
}

// Goroutines asks for goroutines in a given state, by the function that they are in or by their creator.
type Goroutines struct {
	Func      string      `json:"func,omitempty" jsonschema:"the function that is blocked, without arguments; the import path's front may be left out; case does not matter. May be left out where createdBy is given"`
	State     string      `json:"state" jsonschema:"the wait state as a dump prints it, chan send, or blocked: any in which it waits for another goroutine, a lock or a timer, or ready: running or runnable, or any: whatever it is"`
	Depth     string      `json:"depth,omitempty" jsonschema:"top: the function itself is blocked, which is the default; any: it may have called what is"`
	Closures  bool        `json:"closures,omitempty" jsonschema:"functions that are written inside func count as it: func1, whose number changes with versions"`
	Under     string      `json:"under,omitempty" jsonschema:"another function that must be on the same stack, written like func"`
	CreatedBy string      `json:"createdBy,omitempty" jsonschema:"the beginning of the name of the function that started them, such as an import path with its dot, whatever they are in"`
	Without   []string    `json:"without,omitempty" jsonschema:"beginnings of functions' names, such as an import path: a stack with one of these doesn't count"`
	Count     int         `json:"count,omitzero" jsonschema:"how many goroutines at least in each dump"`
	Dumps     int         `json:"dumps,omitzero" jsonschema:"how many dumps the answer must rest on, at least"`
	LastAfter string      `json:"lastAfter,omitempty" jsonschema:"how long after the start of the phase the last dump must lie: a duration with its unit"`
	Persist   bool        `json:"persist,omitempty" jsonschema:"every dump of the window must show them, not just one"`
	Same      bool        `json:"same,omitempty" jsonschema:"with persist or span: the dumps must show the same ones, by their ids"`
	Span      string      `json:"span,omitempty" jsonschema:"for how long dumps in a row must show them, anywhere in the window: a duration with its unit"`
	Waited    string      `json:"waited,omitempty" jsonschema:"for how long each must have waited by what the dump itself says, in whole minutes: 2m"`
	Since     *StartPoint `json:"since,omitempty" jsonschema:"only dumps of the stretch that begins here count"`
}

// Reads names debug=2 dumps, and the artifacts that the start point comes from.
func (c *Goroutines) Reads() []bundle.Kind { return union(c.Since.reads(), bundle.Goroutines2) }

// Needs names the constant of the start point.
func (c *Goroutines) Needs() Needs { return Needs{Constants: c.Since.constants()} }

// Validate refuses a question that every dump would answer with yes, or none could, and fields that contradict each
// other.
func (c *Goroutines) Validate() error {
	return cmp.Or(
		refuse(c.Func == "" && c.CreatedBy == "", "func is empty, which every goroutine would match"),
		refuse(c.Func == "" && c.State == ready && c.Depth != "any",
			"func is empty and state is ready (want depth any: there is no function that something could be on top of)"),
		refuse(c.Count < 1, "count is %d (want at least 1)", c.Count),
		refuse(c.Dumps < 1, "dumps is %d (want at least 1)", c.Dumps),
		refuse(!slices.Contains([]string{"", "top", "any"}, c.Depth), "depth is %q (want top or any)", c.Depth),
		refuse(slices.Contains(c.Without, ""), "without has an empty name, which every function begins with"),
		refuse(c.Same && !c.Persist && c.Span == "",
			"same is given without persist or span (want one: one dump has nothing to be the same as)"),
		refuse(c.Same && c.Waited != "", "same and waited are both given (want one of them)"),
		refuse(c.Persist && c.Span != "", "persist and span are both given (want every dump, or dumps in a row)"),
		errors.Join(optional("lastAfter", c.LastAfter), optional("span", c.Span), optional("waited", c.Waited),
			c.Since.validate("since")),
	)
}

// Figure returns what a report can draw: how many such goroutines there are. It is empty if no function is given.
func (c *Goroutines) Figure() Figure {
	if c.Func == "" {
		return Figure{}
	}
	return Figure{Goroutines: c.match()}
}

// Eval reads every dump of the window.
func (c *Goroutines) Eval(v bundle.View, s Scope) Finding {
	q, ok := ask(c, v, s, fmt.Sprintf("at least %d goroutine [%s] in %s in %s", c.Count, c.State, c.where(), c.howMany()))
	if !ok || !q.startAt(c.Since) {
		return q.Finding
	}
	r := c.collect(q)
	read := len(r.paths)
	q.Evidence, q.Differs, q.Detail = r.paths, firstAndLast(r.notes), r.stack
	q.Seen = fmt.Sprintf("%d of %d dumps show it", r.with, read)
	if !r.last.IsZero() {
		q.Seen += q.lastAt(r.last)
	}
	row := duration(c.Span)
	if c.Span != "" {
		q.Seen += fmt.Sprintf(", in a row over %s", r.row.Round(time.Second))
	}
	switch {
	case r.missing != "":
		q.Seen += "; " + r.missing
	case c.Span != "" && r.row >= row:
		q.Met = True
	case c.Span != "" && r.watched < row:
		q.Seen += ": they are too few to answer by"
	case c.Span == "" && !c.Persist && r.with > 0:
		q.Met = True
	case r.short:
		q.Seen += "; some show it, not for " + c.Waited + " as far as they say"
	case read < c.Dumps || !q.reached(c.LastAfter, r.last):
		q.Seen += ": too few to answer by"
	case c.Persist:
		q.Met = Of(r.with == read)
		if c.Same {
			q.Seen += fmt.Sprintf("; %d goroutines are in all of them: %v", len(r.same), r.same)
		}
	default:
		q.Met = False
	}
	return q.Finding
}

func (c *Goroutines) where() string {
	where := cmp.Or(c.Func, "any function")
	if c.Under != "" {
		where += " under " + c.Under
	}
	if c.CreatedBy != "" {
		where += ", created by " + c.CreatedBy
	}
	return where
}

func (c *Goroutines) howMany() string {
	which := "one dump"
	if c.Persist {
		which = fmt.Sprintf("every one of at least %d dumps", max(c.Dumps, 1))
	}
	if c.Span != "" {
		which = "dumps in a row over " + c.Span
	}
	return which + lastWanted(c.LastAfter)
}

// collected is what the dumps of a window show.
type collected struct {
	captured
	with    int           // how many dumps show enough such goroutines
	short   bool          // some dump shows such goroutines, but too few that are known to have waited long enough
	row     time.Duration // the longest stretch between dumps in a row that all show enough
	watched time.Duration // from the first dump to the last
	stack   string        // of such a goroutine in the last dump that shows enough
	same    []uint64      // with Same: the ids that all dumps so far show, or with Span all dumps of the row
}

func (c *Goroutines) collect(q *question) (r collected) {
	var first, rowBegan time.Time
	r.each(q, bundle.Goroutines2, "dump", func(a bundle.Artifact) error {
		d, err := dump(q.view, a)
		if err != nil {
			return err
		}
		showing := slices.DeleteFunc(d.Find(c.match()), c.leavesOut)
		n := 0
		var ids []uint64
		for _, g := range showing {
			n += c.waited(g)
			ids = append(ids, g.IDs...)
		}
		if c.Same {
			row := slices.Clone(ids)
			if !first.IsZero() && (c.Persist || !rowBegan.IsZero()) {
				row = slices.DeleteFunc(row, func(id uint64) bool { return !slices.Contains(r.same, id) })
			}
			if c.Span != "" && len(row) < c.Count { // these goroutines begin a new row
				row, rowBegan = ids, time.Time{}
			}
			r.same, n = row, len(row)
		}
		r.short = r.short || n < c.Count && len(showing) > 0 && c.Waited != ""
		if d.Truncated && n < c.Count {
			return cutShort(a)
		}
		if first.IsZero() {
			first = a.Time
		}
		r.watched = a.Time.Sub(first)
		if n < c.Count {
			rowBegan = time.Time{}
			if len(showing) > 0 && c.Same {
				r.notes = append(r.notes, fmt.Sprintf("%s: %d of those there are the same as before", clock(a.Time), n))
			} else if near := c.near(d); len(near) > 0 {
				what := "in that function"
				if c.Func == "" {
					what = "of that creator"
				}
				r.notes = append(r.notes,
					fmt.Sprintf("%s: %s, but [%s] in %s", clock(a.Time), what, near[0].State, top(near[0])))
			}
			return nil
		}
		r.with++
		r.stack = text(showing[0])
		if rowBegan.IsZero() {
			rowBegan = a.Time
		}
		r.row = max(r.row, a.Time.Sub(rowBegan))
		return nil
	})
	return r
}

// waited returns how many goroutines of a group are known to have waited as long as c.Waited. A group records only its
// shortest and its longest wait.
func (c *Goroutines) waited(g goroutine.Group) int {
	switch d := duration(c.Waited); {
	case g.MinWait >= d:
		return g.Count
	case g.MaxWait >= d:
		return 1
	}
	return 0
}

// match returns a Match that chooses goroutines by function and state; leavesOut then drops those that don't count.
func (c *Goroutines) match() goroutine.Match {
	m := goroutine.Match{Func: c.Func, State: c.State, FoldCase: true, Closures: c.Closures, Depth: 1}
	if c.Depth == "any" || c.State == ready { // of ready goroutines, leavesOut looks at the top
		m.Depth = 0
	}
	if slices.Contains([]string{anyWait, ready, anyState}, c.State) {
		m.State = ""
	}
	return m
}

// near returns the goroutines that have the function and the creator asked for, whatever their state and whatever is on
// top of their stack.
func (c *Goroutines) near(d *goroutine.Dump) []goroutine.Group {
	return slices.DeleteFunc(d.Find(goroutine.Match{Func: c.Func, FoldCase: true}),
		func(g goroutine.Group) bool { return !strings.HasPrefix(g.CreatedBy, c.CreatedBy) })
}

// leavesOut reports whether a goroutine doesn't count: another function created it, it should wait or be ready and
// isn't, its stack lacks the function that Under names, or its stack has a function that Without names.
func (c *Goroutines) leavesOut(g goroutine.Group) bool {
	if !strings.HasPrefix(g.CreatedBy, c.CreatedBy) {
		return true
	}
	if c.State == ready && !(g.Ready() && (c.Depth == "any" || c.onTop(g))) {
		return true
	}
	if c.State == anyWait && !waits(g.State) || c.Under != "" && !(goroutine.Match{Func: c.Under, FoldCase: true}).Chooses(g) {
		return true
	}
	return slices.ContainsFunc(g.Frames, func(f goroutine.Frame) bool {
		return slices.ContainsFunc(c.Without, func(name string) bool { return strings.HasPrefix(f.Func, name) })
	})
}

// onTop reports whether the function is on top of a stack, not counting the runtime's own functions above it.
func (c *Goroutines) onTop(g goroutine.Group) bool {
	own := slices.IndexFunc(g.Frames, func(f goroutine.Frame) bool { return !strings.HasPrefix(f.Func, "runtime.") })
	g.Frames = g.Frames[max(own, 0):]
	return goroutine.Match{Func: c.Func, FoldCase: true, Closures: c.Closures, Depth: 1}.Chooses(g)
}

// These values of State stand for several states: anyWait for every state that waits reports, ready for running and
// runnable, and anyState for every state there is, because a goroutine in a hard loop gets no further than one that
// waits.
const (
	anyWait  = "blocked"
	ready    = "ready"
	anyState = "any"
)

// waits reports whether a goroutine in a state waits for another goroutine, a lock or a timer: `chan send`, `select (no
// cases)`, `sync.Mutex.Lock`.
func waits(state string) bool {
	return slices.ContainsFunc([]string{"chan ", "select", "semacquire", "sync.", "sleep"},
		func(begins string) bool { return strings.HasPrefix(state, begins) })
}

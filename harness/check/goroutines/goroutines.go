// Package goroutines has the checks that read goroutine dumps and heap profiles: whether goroutines hang in a function,
// and whether more goroutines or more memory are left than in the baseline.
package goroutines

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

func init() {
	check.Register(check.Kind{
		Name: "goroutines",
		Doc: "The debug=2 dumps of the window show goroutines in a given state inside a function.\n\n" +
			"With persist, every dump must show them, which tells stuck from busy. With span, all dumps in a row " +
			"over that time must show them. Without persist and span, one dump is enough. With same, the dumps must " +
			"show the same goroutines, known by their ids. With persist and span, a fault that ended the subject's process " +
			"between two of the dumps makes the answer unknown. If a dump is missing, if a dump that shows too few is cut " +
			"short, or if there are too few dumps to decide, the answer is unknown. " +
			"Without persist, no answer is false if a capture failed: that dump might have shown them.\n\n" +
			"With waited, a goroutine counts only if the dump says that it has waited for so long. Goroutines that " +
			"may have waited for less make the answer unknown, not false: a dump prints no time below one minute, " +
			"and none before a garbage collection.\n\n" +
			"The state blocked stands for every state in which a goroutine waits for another goroutine, a lock or a " +
			"timer, but not for the network. The state ready stands for running and runnable; frames of the runtime " +
			"on top of the function, such as runtime.Gosched, are ignored then. The state any stands for every " +
			"state.\n\n" +
			"With createdBy, the function that started a goroutine tells which goroutines count, because a fix may " +
			"rename the functions that they run.",
		Example: "name: relist-blocked\nkind: goroutines\nphase: recovery\nspec:\n  func: " +
			"pleg.(*GenericPLEG).Relist\n  state: chan send\n  dumps: 3\n  lastAfter: 60s\n  persist: true\n",
		Meets:   `{"func":"pleg.(*GenericPLEG).Relist","state":"chan send","dumps":2,"persist":true}`,
		Differs: `{"func":"pleg.(*GenericPLEG).Relist","state":"select","dumps":2}`,
		New:     func() check.Check { return &Goroutines{Dumps: 1, Count: 1} },
	})
}

// Goroutines asks for goroutines in a given state, by the function that they are in or by their creator.
type Goroutines struct {
	Func      string      `json:"func,omitempty" jsonschema:"function that the goroutines are in, without arguments; the start of the import path may be left out, and case does not matter. Required unless createdBy is given"`
	State     string      `json:"state" jsonschema:"state as a dump prints it (chan send), or one of blocked (waits for another goroutine, a lock or a timer), ready (running or runnable) and any (every state)"`
	Depth     string      `json:"depth,omitempty" jsonschema:"top: the function is on top of the stack (default); any: the function may be anywhere on the stack"`
	Closures  bool        `json:"closures,omitempty" jsonschema:"also counts functions that are written inside func or under, such as func1, whose number changes between versions"`
	Under     string      `json:"under,omitempty" jsonschema:"another function that must be on the same stack, written like func. Default: none"`
	CreatedBy string      `json:"createdBy,omitempty" jsonschema:"start of the name of the function that started the goroutines, such as an import path with its dot. Default: any function"`
	Without   []string    `json:"without,omitempty" jsonschema:"starts of functions' names, such as an import path: a goroutine with such a function on its stack doesn't count, whoever vendored it"`
	Count     int         `json:"count,omitzero" jsonschema:"how many such goroutines a dump must show, at least (1 or more)"`
	Dumps     int         `json:"dumps,omitzero" jsonschema:"how many dumps there must be, at least (1 or more). Without persist, a true answer needs only the dumps that show the goroutines"`
	LastAfter string      `json:"lastAfter,omitempty" refers:"stretch" jsonschema:"how long after the start of the phase the last dump must be taken, at least: a duration with its unit. Default: any time"`
	Persist   bool        `json:"persist,omitempty" jsonschema:"every dump of the window must show such goroutines, not just one"`
	Same      bool        `json:"same,omitempty" jsonschema:"with persist or span: the dumps must show the same goroutines, known by their ids. Not together with waited"`
	Span      string      `json:"span,omitempty" refers:"stretch" jsonschema:"for how long all dumps in a row must show such goroutines, anywhere in the window: a duration with its unit. Not together with persist"`
	Waited    string      `json:"waited,omitempty" jsonschema:"how long each goroutine must have waited, by the dump itself, which counts whole minutes: a duration such as 2m"`
	Since     *StartPoint `json:"since,omitempty" jsonschema:"where the stretch begins in which dumps count. Give one of log, node and flood. Default: the whole window"`
}

// Reads names debug=2 dumps, and the artifacts that the start point comes from.
func (c *Goroutines) Reads() []bundle.Kind {
	return question.Union(c.Since.Reads(), bundle.Goroutines2)
}

// Choices lists the places on a stack.
func (c *Goroutines) Choices() map[string][]string {
	return map[string][]string{"depth": {"top", "any"}}
}

// Validate refuses a question that every dump would answer with yes, or none could, and fields that contradict each
// other.
func (c *Goroutines) Validate() error {
	return cmp.Or(
		question.Refuse(
			c.Func == "" && c.CreatedBy == "",
			"func is empty, which every goroutine would match",
		),
		question.Refuse(
			c.Func == "" && c.State == ready && c.Depth != "any",
			"func is empty and state is ready (want depth any: there is no function that something could be on top of)",
		),
		question.State("state", c.State, anyWait, ready, anyState),
		question.Refuse(c.Count < 1, "count is %d (want at least 1)", c.Count),
		question.Refuse(c.Dumps < 1, "dumps is %d (want at least 1)", c.Dumps),
		question.Refuse(
			!slices.Contains([]string{"", "top", "any"}, c.Depth),
			"depth is %q (want top or any)",
			c.Depth,
		),
		question.Refuse(
			slices.Contains(c.Without, ""),
			"without has an empty name, which every function begins with",
		),
		question.Refuse(
			c.Same && !c.Persist && c.Span == "",
			"same is given without persist or span (want one: one dump has nothing to be the same as)",
		),
		question.Refuse(
			c.Same && c.Waited != "",
			"same and waited are both given (want one of them)",
		),
		question.Refuse(
			c.Persist && c.Span != "",
			"persist and span are both given (want every dump, or dumps in a row)",
		),
		errors.Join(
			question.Optional("lastAfter", c.LastAfter),
			question.Optional("span", c.Span),
			question.Optional("waited", c.Waited),
			c.Since.Validate("since"),
		),
	)
}

// OfTrials names the fields that say how a trial shows the goroutines: over which of its dumps, and how many.
func (*Goroutines) OfTrials() []string {
	return []string{"count", "dumps", "lastAfter", "persist", "same", "span", "since"}
}

// Figure returns what a report can draw: how many such goroutines there are. It is empty if no function is given.
func (c *Goroutines) Figure() check.Figure {
	if c.Func == "" {
		return check.Figure{}
	}
	return check.Figure{Goroutines: c.match()}
}

// Eval reads every dump of the window.
func (c *Goroutines) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, fmt.Sprintf("at least %d goroutine [%s] in %s in %s", c.Count, c.State, c.where(), c.howMany()))
	if !ok || !startAt(q, c.Since) {
		return q.Finding
	}
	r := c.collect(q)
	read := len(r.Paths)
	q.Evidence, q.Differs, q.Detail = r.Paths, question.FirstAndLast(r.Notes), r.stack
	q.Say("%d of %d dumps show it", question.N("dumpsLikeIt", r.with), question.N("dumps", read))
	if !r.Last.IsZero() {
		q.Add("%s", q.LastAt(r.Last))
	}
	row := question.Duration(c.Span)
	if c.Span != "" {
		q.Add(", in a row over %s", question.Rounded("inARowSeconds", r.row, time.Second))
	}
	switch {
	case r.Missing != nil:
		q.Doubt(r.Missing)
	case c.Span != "" && r.row >= row:
		q.Met = check.True
	case r.unread != nil:
		q.Doubt(r.unread)
	case r.ended != nil && r.with > 0:
		q.Evidence = append(q.Evidence, r.endPaths...)
		q.DoubtBy(
			check.OtherProcess,
			"; %s ended process %d at %s, between two of the dumps, and goroutines of two processes "+
				"are not one",
			r.ended.Fault,
			r.ended.PID,
			question.Clock(r.ended.Time),
		)
	case c.Span != "" && r.watched < row:
		q.DoubtBy(check.TooFew, ": they are too few to answer by")
	case c.Span == "" && !c.Persist && r.with > 0:
		q.Met = check.True
	case r.short:
		q.DoubtBy(check.NotConclusive, "; some show it, not for %s as far as they say", c.Waited)
	case read < c.Dumps || !q.Reached(c.LastAfter, r.Last):
		q.DoubtBy(check.TooFew, ": too few to answer by")
	case c.Persist:
		q.Met = check.Of(r.with == read)
		if c.Same {
			q.Add(
				"; %d goroutines are in all of them: %v",
				question.N("sameGoroutines", len(r.same)),
				r.same,
			)
		}
	case !r.Failed.IsZero():
		q.DoubtBy(check.Unreadable, "; what those that failed would have shown isn't known")
	default:
		q.Met = check.False
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
	return which + question.LastWanted(c.LastAfter)
}

// waited returns how many goroutines of a group are known to have waited as long as c.Waited. A group records only its
// shortest and its longest wait.
func (c *Goroutines) waited(g goroutine.Group) int {
	switch d := question.Duration(c.Waited); {
	case g.MinWait >= d:
		return g.Count
	case g.MaxWait >= d:
		return 1
	}
	return 0
}

// match returns a Match that chooses goroutines by function and state; leavesOut then drops those that don't count.
func (c *Goroutines) match() goroutine.Match {
	m := goroutine.Match{
		Func:     c.Func,
		State:    c.State,
		FoldCase: true,
		Closures: c.Closures,
		Depth:    1,
	}
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
	if c.State == anyWait && !waits(g.State) || c.Under != "" && !(goroutine.Match{Func: c.Under, FoldCase: true, Closures: c.Closures}).Chooses(g) {
		return true
	}
	return slices.ContainsFunc(g.Frames, func(f goroutine.Frame) bool {
		return slices.ContainsFunc(c.Without, func(name string) bool {
			return strings.HasPrefix(f.Func, name) || strings.HasPrefix(unvendored(f.Func), name)
		})
	})
}

// unvendored returns a function's name as it is where its package isn't vendored.
func unvendored(function string) string {
	const vendor = "/vendor/"
	if i := strings.LastIndex(function, vendor); i >= 0 {
		return function[i+len(vendor):]
	}
	return function
}

// onTop reports whether the function is on top of a stack, not counting the runtime's own functions above it.
func (c *Goroutines) onTop(g goroutine.Group) bool {
	own := slices.IndexFunc(
		g.Frames,
		func(f goroutine.Frame) bool { return !strings.HasPrefix(f.Func, "runtime.") },
	)
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

package kinds

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// Leak says what a leaked goroutine looks like, and how to tell a call that is still being served from a call that is
// over.
type Leak struct {
	Func     string   `json:"func" jsonschema:"function that is blocked, itself or in one of its closures, without arguments; the start of the import path may be left out, and case does not matter"`
	State    string   `json:"state,omitempty" jsonschema:"state as a dump prints it: chan send"`
	InFlight []string `json:"inFlight,omitempty" jsonschema:"parts of functions' names. A goroutine with such a function on its stack shows that a call is still in flight; so does a goroutine that is in func in any other state"`
}

// Figure returns what a report draws: how many goroutines are blocked in the function.
func (l Leak) Figure() check.Figure {
	return check.Figure{
		Goroutines: goroutine.Match{
			Func:     l.Func,
			State:    l.State,
			FoldCase: true,
			Closures: true,
			Depth:    1,
		},
	}
}

func (l Leak) validate() error {
	return cmp.Or(
		question.Refuse(l.Func == "", "func is empty, which every goroutine would match"),
		question.State("state", l.State),
		question.Refuse(l.State == "", "state is empty, which a goroutine at work would match"),
		question.Refuse(
			slices.Contains(l.InFlight, ""),
			"inFlight is %q (want parts of names, none of them empty)",
			l.InFlight,
		),
	)
}

// snapshot is a pair of goroutine profiles that were taken one after the other.
type snapshot struct {
	at      time.Time // when debug=2 was taken
	blocked int       // goroutines in the state whose innermost call is the function, by debug=2
	onTop   int       // goroutines whose innermost call is the function, by debug=1, which knows no states
	serving int       // other goroutines, of calls that are in flight
	ids     []uint64  // of the blocked goroutines, sorted
	stack   string    // of the largest group of blocked goroutines
}

// quiet reports whether no blocked goroutine belongs to a call in flight. A call that is being served blocks in the
// same send for a moment. If the two profiles differ, something moved between them.
func (s snapshot) quiet() bool { return s.serving == 0 && s.onTop == s.blocked }

// observed is what the snapshots of a window show.
type observed struct {
	question.Captured
	quiet []snapshot // in order of time
	read  int        // how many snapshots could be read, quiet or not
}

func (l observed) newest() snapshot { return l.quiet[len(l.quiet)-1] }

// without returns how many of the last quiet snapshots in a row show no blocked goroutine.
func (l observed) without() int {
	n := 0
	for _, s := range slices.Backward(l.quiet) {
		if s.blocked > 0 {
			break
		}
		n++
	}
	return n
}

// same reports whether every quiet snapshot shows exactly the same goroutines.
func (l observed) same() bool {
	return !slices.ContainsFunc(
		l.quiet,
		func(s snapshot) bool { return !slices.Equal(s.ids, l.quiet[0].ids) },
	)
}

// addTo tells a question what the snapshots show: "20 such goroutines, the same in 4 quiet snapshots of 5".
func (l observed) addTo(q *question.Question) {
	if len(l.quiet) > 0 {
		lo, hi := l.quiet[0].blocked, l.quiet[0].blocked
		for _, s := range l.quiet {
			lo, hi = min(lo, s.blocked), max(hi, s.blocked)
		}
		n := question.N("goroutines", l.newest().blocked)
		switch {
		case hi == 0:
			q.Keep("goroutines", 0)
			q.Add("no such goroutine in ")
		case lo != hi:
			q.Add("%d such goroutines in the last, %d to %d in ", n, lo, hi)
		case l.same():
			q.Add("%d such goroutines, the same in ", n)
		default:
			q.Add("%d such goroutines in each of ", n)
		}
	}
	q.Add(
		"%d quiet snapshots of %d",
		question.N("quietSnapshots", len(l.quiet)),
		question.N("snapshots", l.read),
	)
}

// observe reads the snapshots of the window: each debug=2 dump with the debug=1 dump taken just before it. Captures
// that failed, or that can't be read, count as in question.Captured.Each.
func (l Leak) observe(q *question.Question) (out observed) {
	in := bundle.Query{
		Kind: bundle.Goroutines1,
		Arm:  q.Arm,
		From: q.Window.Start,
		To:   q.Window.End,
	}
	firsts := q.View.Artifacts(in)
	in.Kind = bundle.Goroutines2
	before := q.Window.Start.Add(-1)
	for _, two := range q.View.Artifacts(in) {
		one, ok := precedingDump(firsts, before, two.Time)
		before = two.Time
		switch {
		case two.Error != "":
			out.Notes = append(
				out.Notes,
				fmt.Sprintf("the dump of %s failed: %s", question.Clock(two.Time), two.Error),
			)
			continue
		case !ok:
			out.Notes = append(
				out.Notes,
				fmt.Sprintf("%s: there is no debug=1 beside it", question.Clock(two.Time)),
			)
			continue
		case one.Error != "":
			out.Notes = append(
				out.Notes,
				fmt.Sprintf("the debug=1 of %s failed: %s", question.Clock(one.Time), one.Error),
			)
			continue
		}
		s, err := l.snapshot(q.View, one, two)
		if err != nil {
			out.Missing = err
			continue
		}
		out.read++
		out.Paths = append(out.Paths, one.Path, two.Path)
		switch {
		case s.quiet():
			out.quiet = append(out.quiet, s)
		case s.serving > 0:
			out.Notes = append(
				out.Notes,
				fmt.Sprintf(
					"%s: %d blocked, and %d goroutines serve calls in flight",
					question.Clock(s.at),
					s.blocked,
					s.serving,
				),
			)
		default:
			out.Notes = append(
				out.Notes,
				fmt.Sprintf(
					"%s: %d blocked by debug=2, %d by debug=1",
					question.Clock(s.at),
					s.blocked,
					s.onTop,
				),
			)
		}
	}
	return out
}

// precedingDump finds the debug=1 dump that belongs to the debug=2 dump taken at by: the newest one taken after the
// previous debug=2 dump, and not after this one.
func precedingDump(firsts []bundle.Artifact, after, by time.Time) (one bundle.Artifact, ok bool) {
	for _, a := range firsts {
		if a.Time.After(after) && !a.Time.After(by) {
			one, ok = a, true
		}
	}
	return one, ok
}

// snapshot reads a pair of profiles.
func (l Leak) snapshot(v bundle.View, one, two bundle.Artifact) (s snapshot, err error) {
	s.at = two.Time
	first, err := question.ReadCompleteDump(v, one)
	if err != nil {
		return s, err
	}
	second, err := question.ReadCompleteDump(v, two)
	if err != nil {
		return s, err
	}
	within := goroutine.Match{Func: l.Func, FoldCase: true, Closures: true}
	top := within
	top.Depth = 1
	s.onTop = first.Count(top)
	top.State = l.State
	largest := 0
	for _, g := range second.Groups {
		switch {
		case top.Chooses(g):
			s.blocked += g.Count
			s.ids = append(s.ids, g.IDs...)
			if g.Count > largest {
				largest, s.stack = g.Count, g.Text()
			}
		case within.Chooses(g) || l.serves(g):
			s.serving += g.Count
		}
	}
	slices.Sort(s.ids)
	return s, nil
}

// serves reports whether a frame of a goroutine shows that its call is still being served.
func (l Leak) serves(g goroutine.Group) bool {
	return slices.ContainsFunc(g.Frames, func(f goroutine.Frame) bool {
		return slices.ContainsFunc(
			l.InFlight,
			func(part string) bool { return strings.Contains(f.Func, part) },
		)
	})
}

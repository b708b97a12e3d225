package goroutines

import (
	"cmp"
	"fmt"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

func init() {
	check.Register(check.Kind{
		Name: "leafCount",
		Doc: "A debug=1 profile of the window counts so many goroutines with a function on top of their stack, calling nothing.\n\n" +
			"Such a profile tells neither what goroutines wait for nor for how long. It leaves out the runtime's own functions on " +
			"top of a stack, so that a goroutine that waits in a function looks like one that runs in it. This check is for " +
			"evidence that has nothing better; with debug=2 use goroutines.",
		Example: "name: many-distributors\nkind: leafCount\nphase: fault\nspec:\n  func: registry.(*Store).DeleteCollection\n  closures: true\n" +
			"  atLeast: 100\n",
		Meets:   `{"func":"pleg.(*GenericPLEG).Relist","atLeast":1}`,
		Differs: `{"func":"pleg.(*GenericPLEG).Start","atLeast":1}`,
		New:     func() check.Check { return &LeafCount{AtLeast: 1} },
	})
}

// LeafCount asks how many goroutines have a function on top of their stack.
type LeafCount struct {
	Func     string `json:"func" jsonschema:"function on top of the goroutines' stacks, without arguments; the start of the import path may be left out, and case does not matter"`
	Closures bool   `json:"closures,omitempty" jsonschema:"also counts functions that are written inside func, such as func1"`
	AtLeast  int    `json:"atLeast,omitzero" jsonschema:"how many such goroutines one profile must count, at least (1 or more)"`
}

// Reads names debug=1 profiles.
func (c *LeafCount) Reads() []bundle.Kind { return []bundle.Kind{bundle.Goroutines1} }

// Validate refuses a question that every profile would answer with yes.
func (c *LeafCount) Validate() error {
	return cmp.Or(
		question.Refuse(c.Func == "", "func is empty, which every goroutine would match"),
		question.Refuse(c.AtLeast < 1, "atLeast is %d (want at least 1)", c.AtLeast),
	)
}

// OfTrials names the field that says how a trial shows the goroutines: how many there are.
func (*LeafCount) OfTrials() []string { return []string{"atLeast"} }

// Eval reads every profile of the window. The one with the most such goroutines decides.
func (c *LeafCount) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, fmt.Sprintf("at least %d goroutines with %s on top in a debug=1 profile", c.AtLeast, c.Func))
	if !ok {
		return q.Finding
	}
	most, read := 0, 0
	cut := false
	var all question.Captured
	all.Each(q, bundle.Goroutines1, "profile", func(a bundle.Artifact) error {
		d, err := question.ReadDump(q.View, a)
		if err != nil {
			return err
		}
		read, cut = read+1, cut || d.Truncated
		m := goroutine.Match{Func: c.Func, FoldCase: true, Closures: c.Closures, Depth: 1}
		if n := d.Count(m); n > most {
			most, q.Detail = n, d.Find(m)[0].Text()
		}
		return nil
	})
	q.Evidence, q.Differs = all.Paths, question.FirstAndLast(all.Notes)
	q.Say(
		"at most %d goroutines have it on top, in %d profiles",
		question.N("goroutines", most),
		question.N("profiles", read),
	)
	switch {
	case most >= c.AtLeast:
		q.Met = check.True
	case all.Missing != nil:
		q.Doubt(all.Missing)
	case read == 0:
		q.DoubtBy(check.NotRecorded, ": there is nothing to answer by")
	case cut:
		q.DoubtBy(check.Unreadable, "; a profile is cut short")
	case !all.Failed.IsZero():
		q.DoubtBy(check.Unreadable, "; what those that failed would have shown isn't known")
	default:
		q.Met = check.False
	}
	return q.Finding
}

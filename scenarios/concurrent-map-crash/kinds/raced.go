// Package kinds has the kinds of the scenario concurrent-map-crash: checks of data races and of panics that the program
// recovered from.
package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/logs"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

func init() {
	check.Register(check.Kind{
		Name: "raced",
		Doc: "Go's race detector reported a race in a component: two accesses to the same memory, at least one of " +
			"them a write, in no fixed order.\n\n" +
			"The two accesses are the sides of the race. If only one side is given, the other may be anything. With " +
			"none, there must be no such race. Only an arm whose source has race: true can answer; any other arm is " +
			"unknown. Finding no race needs a log without gaps. It means that these two sides didn't race in this " +
			"trial, not that they can't race.",
		Example: "name: both-sides\nkind: raced\nphase: fault\nspec:\n  component: kube-apiserver\n  sides:\n" +
			"    - [json.mapEncoder.encode]\n    - [audit.AddAuditAnnotationsMap]\n",
		Differs: `{"component":"kubelet","sides":[["f"],["g"]]}`,
		New:     func() check.Check { return &Raced{} },
	})
}

// Raced checks that Go's race detector reported a race or, with None, that it didn't.
type Raced struct {
	Component string     `json:"component" refers:"log" derives:"subject" jsonschema:"component whose log is read, such as kube-apiserver"`
	Sides     [][]string `json:"sides" jsonschema:"one or two lists of functions. The stack of one access must have all functions of one list, and the stack of the other access all of the other list. With one list, the other access may be anything"`
	None      bool       `json:"none,omitempty" jsonschema:"instead asks that there is no such race"`
}

// Reads names component logs.
func (c *Raced) Reads() []bundle.Kind { return []bundle.Kind{bundle.Logs} }

// Vacuous reports whether a log without any line meets the check.
func (c *Raced) Vacuous() bool { return c.None }

// Validate refuses a spec that any race would satisfy.
func (c *Raced) Validate() error {
	return errors.Join(
		question.Refuse(c.Component == "", "component is empty"),
		question.Refuse(len(c.Sides) < 1 || len(c.Sides) > 2, "sides has %d lists (want 1 or 2)", len(c.Sides)),
		question.Refuse(slices.ContainsFunc(c.Sides, func(s []string) bool { return len(s) == 0 || slices.Contains(s, "") }),
			"a side has no function, or an empty one, which any stack would have"))
}

// Eval searches each log for reports of the wanted race.
func (c *Raced) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted())
	if !ok {
		return q.Finding
	}
	if !slices.ContainsFunc(v.World().Arms, func(w bundle.ArmWorld) bool {
		return w.Arm == q.Arm && slices.Contains(w.Flags, "-race")
	}) {
		return q.Unknown(check.Doubt(check.NotRecorded, "it was not built with the race detector"))
	}
	left := logs.ComponentLog(q, c.Component)
	q.Evidence = left.Paths
	all, these, cut := 0, 0, false
	for _, l := range logs.GroupByFile(left.Records) {
		races, more := goroutine.Races(l.Lines)
		cut = cut || more
		for _, r := range races {
			if !question.Contains(q.Window, l.Times[r.First]) {
				continue
			}
			all++
			if !c.is(r) {
				q.Differs = append(
					q.Differs,
					fmt.Sprintf("%s: %s against %s", question.Clock(l.Times[r.First]),
						r.Sides[0].Frames[0].Func, r.Sides[1].Frames[0].Func),
				)
				continue
			}
			if these++; q.Detail == "" {
				q.Detail = r.Sides[0].String() + "\n\n" + r.Sides[1].String()
			}
		}
	}
	q.Differs = question.FirstAndLast(q.Differs)
	q.Say(
		"%d of %d races that it reported are this one",
		question.N("racesLikeIt", these),
		question.N("races", all),
	)
	if cut {
		left.Doubt = check.Doubt(check.Unreadable, "another report has not both stacks")
	}
	f := q.AnswerByCount(these, left.Doubt)
	if c.None && f.Met != check.Unknown {
		f.Met = check.Of(f.Met == check.False)
	}
	return f
}

func (c *Raced) wanted() string {
	out := "a race in " + c.Component
	if c.None {
		out = "no race in " + c.Component
	}
	if len(c.Sides) == 1 {
		return out + " with " + strings.Join(c.Sides[0], ", ") + " on one side"
	}
	sides := make([]string, len(c.Sides))
	for i, s := range c.Sides {
		sides[i] = strings.Join(s, ", ")
	}
	return out + " between " + strings.Join(sides, " and ")
}

// is reports whether a race's sides are the wanted ones, in either order.
func (c *Raced) is(r goroutine.Race) bool {
	has := func(side int, functions []string) bool {
		return !slices.ContainsFunc(
			functions,
			func(f string) bool { return !r.Sides[side].Has(f) },
		)
	}
	one := c.Sides[0]
	if len(c.Sides) == 1 {
		return has(0, one) || has(1, one)
	}
	return has(0, one) && has(1, c.Sides[1]) || has(0, c.Sides[1]) && has(1, one)
}

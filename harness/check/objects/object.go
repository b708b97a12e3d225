package objects

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/celobject"
)

func init() {
	check.Register(check.Kind{
		Name: "object",
		Doc: "An expression in CEL is true of objects: through the last stretch of the window, or of some versions in " +
			"it.\n\n" +
			"The expression has one version of an object as `object`, as the API server served it to a list or a watch: " +
			"`object.status.numberReady == 2`. A field that may be missing has to be asked for first, with has(): an " +
			"expression without a value makes the check unknown. The objects come from the arm's own record, or from " +
			"the record of the whole cluster.\n\n" +
			"With `hold`, the expression must be true of all selected objects, or of `atLeast` of them, through the " +
			"last stretch of the window. If nobody ever saw such an object, the answer is unknown. With `versions`, it " +
			"must be true of so many versions that a watch showed within the window, each counted once, whatever came " +
			"after them. Versions that were only listed don't count. Too few versions are not met, if the record has no " +
			"gap in the window.",
		Example: "name: served-without\nkind: object\nphase: fault\nspec:\n  resource: services\n  name: old\n" +
			"  expression: '!has(object.spec.ipFamilies)'\n  versions: 2\n",
		Meets:   `{"resource":"bundles.fleet.cattle.io","name":"a","namespace":"arm","expression":"object.status.n == 0","hold":"500ms"}`,
		Differs: `{"resource":"bundles.fleet.cattle.io","name":"a","expression":"object.status.n > 0","versions":1}`,
		New:     func() check.Check { return &Object{} },
	})
}

// Object checks an expression over objects.
type Object struct {
	Selected
	Expression string `json:"expression" jsonschema:"a CEL expression over object whose value is a bool"`
	Hold       string `json:"hold,omitempty" refers:"stretch" jsonschema:"how long the stretch before the end of the window is through which the expression is true: a duration with its unit. Either hold or versions"`
	AtLeast    int    `json:"atLeast,omitzero" jsonschema:"with hold: of how many objects it must be true, at least. Default: all objects"`
	Versions   int    `json:"versions,omitzero" jsonschema:"of how many versions that a watch showed in the window it must be true, at least. Either hold or versions"`
}

// Reads names recorded objects.
func (c *Object) Reads() []bundle.Kind { return []bundle.Kind{bundle.Objects} }

// Validate refuses an expression that doesn't compile, and a spec that doesn't say when it must be true.
func (c *Object) Validate() error {
	errs := []error{
		c.Selected.validate(),
		question.Refuse((c.Hold == "") == (c.Versions == 0), "hold is %q and versions is %d (want one of them)", c.Hold, c.Versions),
		question.Refuse(c.Versions < 0, "versions is %d (want at least 1)", c.Versions),
		question.Refuse(c.AtLeast < 0 || c.AtLeast > 0 && c.Hold == "", "atLeast is %d (want at least 1, with hold)", c.AtLeast),
	}
	if c.Hold != "" {
		errs = append(errs, question.Positive("hold", c.Hold))
	}
	_, err := celobject.Compile(c.Expression)
	return errors.Join(append(errs, err)...)
}

// Describe says in words what is asked.
func (c *Object) Describe() string { return c.wanted("") }

func (c *Object) wanted(arm string) string {
	what := c.Resource + " " + c.Name
	if arm != "" {
		what = c.Resource + " " + question.ExpandArm(c.Name, arm)
	}
	what = strings.TrimSpace(what)
	switch {
	case c.Versions > 0:
		return fmt.Sprintf("at least %d versions of %s with %s", c.Versions, what, c.Expression)
	case c.AtLeast > 0:
		what = fmt.Sprintf("at least %d of %s", c.AtLeast, what)
	}
	return fmt.Sprintf("%s with %s for the last %s", what, c.Expression, c.Hold)
}

// Eval asks the expression of the selected objects.
func (c *Object) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted(s.Arm))
	if !ok {
		return q.Finding
	}
	program, err := celobject.Compile(c.Expression)
	if err != nil {
		return q.Unknown(check.Doubt(check.BadCheck, "%w", err))
	}
	ask := asked{as: "expression " + c.Expression, atLeast: c.AtLeast, of: func(object []byte) (string, bool, error) {
		met, err := program.Holds(object)
		if err != nil {
			err = check.Doubt(check.BadCheck, "%w", err)
		}
		return fmt.Sprint(met), met, err
	}}
	if c.Versions > 0 {
		return c.versions(q, v, ask)
	}
	return c.throughout(q, v, c.Hold, ask)
}

// versions counts the versions in the window of which the expression is true.
func (c *Object) versions(q *question.Question, v bundle.View, ask asked) check.Finding {
	of, doubt := c.records(v, q.Arm)
	if len(of) == 0 {
		return q.Unknown(cmp.Or(doubt, nobodyFollowed(c.Resource, q.Arm)))
	}
	r := bestOf(of, q.Window, question.Slack(q.Window))
	q.Evidence = []string{r.Path}
	doubt = cmp.Or(doubt, WhyUncovered([]*Recorded{r}, q.Window, question.Slack(q.Window)))
	all, err := c.read(v, r, q.Arm, ask)
	if err != nil {
		return q.Unknown(err)
	}
	n, met, seen := 0, 0, map[string]bool{}
	for _, x := range all {
		// A watch that begins anew may show a write again.
		if !question.Contains(q.Window, x.at) || x.gone || x.write == "" || seen[x.object+" "+x.write] {
			continue
		}
		if x.doubt != nil {
			return q.Unknown(x.doubt)
		}
		n, seen[x.object+" "+x.write] = n+1, true
		if x.met {
			met++
		} else {
			q.Differs = append(q.Differs, question.Clock(x.at)+": "+x.object+": "+x.fields)
		}
	}
	q.Differs = question.FirstAndLast(q.Differs)
	q.Say("%d of %d versions", question.N("versionsLikeIt", met), question.N("versions", n))
	switch {
	case met >= c.Versions:
		q.Met, q.Differs = check.True, nil
	case doubt != nil:
		return q.UnknownAfter(doubt)
	default:
		q.Met = check.False
	}
	return q.Finding
}

// Package objects has the checks of what the API server served: objects, their changes, who wrote them, and nodes.
package objects

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/celobject"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

func init() {
	check.Register(check.Kind{
		Name: "object",
		Doc: "Objects are as wanted through the last stretch of the window, or some versions of them in it are; or they " +
			"are absent.\n\n" +
			"What is wanted is an expression in CEL or the values of fields. The expression has one version of an object " +
			"as `object`, as the API server served it to a list or a watch: `object.status.numberReady == 2`. A field " +
			"that may be missing has to be asked for first, with has(): an expression without a value makes the check " +
			"unknown. A key of `fields` is a path: status.numberReady; spec.containers[0].image, by an element's index, " +
			"from 0; status.conditions[type=Ready].status, by the value of one of the element's fields; " +
			"metadata.labels[\"app.k8s.io/name\"], in quotes if the key has dots, slashes or brackets. A field that " +
			"isn't there is empty; most objects leave out numbers that are 0. The objects come from the arm's own " +
			"record, or from the record of the whole cluster.\n\n" +
			"With `hold`, all selected objects, or `atLeast` of them, must be as wanted through the last stretch of the " +
			"window. If nobody ever saw such an object, the answer is unknown, even with `absent`. With `versions`, so " +
			"many versions that a watch showed within the window must be as wanted, each counted once, whatever came " +
			"after them. Versions that were only listed don't count. They may be of one object, unless `atLeast` says how " +
			"many objects have so many each. Too few versions are not met, if the record has no gap in the window.",
		Example: "name: daemonset-short\nkind: object\nphase: fault\nspec:\n  resource: daemonsets.apps\n  " +
			"name: node-agent\n  namespace: arm\n" +
			"  fields: {status.numberReady: \"1\", status.desiredNumberScheduled: \"2\"}\n  hold: 5s\n",
		Meets:   `{"resource":"bundles.fleet.cattle.io","name":"a","namespace":"arm","expression":"object.status.n == 0","hold":"500ms"}`,
		Differs: `{"resource":"bundles.fleet.cattle.io","name":"a","fields":{"status.n":"1"},"hold":"500ms"}`,
		New:     func() check.Check { return &Object{} },
	})
}

// Object checks what objects are like, or that they are absent.
type Object struct {
	Selected
	Expression string            `json:"expression,omitempty" jsonschema:"a CEL expression over object whose value is a bool. One of expression, fields and absent"`
	Fields     map[string]string `json:"fields,omitempty" jsonschema:"maps the path of each field, such as spec.list[0] or metadata.labels[\"a.b/c\"], to its value as text. An empty text stands for a field that isn't there"`
	Absent     bool              `json:"absent,omitempty" jsonschema:"with hold: the objects are gone, after they were seen"`
	Hold       string            `json:"hold,omitempty" refers:"stretch" jsonschema:"how long the stretch before the end of the window is through which the objects are as wanted: a duration with its unit. Either hold or versions"`
	AtLeast    int               `json:"atLeast,omitzero" jsonschema:"how many objects must be as wanted, at least. Default: with hold all objects; with versions these are counted whatever objects they are of"`
	Versions   int               `json:"versions,omitzero" jsonschema:"how many versions that a watch showed in the window must be as wanted, at least. Either hold or versions"`
}

// Reads names recorded objects.
func (c *Object) Reads() []bundle.Kind { return []bundle.Kind{bundle.Objects} }

// Vacuous reports whether an object without any field is as wanted. A path that is misspelt is no field.
func (c *Object) Vacuous() bool {
	if c.Absent {
		return false
	}
	met, err := c.ask()
	if err != nil {
		return false
	}
	_, bare, err := met([]byte(`{"metadata":{},"spec":{},"status":{}}`))
	return err == nil && bare
}

// Validate refuses an expression that doesn't compile, a bad path, and a spec that doesn't say what is wanted or when.
func (c *Object) Validate() error {
	ways := 0
	for _, given := range []bool{c.Expression != "", len(c.Fields) > 0, c.Absent} {
		if given {
			ways++
		}
	}
	errs := []error{
		c.Selected.validate(),
		question.Refuse(ways != 1, "there are %d of expression, fields and absent (want one of them)", ways),
		question.Refuse((c.Hold == "") == (c.Versions == 0), "hold is %q and versions is %d (want one of them)", c.Hold, c.Versions),
		question.Refuse(c.Versions < 0, "versions is %d (want at least 1)", c.Versions),
		question.Refuse(c.AtLeast < 0, "atLeast is %d (want at least 1)", c.AtLeast),
		question.Refuse(
			c.Absent && (c.AtLeast > 0 || c.Versions > 0),
			"absent is given with atLeast or versions (want it with hold alone)",
		),
	}
	if c.Hold != "" {
		errs = append(errs, question.Positive("hold", c.Hold))
	}
	for _, p := range slices.Sorted(maps.Keys(c.Fields)) {
		if _, err := churn.ParsePath(p); err != nil {
			errs = append(errs, fmt.Errorf("fields: %w", err))
		}
	}
	if c.Expression != "" {
		_, err := celobject.Compile(c.Expression)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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
	case c.Absent:
		return fmt.Sprintf("no %s for the last %s", what, c.Hold)
	case c.Versions > 0 && c.AtLeast > 0:
		return fmt.Sprintf(
			"at least %d versions of each of at least %d of %s with %s",
			c.Versions,
			c.AtLeast,
			what,
			c.like(),
		)
	case c.Versions > 0:
		return fmt.Sprintf("at least %d versions of %s with %s", c.Versions, what, c.like())
	case c.AtLeast > 0:
		what = fmt.Sprintf("at least %d of %s", c.AtLeast, what)
	}
	return fmt.Sprintf("%s with %s for the last %s", what, c.like(), c.Hold)
}

// like says in words what an object must be like.
func (c *Object) like() string {
	if c.Expression != "" {
		return c.Expression
	}
	return inWords(c.Fields)
}

// Eval asks of the selected objects what they are like.
func (c *Object) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted(s.Arm))
	if !ok {
		return q.Finding
	}
	of, err := c.ask()
	if err != nil {
		return q.Unknown(check.Doubt(check.BadCheck, "%w", err))
	}
	ask := asked{as: c.like(), of: of, atLeast: c.AtLeast, absent: c.Absent}
	if c.Versions > 0 {
		return c.versions(q, v, ask)
	}
	return c.throughout(q, v, c.Hold, ask)
}

// ask returns the function that says what an object is like, and whether it is as wanted.
func (c *Object) ask() (func(object []byte) (text string, met bool, err error), error) {
	if c.Expression == "" {
		return c.values, nil
	}
	program, err := celobject.Compile(c.Expression)
	if err != nil {
		return nil, err
	}
	return func(object []byte) (string, bool, error) {
		met, err := program.Holds(object)
		if err != nil {
			err = check.Doubt(check.BadCheck, "%w", err)
		}
		return fmt.Sprint(met), met, err
	}, nil
}

// values returns the fields of an object as text, and whether they have the wanted values.
func (c *Object) values(object []byte) (text string, met bool, err error) {
	met = true
	values := map[string]string{}
	for name, wanted := range c.Fields {
		path, err := churn.ParsePath(name)
		if err != nil {
			return "", false, err
		}
		if values[name], err = path.Of(object); err != nil {
			return "", false, err
		}
		met = met && values[name] == wanted
	}
	return inWords(values), met, nil
}

// inWords names fields and their values, in order of their paths.
func inWords(fields map[string]string) string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		out = append(out, fmt.Sprintf("%s %q", path, fields[path]))
	}
	return strings.Join(out, ", ")
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
	n, met, seen, each := 0, 0, map[string]bool{}, map[string]int{}
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
			each[x.object]++
		} else {
			q.Differs = append(q.Differs, question.Clock(x.at)+": "+x.object+": "+x.fields)
		}
	}
	q.Differs = question.FirstAndLast(q.Differs)
	q.Say("%d of %d versions", question.N("versionsLikeIt", met), question.N("versions", n))
	enough := met >= c.Versions
	if c.AtLeast > 0 {
		maps.DeleteFunc(each, func(_ string, versions int) bool { return versions < c.Versions })
		enough = len(each) >= c.AtLeast
		q.Add(", so many of each of %d objects", question.N("objectsLikeIt", len(each)))
	}
	switch {
	case enough:
		q.Met, q.Differs = check.True, nil
	case doubt != nil:
		return q.UnknownAfter(doubt)
	default:
		q.Met = check.False
	}
	return q.Finding
}

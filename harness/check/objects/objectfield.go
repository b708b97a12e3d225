// Package objects has the checks of what the API server served: objects, their changes, who wrote them, and nodes.
package objects

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

func init() {
	check.Register(check.Kind{
		Name: "objectField",
		Doc: "Through the last stretch of the window, fields of an object have given values, or the object is " +
			"absent.\n\n" +
			"A field is a path: status.numberReady; spec.containers[0].image, by an element's index, from 0; " +
			"status.conditions[type=Ready].status, by the value of one of the element's fields; " +
			"metadata.labels[\"app.k8s.io/name\"], in quotes if the key has dots, slashes or brackets. A field that " +
			"isn't there is empty; most objects leave out numbers that are 0. The objects come from the arm's own " +
			"record, or from the record of the whole cluster. If nobody ever saw such an object, the answer is " +
			"unknown, even with absent.",
		Example: "name: daemonset-short\nkind: objectField\nphase: fault\nspec:\n  resource: daemonsets.apps\n  " +
			"name: node-agent\n  namespace: arm\n" +
			"  fields: {status.numberReady: \"1\", status.desiredNumberScheduled: \"2\"}\n  hold: 5s\n",
		Meets: `{"resource":"bundles.fleet.cattle.io","name":"a","namespace":"arm",` +
			`"fields":{"status.n":"0"},"hold":"500ms"}`,
		Differs: `{"resource":"bundles.fleet.cattle.io","name":"a","fields":{"status.n":"1"},"hold":"500ms"}`,
		New:     func() check.Check { return &ObjectField{Hold: "5s"} },
	})
}

// ObjectField checks the values of an object's fields, or its absence.
type ObjectField struct {
	Selected
	Fields  map[string]string `json:"fields,omitempty" jsonschema:"maps the path of each field, such as spec.list[0] or metadata.labels[\"a.b/c\"], to its value as text. An empty text stands for a field that isn't there"`
	AtLeast int               `json:"atLeast,omitzero" jsonschema:"how many objects must have these values, at least. Default: all objects"`
	Hold    string            `json:"hold,omitempty" refers:"stretch" jsonschema:"how long the stretch before the end of the window is: a duration with its unit"`
	Absent  bool              `json:"absent,omitempty" jsonschema:"instead of fields and atLeast: asks that the objects are gone, after they were seen"`
}

// Reads names recorded objects.
func (c *ObjectField) Reads() []bundle.Kind { return []bundle.Kind{bundle.Objects} }

// Vacuous reports whether an object without any of the fields meets the check. A path that is misspelt is no field.
func (c *ObjectField) Vacuous() bool {
	return !c.Absent && !slices.ContainsFunc(slices.Collect(maps.Values(c.Fields)), func(v string) bool { return v != "" })
}

// Validate refuses a spec that any object would satisfy, and bad paths.
func (c *ObjectField) Validate() error {
	errs := []error{
		question.Positive("hold", c.Hold),
		c.Selected.validate(),
		question.Refuse(len(c.Fields) == 0 && !c.Absent, "fields is empty, which any object would have"),
		question.Refuse(c.Absent && (len(c.Fields) > 0 || c.AtLeast > 0),
			"absent is given with fields or atLeast (want it alone: what is gone has no fields)"),
	}
	for _, p := range slices.Sorted(maps.Keys(c.Fields)) {
		if _, err := churn.ParsePath(p); err != nil {
			errs = append(errs, fmt.Errorf("fields: %w", err))
		}
	}
	return errors.Join(append(errs, question.Refuse(c.AtLeast < 0, "atLeast is %d (want 0 or more)", c.AtLeast))...)
}

func (c *ObjectField) wanted(arm string) string {
	var fields []string
	for _, p := range slices.Sorted(maps.Keys(c.Fields)) {
		fields = append(fields, fmt.Sprintf("%s %q", p, c.Fields[p]))
	}
	what := strings.TrimSpace(c.Resource + " " + question.ExpandArm(c.Name, arm))
	if c.AtLeast > 0 {
		what = fmt.Sprintf("at least %d of %s", c.AtLeast, what)
	}
	if c.Absent {
		return fmt.Sprintf("no %s for the last %s", what, c.Hold)
	}
	return fmt.Sprintf("%s with %s for the last %s", what, strings.Join(fields, ", "), c.Hold)
}

// Eval checks the states of all objects that the spec selects, through the last stretch of the window.
func (c *ObjectField) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted(s.Arm))
	if !ok {
		return q.Finding
	}
	return c.throughout(q, v, c.Hold, asked{as: fmt.Sprintf("fields %q", c.Fields), of: c.values, atLeast: c.AtLeast, absent: c.Absent})
}

// values returns the fields of an object as text, and whether they have the wanted values.
func (c *ObjectField) values(object []byte) (text string, met bool, err error) {
	met = true
	var fields []string
	for _, n := range slices.Sorted(maps.Keys(c.Fields)) {
		path, err := churn.ParsePath(n)
		if err != nil {
			return "", false, err
		}
		text, err := path.Of(object)
		if err != nil {
			return "", false, err
		}
		met = met && text == c.Fields[n]
		fields = append(fields, fmt.Sprintf("%s %q", n, text))
	}
	return strings.Join(fields, ", "), met, nil
}

// Package objects has the checks of what the API server served: objects, their changes, who wrote them, and nodes.
package objects

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

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
			"A field is a path: status.numberReady, status.conditions[type=Ready].status. A field that isn't there " +
			"is empty; most objects leave out numbers that are 0. The objects come from the arm's own record, or " +
			"from the record of the whole cluster. If nobody ever saw such an object, the answer is unknown, even " +
			"with absent.",
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
	Resource  string            `json:"resource" jsonschema:"resource of the objects: plural name, with its API group unless that is the core group"`
	Name      string            `json:"name,omitempty" jsonschema:"name of the object; $(arm) stands for the arm's name. Default: all objects"`
	Namespace string            `json:"namespace,omitempty" jsonschema:"namespace of the objects, or arm for the arm's own record. Default: any namespace"`
	Fields    map[string]string `json:"fields,omitempty" jsonschema:"maps the path of each field to its value as text. An empty text stands for a field that isn't there"`
	AtLeast   int               `json:"atLeast,omitzero" jsonschema:"how many objects must have these values, at least. Default: all objects"`
	Hold      string            `json:"hold,omitempty" jsonschema:"how long the stretch before the end of the window is: a duration with its unit"`
	Absent    bool              `json:"absent,omitempty" jsonschema:"instead of fields and atLeast: asks that the objects are gone, after they were seen"`
}

// Reads names recorded objects.
func (c *ObjectField) Reads() []bundle.Kind { return []bundle.Kind{bundle.Objects} }

// Validate refuses a spec that any object would satisfy, and bad paths.
func (c *ObjectField) Validate() error {
	errs := []error{
		question.Positive("hold", c.Hold),
		question.Refuse(c.Resource == "", "resource is empty"),
		question.OnlyArm("name", c.Name),
		question.OnlyArm("namespace", c.Namespace),
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

// values are the fields of an object at a time, and until its next change.
type values struct {
	at     time.Time
	object string
	gone   bool
	fields string // the fields asked for and their values, in order of their paths; "" with absent
	met    bool
}

// Eval checks the states of all objects that the spec selects, through the last stretch of the window.
func (c *ObjectField) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted(s.Arm))
	if !ok {
		return q.Finding
	}
	of, doubt := c.records(v, q.Arm)
	if len(of) == 0 {
		return q.Unknown(cmp.Or(doubt, nobodyFollowed(c.Resource, q.Arm)))
	}
	hold := question.Duration(c.Hold)
	stretch := question.LastOf(q.Window, hold)
	r := bestOf(of, stretch, question.Slack(stretch))
	q.Evidence = []string{r.Path}
	doubt = cmp.Or(doubt, WhyUncovered([]*Recorded{r}, stretch, question.Slack(stretch)))
	if r.Coverage != nil && r.Coverage.Last.Before(stretch.End) && r.Coverage.Last.After(q.Window.Start) {
		stretch = question.LastOf(bundle.Window{Start: q.Window.Start, End: r.Coverage.Last}, hold)
	}
	all, err := c.read(v, r, q.Arm)
	if err != nil {
		return q.Unknown(err)
	}
	c.judge(q, all, stretch)
	switch {
	case q.Met == check.True && doubt != nil:
		return q.UnknownAfter(doubt)
	case q.Met == check.Unknown && doubt != nil:
		q.Code, q.Seen = check.CodeOf(doubt), doubt.Error()
	}
	return q.Throughout(stretch, hold)
}

// records returns the records in which the resource was followed: the arm's own if there are any, else the shared ones.
// If the spec gives the namespace by its name, the shared ones come first.
func (c *ObjectField) records(v bundle.View, arm string) (of []*Recorded, doubt error) {
	arms := []string{arm, bundle.Shared}
	switch c.Namespace {
	case "":
	case "arm":
		arms = arms[:1]
	default:
		slices.Reverse(arms)
	}
	for _, one := range arms {
		all, bad := recordsOf(v, one)
		doubt = cmp.Or(doubt, bad)
		if of = following(all, c.Resource); len(of) > 0 {
			break
		}
	}
	return of, doubt
}

// read returns the fields of every version of the objects that the spec selects.
func (c *ObjectField) read(v bundle.View, r *Recorded, arm string) ([]values, error) {
	names := slices.Sorted(maps.Keys(c.Fields))
	paths := map[string]churn.Path{}
	for _, n := range names {
		paths[n], _ = churn.ParsePath(n) // Validate has read it
	}
	name, namespace := question.ExpandArm(c.Name, arm), question.ExpandArm(c.Namespace, arm)
	as := fmt.Sprintf("fields %q of %s %s/%s", c.Fields, c.Resource, namespace, name)
	return question.Remember(v, r.Artifact, as, func([]values, io.Reader) (out []values, err error) {
		in, err := v.Open(r.Artifact)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		for x, err := range churn.Read(in) {
			if err != nil {
				return nil, err
			}
			if x.Object == nil || x.Resource != c.Resource || name != "" && x.Name != name || namespace != "" &&
				namespace != "arm" && x.Namespace != namespace {
				continue
			}
			one := values{at: x.Time, object: strings.TrimPrefix(x.Namespace+"/"+x.Name, "/"),
				gone: x.Type == churn.Deleted, met: x.Type != churn.Deleted}
			var fields []string
			for _, n := range names {
				text, err := paths[n].Of(x.Object)
				if err != nil {
					return nil, err
				}
				one.met = one.met && text == c.Fields[n]
				fields = append(fields, fmt.Sprintf("%s %q", n, text))
			}
			one.fields = strings.Join(fields, ", ")
			out = append(out, one)
		}
		return out, nil
	})
}

// judge checks the objects at the beginning of a stretch and at each change of an object in it, and sets the answer.
func (c *ObjectField) judge(q *question.Question, all []values, w bundle.Window) {
	now := map[string]values{}
	looked, unseen := false, false
	look := func(at string) {
		n, there := 0, 0
		for _, x := range now {
			if x.met {
				n++
			}
			if !x.gone {
				there++
			}
		}
		met := there > 0 && n >= max(1, c.AtLeast) && (c.AtLeast > 0 || n == there)
		if c.Absent {
			met = there == 0
		}
		switch {
		case len(now) == 0:
			unseen = true
			return
		case !looked || !met: // a single False decides
			q.Met = check.Of(met)
		}
		looked = true
		if !met {
			q.Differs = append(q.Differs, at+": "+states(now))
		}
	}
	start := slices.IndexFunc(all, func(x values) bool { return x.at.After(w.Start) })
	if start < 0 {
		start = len(all)
	}
	for _, x := range all[:start] {
		now[x.object] = x
	}
	look(question.Clock(w.Start))
	for _, x := range all[start:] {
		if x.at.After(w.End) {
			break
		}
		if before, ok := now[x.object]; !ok || before.fields != x.fields || before.gone != x.gone {
			now[x.object] = x
			look(question.Clock(x.at))
		}
	}
	q.Seen = states(now)
	if !looked {
		q.Code = check.NotRecorded
		q.Say("no such %s was ever seen by %s", c.Resource, question.Clock(w.End))
	}
	if q.Met == check.True && unseen {
		q.Met, q.Differs = check.False, append(q.Differs, question.Clock(w.Start)+": it was not there")
	}
	q.Differs = question.FirstAndLast(q.Differs)
}

// states describes the objects as they are: all of them, or the first and the last of many.
func states(now map[string]values) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		x := now[name]
		said := cmp.Or(x.fields, "there")
		if x.gone {
			said = "gone"
		}
		out = append(out, name+": "+said)
	}
	return strings.Join(question.FirstAndLast(out), "; ")
}

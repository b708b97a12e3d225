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

// Selected are the objects that a check is about.
type Selected struct {
	Resource  string `json:"resource" refers:"objects" jsonschema:"resource of the objects: plural name, with its API group unless that is the core group"`
	Name      string `json:"name,omitempty" jsonschema:"name of the object; $(arm) stands for the arm's name. Default: all objects"`
	Namespace string `json:"namespace,omitempty" jsonschema:"namespace of the objects, or arm for the arm's own record. Default: any namespace"`
}

func (c Selected) validate() error {
	return errors.Join(
		question.Refuse(c.Resource == "", "resource is empty"),
		question.OnlyArm("name", c.Name),
		question.OnlyArm("namespace", c.Namespace),
	)
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

// asked is what a check asks of each version of an object.
type asked struct {
	as      string // in words: two checks that ask the same share the work
	of      func(object []byte) (text string, met bool, err error)
	atLeast int  // how many objects it must be true of; 0 means all
	absent  bool // the objects must be gone instead
}

// values are the fields of an object at a time, and until its next change.
type values struct {
	at     time.Time
	object string
	write  string // the resourceVersion of a write that the watch showed; "" for a version that was only listed
	gone   bool
	doubt  error  // why the version has no value
	fields string // the fields asked for and their values, in order of their paths; "" with absent
	met    bool
}

// Eval checks the states of all objects that the spec selects, through the last stretch of the window.
func (c *ObjectField) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted(s.Arm))
	if !ok {
		return q.Finding
	}
	return c.throughout(q, v, c.Hold, asked{as: fmt.Sprintf("fields %q", c.Fields), of: c.values, atLeast: c.AtLeast, absent: c.Absent})
}

// throughout answers whether what is asked of the objects holds through the last stretch of the window.
func (c Selected) throughout(q *question.Question, v bundle.View, last string, ask asked) check.Finding {
	of, doubt := c.records(v, q.Arm)
	if len(of) == 0 {
		return q.Unknown(cmp.Or(doubt, nobodyFollowed(c.Resource, q.Arm)))
	}
	hold := question.Duration(last)
	stretch := question.LastOf(q.Window, hold)
	r := bestOf(of, stretch, question.Slack(stretch))
	q.Evidence = []string{r.Path}
	doubt = cmp.Or(doubt, WhyUncovered([]*Recorded{r}, stretch, question.Slack(stretch)))
	if r.Coverage != nil && r.Coverage.Last.Before(stretch.End) && r.Coverage.Last.After(q.Window.Start) {
		stretch = question.LastOf(bundle.Window{Start: q.Window.Start, End: r.Coverage.Last}, hold)
	}
	all, err := c.read(v, r, q.Arm, ask)
	if err != nil {
		return q.Unknown(err)
	}
	if err := c.judge(q, all, stretch, ask); err != nil {
		return q.Unknown(err)
	}
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
func (c Selected) records(v bundle.View, arm string) (of []*Recorded, doubt error) {
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

// read returns what is asked of every version of the selected objects.
func (c Selected) read(v bundle.View, r *Recorded, arm string, ask asked) ([]values, error) {
	name, namespace := question.ExpandArm(c.Name, arm), question.ExpandArm(c.Namespace, arm)
	as := fmt.Sprintf("%s of %s %s/%s", ask.as, c.Resource, namespace, name)
	return question.Remember(v, r.Artifact, as, func([]values, io.Reader) (out []values, err error) {
		in, err := v.Open(r.Artifact)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		there, listed := map[string]string{}, map[string]bool{} // object -> namespace; the objects of the list that is being read
		for x, err := range churn.Read(in) {
			if err != nil {
				return nil, err
			}
			if x.Type == churn.Synced && x.Resource == c.Resource {
				for _, gone := range slices.Sorted(maps.Keys(there)) {
					if !listed[gone] && (x.Namespace == "" || x.Namespace == there[gone]) {
						out = append(out, values{at: x.Time, object: gone, gone: true})
						delete(there, gone)
					}
				}
			}
			if (x.Type == churn.Synced || x.Type == churn.Lost) && x.Resource == c.Resource {
				listed = map[string]bool{}
			}
			if x.Object == nil || x.Resource != c.Resource || name != "" && x.Name != name || namespace != "" &&
				namespace != "arm" && x.Namespace != namespace {
				continue
			}
			one := values{at: x.Time, object: strings.TrimPrefix(x.Namespace+"/"+x.Name, "/"), gone: x.Type == churn.Deleted}
			if one.fields, one.met, err = ask.of(x.Object); err != nil && !one.gone {
				one.doubt = fmt.Errorf("%s at %s: %w", one.object, question.Clock(x.Time), err)
			}
			one.met = one.met && !one.gone
			if x.Type == churn.Added || x.Type == churn.Modified {
				one.write = x.ResourceVersion
			}
			switch x.Type {
			case churn.Deleted:
				delete(there, one.object)
			case churn.Listed:
				listed[one.object] = true
				fallthrough
			default:
				there[one.object] = x.Namespace
			}
			out = append(out, one)
		}
		return out, nil
	})
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

// judge checks the objects at the beginning of a stretch and at each change of an object in it, and sets the answer.
func (c Selected) judge(q *question.Question, all []values, w bundle.Window, ask asked) (doubt error) {
	now := map[string]values{}
	looked, unseen := false, false
	look := func(at string) {
		n, there := 0, 0
		for _, x := range now {
			doubt = cmp.Or(doubt, x.doubt)
			if x.met {
				n++
			}
			if !x.gone {
				there++
			}
		}
		met := there > 0 && n >= max(1, ask.atLeast) && (ask.atLeast > 0 || n == there)
		if ask.absent {
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
	return doubt
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

package loads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/celobject"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/inject/manifest"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Load, kinds.Kind[load.Load]{
		Name: "probe",
		Doc: "Work that a component must do about objects: it shows that the component works, where health endpoints only " +
			"show that it runs.\n\n" +
			"The steps follow each other. A step sends requests (`verb`, `manifests`), or waits until an object is as " +
			"wanted (`object`, with `expression` or `gone`). With `manifests` and an `expression` or `gone` it does both, " +
			"and waits for each of them. The probe is done once every step was seen. If a wait is over and the object is " +
			"not as wanted, the component didn't do its work. If the API server refuses a " +
			"request, or can't be asked, the record says nothing about the component.\n\n" +
			"$(arm) in a manifest stands for the arm's name. An object without a namespace that needs one is in " +
			"relapse-<name>-<arm>, which the load makes. What no step deletes stays, so that evidence can show what " +
			"becomes of it.",
		Example: "name: endpoints\nkind: probe\nphase: recovery\ntarget: {mode: all, selector: {component: " +
			"kube-controller-manager}}\nspec:\n  work: the Endpoints of a Service come\n  steps:\n" +
			"    - name: Service made\n      manifests:\n        - {apiVersion: v1, kind: Service, metadata: {name: new}, spec: {clusterIP: None, selector: {app: new}}}\n" +
			"    - name: Endpoints there\n      object: {apiVersion: v1, kind: Endpoints, metadata: {name: new}}\n" +
			"      expression: object.metadata.name == 'new'\n      within: 30s\n",
		Tested: `{"work":"a pod is bound and goes","steps":[` +
			`{"name":"bound","manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}],"expression":"has(object.spec.nodeName)","within":"1s"},` +
			`{"name":"still bound","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}},"expression":"has(object.spec.nodeName)","within":"1s"},` +
			`{"name":"deleted","verb":"delete","manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}]},` +
			`{"name":"gone","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}},"gone":true,"within":"5s"}]}`,
		New: func() load.Load { return &ObjectProbe{} },
	})
}

// ObjectProbe asks a component for work, step by step.
type ObjectProbe struct {
	Work  string `json:"work" jsonschema:"in words, what the component must do"`
	Steps []Step `json:"steps" jsonschema:"what is done and waited for, in order; at least one step waits"`
}

// Step is one step of a probe. It sends requests, waits for an object, or sends requests and waits for their objects.
type Step struct {
	manifest.Ask
	Name       string            `json:"name" jsonschema:"what is seen once the step is over, in words"`
	Object     manifest.Template `json:"object,omitempty" placeholders:"arm" jsonschema:"the object that is waited for: apiVersion, kind and metadata; default: each of the manifests"`
	Expression string            `json:"expression,omitempty" jsonschema:"a CEL expression over object that must become true of it"`
	Gone       bool              `json:"gone,omitempty" jsonschema:"instead of an expression: the object must go"`
	Within     metav1.Duration   `json:"within,omitzero" refers:"stretch" jsonschema:"how long each request may take, and how long the objects may take to be as wanted, once the requests are through; default: 30s"`
}

// defaultWithin is how long a step may take that doesn't say so.
const defaultWithin = 30 * time.Second

func (s Step) within() time.Duration {
	if s.Within.Duration == 0 {
		return defaultWithin
	}
	return s.Within.Duration
}

// trueOf reports whether the step's expression is true of an object as a step sends it: then it is met by the API server,
// which keeps what it was sent.
func (s Step) trueOf(sent manifest.Template) bool {
	if sent == nil || s.Expression == "" {
		return false
	}
	program, err := celobject.Compile(s.Expression)
	text, bad := json.Marshal(sent)
	if err != nil || bad != nil {
		return false
	}
	met, err := program.Holds(text)
	return err == nil && met
}

// awaited returns the objects that the step waits for.
func (s Step) awaited() manifest.Templates {
	switch {
	case len(s.Object) > 0:
		return manifest.Templates{s.Object}
	case s.Expression != "" || s.Gone:
		return s.Manifests
	}
	return nil
}

// Makes returns the kind of artifact that the load records: the probe's record.
func (*ObjectProbe) Makes() []bundle.Kind { return []bundle.Kind{bundle.WorkProbe} }

// Probe returns true: nothing can come after what only shows that a component works.
func (*ObjectProbe) Probe() bool { return true }

// Apart reports whether all objects that the probe makes or waits for are the arm's own.
func (l *ObjectProbe) Apart() bool {
	return !slices.ContainsFunc(l.Steps, func(s Step) bool { return !s.Manifests.Apart() || !s.awaited().Apart() })
}

// Validate refuses a probe that nothing could pass, or that anything would pass.
func (l *ObjectProbe) Validate() error {
	if l.Work == "" {
		return errors.New("work is empty (want what the component must do, in words)")
	}
	waits, there, sent := false, map[string]bool{}, map[string]manifest.Template{}
	for i, s := range l.Steps {
		if err := s.validate(); err != nil {
			return fmt.Errorf("steps[%d]: %w", i, err)
		}
		for _, m := range s.Manifests {
			sent[m.Key()] = m
		}
		for _, o := range s.awaited() {
			waits = true
			if s.trueOf(sent[o.Key()]) {
				return fmt.Errorf("steps[%d]: expression is true of %s as it is sent: no component has to do anything (want what only the "+
					"component does)", i, o.Key())
			}
			if s.Gone && !there[o.Key()] {
				return fmt.Errorf("steps[%d]: no step before it makes %s or waits for it (want one: what never was there is gone, too)", i, o.Key())
			}
		}
		for _, o := range slices.Concat(s.Manifests, s.awaited()) {
			there[o.Key()] = true
		}
	}
	if !waits {
		return errors.New("no step waits for an object: the probe would be done whatever the component does")
	}
	return nil
}

func (s Step) validate() error {
	switch {
	case s.Name == "":
		return errors.New("name is empty")
	case s.Within.Duration < 0:
		return fmt.Errorf("within is %s (want above 0)", s.Within.Duration)
	case (len(s.Object) > 0) == (len(s.Manifests) > 0):
		return errors.New("want manifests to be sent, or an object to be waited for")
	case s.Expression != "" && s.Gone, len(s.Object) > 0 && s.Expression == "" && !s.Gone:
		return errors.New("want an expression that becomes true of the object, or gone")
	case len(s.Manifests) > 0 && s.Gone && s.Verb != manifest.Delete:
		return fmt.Errorf("gone is given with manifests and the verb %q (want delete)", s.Verb)
	case len(s.Manifests) > 0 && s.Expression != "" && s.Verb == manifest.Delete:
		return errors.New("expression is given with the verb delete (want gone: an object that is on its way is still there)")
	case len(s.Object) > 0 && s.Verb != "":
		return fmt.Errorf("verb is %q with an object that is waited for (want it with manifests)", s.Verb)
	}
	if len(s.Manifests) > 0 {
		if err := s.Ask.Validate(manifest.Arm); err != nil || len(s.awaited()) == 0 {
			return err
		}
	}
	if err := s.awaited().Validate(manifest.Named, manifest.Arm); err != nil {
		return fmt.Errorf("what is waited for: %w", err)
	}
	if s.Gone {
		return nil
	}
	_, err := celobject.Compile(s.Expression)
	return err
}

// Describe returns in words what the load asks for.
func (l *ObjectProbe) Describe() string { return l.Work }

// Prepare makes the namespace of objects that name none.
func (l *ObjectProbe) Prepare(ctx context.Context, t load.Target) error {
	return (&Objects{Ask: manifest.Ask{Manifests: l.objects()}}).Prepare(ctx, t)
}

// objects returns all objects of the steps.
func (l *ObjectProbe) objects() (out manifest.Templates) {
	for _, s := range l.Steps {
		out = append(out, s.Manifests...)
		if len(s.Object) > 0 {
			out = append(out, s.Object)
		}
	}
	return out
}

// Run takes the steps, and ends with the first that isn't seen.
func (l *ObjectProbe) Run(ctx context.Context, t load.Target, w *bundle.Writer) error {
	c, err := manifest.NewClient(t.Cluster, t.Run, t.Name, t.Arm)
	if err != nil {
		return err
	}
	out := newProbe(t, l.Work)
	for _, s := range l.Steps {
		err = out.step(1, s.Name, func() (string, error) {
			return s.take(ctx, c, t.Arm)
		})
		if err != nil {
			break
		}
	}
	return out.record(ctx, w, err)
}

// take sends the step's requests, and waits for its objects. It returns what was seen of them.
func (s Step) take(ctx context.Context, c *manifest.Client, arm string) (string, error) {
	if err := s.send(ctx, c, arm); err != nil {
		return "", err
	}
	until := time.Now().Add(s.within()) // for all objects; what sending took is not the component's
	var program *celobject.Program
	if s.Expression != "" {
		var err error
		if program, err = celobject.Compile(s.Expression); err != nil {
			return "", err
		}
	}
	var all []string
	for _, o := range s.awaited() {
		what, err := s.wait(ctx, c, o, program, arm, until)
		all = append(all, what)
		if err != nil {
			return strings.Join(all, "; "), err
		}
	}
	return strings.Join(all, "; "), nil
}

// send sends the step's requests, and insists on each until its time is up. An object that was made, or is gone, is what
// a request of this step asked for only if the answer to an earlier one got lost.
func (s Step) send(ctx context.Context, c *manifest.Client, arm string) error {
	for _, m := range s.Manifests {
		lost := false
		err := insist(ctx, s.within(), func(ctx context.Context) error {
			r, err := c.Request(ctx, s.Ask, m, manifest.Words{manifest.Arm: arm})
			if err != nil {
				return err
			}
			a, err := c.Do(ctx, r)
			done := r.Verb == "CREATE" && apierrors.IsAlreadyExists(err) || r.Verb == "DELETE" && apierrors.IsNotFound(err)
			switch {
			case err == nil, done && lost:
				return nil
			case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsAlreadyExists(err):
				return fmt.Errorf("%w: %w", errUnfit, err)
			}
			lost = lost || a.Code == 0
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wait looks at an object again and again until it is as wanted. errIdle says that the last look, after the time was up,
// found it not as wanted.
func (s Step) wait(ctx context.Context, c *manifest.Client, one manifest.Template, program *celobject.Program, arm string,
	until time.Time) (string, error) {
	for {
		late := time.Now().After(until)
		limited, cancel := context.WithTimeout(ctx, lastLook)
		what, is, novalue, err := s.see(limited, c, one, program, arm)
		cancel()
		switch {
		case err == nil && is:
			return what, nil
		case ctx.Err() != nil:
			return what, context.Cause(ctx)
		case late && novalue != nil: // the scenario is at fault, not the component
			return what, fmt.Errorf("at the end: %w", novalue)
		case late && err == nil:
			return what, fmt.Errorf("%w within %s: %s", errIdle, s.within(), what)
		case late:
			return what, fmt.Errorf("looking at the end: %w", err)
		}
		_ = wait(ctx, look) // the end of ctx is seen next
	}
}

// see looks at the object once. What was seen is said in words. novalue says why the expression has no value.
func (s Step) see(ctx context.Context, c *manifest.Client, one manifest.Template, program *celobject.Program, arm string) (what string, is bool, novalue, err error) {
	o, _, err := c.Object(ctx, one, manifest.Words{manifest.Arm: arm})
	if err != nil {
		return "", false, nil, err
	}
	have, err := c.Get(ctx, o)
	name := o.GetKind() + " " + o.GetName()
	switch {
	case err != nil:
		return "", false, nil, err
	case have == nil:
		return "there is no " + name, s.Gone, nil, nil
	case s.Gone:
		return name + " is there", false, nil, nil
	}
	text, err := have.MarshalJSON()
	if err != nil {
		return "", false, nil, err
	}
	is, novalue = program.Holds(text)
	if novalue != nil {
		return fmt.Sprintf("%s: %s", name, novalue), false, fmt.Errorf("%s: %w", name, novalue), nil
	}
	return fmt.Sprintf("%s of %s: %t", s.Expression, name, is), is, nil, nil
}

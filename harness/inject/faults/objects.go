package faults

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/manifest"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "objects",
		Doc: "Objects that should not be as they are: created, applied, patched or deleted, until the fault is lifted.\n\n" +
			"The fault reads each object first and keeps a copy in a ConfigMap of the namespace relapse-<name>, which " +
			"any process can read. To lift the fault is to bring each object back to its copy: an object that was " +
			"deleted is created again, unless there is one by then; one that wasn't there is deleted; one that was " +
			"changed gets its old contents. With `undo: false` the objects stay as the fault left them. The fault has no " +
			"time limit: nothing in the cluster would know that it has to end.\n\n" +
			"In a manifest, $(arm) stands for the arm's name, and $(node) for the name of a Node object of the target: " +
			"then there is one object for each of them. An object without a namespace that needs one is in " +
			"relapse-<name>-<arm>, which the fault makes.\n\n" +
			"With `stored`, the object is written into etcd past the API server, as it may stand there since an " +
			"earlier version: as JSON, without defaults, and without any check. It gets a UID and a time of creation " +
			"if it has none.",
		Example: "name: no-csinode\nkind: objects\ntarget: {mode: all, selector: {component: kube-scheduler}}\nspec:\n" +
			"  verb: delete\n  manifests: [{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: $(node)}}]\n",
		Tested: `{"verb":"delete","manifests":[{"apiVersion":"storage.k8s.io/v1","kind":"CSINode","metadata":{"name":"$(node)"}}]}`,
		New:    func() fault.Fault { return &Objects{Undo: true} },
	})
}

// Objects changes objects.
type Objects struct {
	manifest.Ask
	Undo bool `json:"undo" jsonschema:"whether the fault's end brings the objects back as they were; default: true"`
}

// objectSeen is how long a change of an object may take to be observed.
const objectSeen = 30 * time.Second

// Needs returns Node objects, if the objects are named by them.
func (f *Objects) Needs() fault.Needs { return fault.Needs{Nodes: f.Manifests.PerNode()} }

// Validate refuses what can't be asked for or undone.
func (f *Objects) Validate() error {
	if verbs := []string{manifest.DeleteCollection, manifest.Evict}; f.Undo && slices.Contains(verbs, f.Verb) {
		return fmt.Errorf("verb is %s, which can't be undone (want create, apply, patch or delete, or undo: false)", f.Verb)
	}
	if f.Undo && !slices.Contains([]string{"", "status"}, f.Subresource) {
		return fmt.Errorf(
			"subresource is %s, which can't be undone (want status, or undo: false)",
			f.Subresource,
		)
	}
	for _, m := range f.Manifests {
		if kind, _ := m["kind"].(string); f.Undo && f.Verb == manifest.Delete && slices.Contains([]string{"Namespace", "CustomResourceDefinition"}, kind) {
			return fmt.Errorf("a %s takes all that is in it along, which can't be undone (want undo: false)", kind)
		}
	}
	if err := f.Ask.Validate(manifest.Arm, manifest.Node); err != nil {
		return err
	}
	if f.Verb == manifest.DeleteCollection {
		return nil
	}
	return f.Manifests.Validate(manifest.Named, manifest.Arm, manifest.Node)
}

// ForAll reports whether some object isn't the arm's own by its name.
func (f *Objects) ForAll() bool {
	return !f.Manifests.All(func(m manifest.Template) bool { return m.RefersTo(manifest.Arm) || m.RefersTo(manifest.Node) })
}

// Redefines reports whether a CustomResourceDefinition is among the objects.
func (f *Objects) Redefines(definition string) bool {
	return slices.ContainsFunc(f.Manifests, func(m manifest.Template) bool {
		o := unstructured.Unstructured{Object: m}
		return o.GetKind() == "CustomResourceDefinition" && o.GetName() == definition
	})
}

// Describe says in words what is done.
func (f *Objects) Describe() string { return f.Ask.Describe() }

// Inject keeps a copy of each object, changes it, and returns when the change was observed.
func (f *Objects) Inject(ctx context.Context, t fault.Target) error {
	return f.each(ctx, t, func(ctx context.Context, o affected) error {
		if err := o.resolve(ctx); err != nil {
			return err
		}
		if o.request.Object.GetNamespace() == o.client.Namespace {
			if err := o.namespace(ctx, o.client.Namespace); err != nil {
				return err
			}
		}
		was, err := o.now(ctx)
		again := false
		if err == nil && f.Undo {
			was, again, err = o.keep(ctx, was)
		}
		if err != nil {
			return err
		}
		if f.Verb == manifest.Delete && was == nil {
			return errors.New("it isn't there, so that it can't be deleted")
		}
		// What is as the fault leaves it was changed by this fault, whose run goes on.
		if a, err := o.client.Do(ctx, o.request); err != nil &&
			!(again && (a.Reason == metav1.StatusReasonAlreadyExists || a.Reason == metav1.StatusReasonNotFound)) {
			return err
		}
		if err := f.observe(ctx, o, was); err != nil {
			return err
		}
		Emit(t, event.FaultSeen, o.node, "%s: %s", o.request.Verb, o.name)
		return nil
	})
}

// observe waits until the object is changed from what it was, for the API server, too, if it was stored past that. Of an
// eviction and of a deleted collection the answer says all that there is to see.
func (f *Objects) observe(ctx context.Context, o affected, was object) error {
	switch f.Verb {
	case manifest.Evict, manifest.DeleteCollection:
		return nil
	case manifest.Delete:
		return o.await(ctx, func(now object) bool { return now == nil })
	}
	if err := o.await(ctx, func(now object) bool { return now != nil && !bytes.Equal(now, was) }); err != nil || !f.Stored {
		return err
	}
	_, err := ProbeUntil(
		ctx,
		objectSeen,
		func(ctx context.Context) (bool, error) { return true, o.client.Served(ctx, o.request) },
		func(bool) bool { return true },
	)
	return err
}

// Recover brings each object back to its copy, and returns when it was seen.
func (f *Objects) Recover(ctx context.Context, t fault.Target) error {
	return f.each(ctx, t, func(ctx context.Context, o affected) error {
		if !f.Undo {
			Emit(t, event.FaultGone, o.node, "%s stays as it is", o.name)
			return nil
		}
		is, err := insist(
			ctx,
			func(ctx context.Context) (string, error) { return o.bringBack(ctx, f.Verb == manifest.Delete) },
		)
		if err != nil {
			return err
		}
		Emit(t, event.FaultGone, o.node, "%s %s", o.name, is)
		return nil
	})
}

// insist undoes a change again and again until that succeeds, or is refused. An API server that doesn't answer may come
// back, and what is written at the same time by somebody else is read again.
func insist[T any](ctx context.Context, undo func(context.Context) (T, error)) (T, error) {
	var refused error
	is, err := ProbeUntil(ctx, objectSeen, func(ctx context.Context) (is T, err error) {
		is, err = undo(ctx)
		var answered apierrors.APIStatus
		if errors.As(err, &answered) && !apierrors.IsConflict(err) {
			refused, err = err, nil
		}
		return is, err
	}, func(T) bool { return true })
	return is, cmp.Or(refused, err)
}

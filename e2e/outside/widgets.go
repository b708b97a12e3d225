// Package widgets is an operator as anybody has one: a controller of controller-runtime that gives each widget the size
// that its spec asks for. On request it has one of two defects that no test of what it does would find.
package widgets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Resource is the plural name of widgets with their API group.
const Resource = "widgets.example.org"

var kind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}

// The defects.
const (
	Leak  = "leak"  // each reconciliation leaves a goroutine behind that nobody listens to
	Churn = "churn" // the status has the time, so that it is written for ever
)

// Reconciler gives widgets their size.
type Reconciler struct {
	client.Client
	Defect string
	done   chan ctrl.Request
}

// Reconcile copies a widget's size from its spec to its status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := widget(req.Namespace, req.Name)
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	size, _, _ := unstructured.NestedInt64(w.Object, "spec", "size")
	had, sized, _ := unstructured.NestedInt64(w.Object, "status", "size")
	status := map[string]any{"size": size}
	switch r.Defect {
	case Leak:
		go func() { r.done <- req }()
	case Churn:
		status["seen"] = time.Now().UTC().Format(time.RFC3339Nano)
	}
	if sized && had == size && r.Defect != Churn {
		return ctrl.Result{}, nil
	}
	w.Object["status"] = status
	if err := r.Status().Update(ctx, w); err != nil {
		return ctrl.Result{}, err
	}
	if r.Defect == Churn {
		return ctrl.Result{RequeueAfter: 200 * time.Millisecond}, nil
	}
	return ctrl.Result{}, nil
}

// Run runs the controller for the widgets of a namespace until ctx ends. It serves profiles and metrics at the
// addresses; "0" serves none.
func Run(
	ctx context.Context,
	cfg *rest.Config,
	namespace, defect, profiles, metrics string,
) error {
	ctrl.SetLogger(logr.Discard())
	m, err := ctrl.NewManager(
		cfg,
		ctrl.Options{PprofBindAddress: profiles, Metrics: server.Options{BindAddress: metrics},
			Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}},
	)
	if err != nil {
		return err
	}
	r := &Reconciler{Client: m.GetClient(), Defect: defect, done: make(chan ctrl.Request)}
	if err := ctrl.NewControllerManagedBy(m).Named("widgets").For(widget("", "")).Complete(r); err != nil {
		return err
	}
	return m.Start(ctx)
}

// Make makes a widget and returns once it has its size.
func Make(ctx context.Context, cfg *rest.Config, namespace, name string) error {
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return err
	}
	w := widget(namespace, name)
	w.Object["spec"] = map[string]any{"size": int64(3)}
	if err := c.Create(ctx, w); err != nil {
		return err
	}
	for { // until ctx ends
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		if size, _, _ := unstructured.NestedInt64(w.Object, "status", "size"); size == 3 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("widget %s has no size: %w", name, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Install adds widgets to the API, and namespaces, and returns once widgets are served.
func Install(ctx context.Context, cfg *rest.Config, namespaces ...string) error {
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return err
	}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": Resource},
		"spec": map[string]any{
			"group": kind.Group,
			"scope": "Namespaced",
			"names": map[string]any{"kind": kind.Kind, "plural": "widgets", "singular": "widget"},
			"versions": []any{
				map[string]any{"name": kind.Version, "served": true, "storage": true,
					"subresources": map[string]any{"status": map[string]any{}},
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
						"x-kubernetes-preserve-unknown-fields": true}}},
			},
		},
	}}
	errs := []error{c.Create(ctx, crd)}
	for _, name := range namespaces {
		errs = append(errs, c.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		c, err := client.New(cfg, client.Options{}) // a mapper keeps what it didn't find
		if err != nil {
			return false, err
		}
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err = c.List(ctx, all); apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return false, nil // not served yet
		}
		return err == nil, err
	})
}

func widget(namespace, name string) *unstructured.Unstructured {
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(kind)
	w.SetNamespace(namespace)
	w.SetName(name)
	return w
}

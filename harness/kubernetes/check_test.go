package kubernetes

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-relapse/relapse/harness/plan"
)

// Whoever may not run commands in pods is told so before anything is built, if the bundles come that way.
func TestCheckAsksOnlyForWhatTheBundlesNeed(t *testing.T) {
	for _, refused := range []string{"exec", "", "nothing"} {
		asked := 0
		client := fake.NewClientset(claim())
		client.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
			asked++
			r := a.(clienttesting.CreateAction).GetObject().(*authv1.SelfSubjectAccessReview)
			of := r.Spec.ResourceAttributes
			if of.Resource != "pods" || of.Verb != "create" || of.Namespace != "relapse" {
				t.Errorf("asked for %+v", of)
			}
			r.Status.Allowed = of.Subresource != refused
			return true, r, nil
		})
		o := Options{Plan: &plan.Plan{Trials: []plan.Trial{{ID: "001"}}}, Client: client, Spec: spec()}
		if err := Check(t.Context(), o); err != nil || asked != 0 {
			t.Errorf("by the registry: %v, asked %d times", err, asked)
		}
		held, kept := spec(), spec()
		held.Hold, kept.Storage = time.Hour, "bundles"
		for _, way := range []struct {
			of   JobSpec
			asks []string // subresources of pods
		}{{held, []string{"exec"}}, {kept, []string{"exec", ""}}} {
			o.Spec = way.of
			err := Check(t.Context(), o)
			if !slices.Contains(way.asks, refused) {
				if err != nil {
					t.Errorf("%v are allowed: %v", way.asks, err)
				}
				continue
			}
			var no *ClusterError
			if want := "this user may not create " + path.Join("pods", refused) + " in the namespace relapse"; !errors.As(err, &no) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
}

// A volume that pods could never have is refused, unless whoever starts the run may not ask for it.
func TestCheckAsksForTheClaim(t *testing.T) {
	allow := func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.(clienttesting.CreateAction).GetObject().(*authv1.SelfSubjectAccessReview)
		r.Status.Allowed = true
		return true, r, nil
	}
	kept := spec()
	kept.Storage = "bundles"
	o := Options{Plan: &plan.Plan{Trials: []plan.Trial{{ID: "001"}}}, Spec: kept}
	client := fake.NewClientset()
	client.PrependReactor("create", "selfsubjectaccessreviews", allow)
	o.Client = client
	var no *ClusterError
	err := Check(t.Context(), o)
	if want := "the volume bundles in the namespace relapse: there is no such persistentVolumeClaim"; !errors.As(err, &no) || !strings.Contains(err.Error(), want) || !strings.Contains(no.Next, "get persistentvolumeclaims") {
		t.Errorf("got %v, want %q", err, want)
	}
	client.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "bundles", errors.New("no"))
	})
	if err := Check(t.Context(), o); err != nil {
		t.Errorf("whoever may not ask is refused: %v", err)
	}
}

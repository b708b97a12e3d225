package collectors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/evidence/capture"
)

// ObjectsAPI has the clients for the chosen objects.
type ObjectsAPI struct {
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	discovery rest.Interface
	namespace string // of the arm; "" if the objects are shared
	chosen    *Chosen

	mu         sync.Mutex
	namespaces map[string]bool // namespace -> whether its objects are chosen
}

// API makes the clients. invalid is the result of the spec's validation, which is returned if it is an error.
func (c *Chosen) API(t capture.Target, invalid error) (*ObjectsAPI, error) {
	if invalid != nil {
		return nil, invalid
	}
	if !c.Shared && t.Namespace == "" {
		return nil, fmt.Errorf("arm %s has no namespace of its own (want shared: true, or placement workload)", t.Arm)
	}
	cfg := rest.CopyConfig(t.Cluster.RESTConfig())
	cfg.QPS = -1 // no rate limit: the collectors set the pace, and a client that waits its turn would be late to see
	a := &ObjectsAPI{chosen: c, namespaces: map[string]bool{}}
	if !c.Shared {
		a.namespace = t.Namespace
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	a.discovery = d.RESTClient()
	if a.dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		return nil, err
	}
	a.metadata, err = metadata.NewForConfig(cfg)
	return a, err
}

// Resolve returns a resource in the version that the API server prefers. It fails if the arm's namespace can't have the
// resource.
func (a *ObjectsAPI) Resolve(ctx context.Context, resource string) (schema.GroupVersionResource, error) {
	name, group, grouped := strings.Cut(resource, ".")
	gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}
	path := "/api/v1"
	if grouped {
		var g metav1.APIGroup
		if err := a.read(ctx, "/apis/"+group, &g); err != nil {
			return gvr, fmt.Errorf("asking for the API group %s: %w", group, err)
		}
		gvr.Version = g.PreferredVersion.Version
		path = "/apis/" + g.PreferredVersion.GroupVersion
	}
	var list metav1.APIResourceList
	if err := a.read(ctx, path, &list); err != nil {
		return gvr, fmt.Errorf("asking for the resources of %s: %w", path, err)
	}
	i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
	switch {
	case i < 0:
		return gvr, fmt.Errorf("the API server has no %s in %s", name, path)
	case !list.APIResources[i].Namespaced && a.namespace != "":
		return gvr, fmt.Errorf("%s are the cluster's, not a namespace's (want shared: true)", resource)
	}
	return gvr, nil
}

func (a *ObjectsAPI) read(ctx context.Context, path string, into any) error {
	b, err := a.discovery.Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// Objects returns a client for the resource, in the namespace or in all of them.
func (a *ObjectsAPI) Objects(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	return a.dynamic.Resource(gvr).Namespace(a.namespace) // "" means all namespaces, and objects without one
}

func (a *ObjectsAPI) versions(gvr schema.GroupVersionResource) metadata.ResourceInterface {
	return a.metadata.Resource(gvr).Namespace(a.namespace)
}

// Meant reports whether the objects in a namespace are chosen. The labels of a namespace are read only once. An error
// says that the answer isn't known.
func (a *ObjectsAPI) Meant(ctx context.Context, namespace string) (bool, error) {
	all := len(a.chosen.Namespaces) == 0 && a.chosen.NamespaceSelector == ""
	if all || namespace == "" || slices.Contains(a.chosen.Namespaces, namespace) {
		return true, nil
	}
	if a.chosen.NamespaceSelector == "" {
		return false, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if yes, known := a.namespaces[namespace]; known {
		return yes, nil
	}
	sel, err := labels.Parse(a.chosen.NamespaceSelector)
	if err != nil {
		return false, err
	}
	ns, err := a.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx,
		namespace,
		metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("asking for the labels of namespace %s: %w", namespace, err)
	}
	a.namespaces[namespace] = sel.Matches(labels.Set(ns.Labels))
	return a.namespaces[namespace], nil
}

// errStale says that a watch has not shown all objects that there are.
var errStale = errors.New("the watch has not shown what there is")

package clustertest

import (
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// handleKinds adds the handlers for the resources of AddKind: discovery, get, list and watch.
func (a *API) handleKinds(mux *http.ServeMux) {
	mux.HandleFunc("GET /apis/{group}", a.group)
	mux.HandleFunc("GET /apis/{group}/{version}", a.groupVersion)
	serve := func(w http.ResponseWriter, r *http.Request) {
		resource := r.PathValue("resource") + "." + r.PathValue("group")
		if of, ok := a.kind(resource); !ok || of.Version != r.PathValue("version") {
			refuse(
				w,
				http.StatusNotFound,
				metav1.StatusReasonNotFound,
				resource+" is nothing the fake has",
			)
			return
		}
		a.serve(w, r, resource, r.PathValue("name"))
	}
	mux.HandleFunc("GET /apis/{group}/{version}/{resource}", serve)
	mux.HandleFunc("GET /apis/{group}/{version}/namespaces/{ns}/{resource}", serve)
	mux.HandleFunc("GET /apis/{group}/{version}/namespaces/{ns}/{resource}/{name}", serve)
}

// AddKind adds a namespaced resource of a group, as applying a CustomResourceDefinition would.
func (a *API) AddKind(of metav1.GroupVersionKind, plural string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kinds == nil {
		a.kinds = map[string]metav1.GroupVersionKind{}
	}
	a.kinds[plural+"."+of.Group] = of
}

// PutObject adds or replaces an object of a resource that AddKind added; watches see it. resource is the plural name
// with the group.
func (a *API) PutObject(resource string, o *unstructured.Unstructured) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of, ok := a.kinds[resource]
	if !ok {
		panic(fmt.Sprintf("clustertest: no resource %q", resource))
	}
	o = o.DeepCopy()
	o.SetAPIVersion(of.Group + "/" + of.Version)
	o.SetKind(of.Kind)
	if _, have := a.find(resource, o.GetNamespace(), o.GetName()); have != nil {
		o.SetUID(have.GetUID())
		o.SetCreationTimestamp(have.GetCreationTimestamp())
	}
	a.put(resource, o)
}

// DropObject removes an object of a resource that AddKind added; watches see it. A missing object is a programming
// error.
func (a *API) DropObject(resource, namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, o := a.find(resource, namespace, name)
	if o == nil {
		panic(fmt.Sprintf("clustertest: no %s %s/%s", resource, namespace, name))
	}
	a.drop(resource, o)
}

func (a *API) kind(resource string) (metav1.GroupVersionKind, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of, ok := a.kinds[resource]
	return of, ok
}

// group answers with the version of a group.
func (a *API) group(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, of := range a.kinds {
		if of.Group == r.PathValue("group") {
			v := metav1.GroupVersionForDiscovery{
				GroupVersion: of.Group + "/" + of.Version,
				Version:      of.Version,
			}
			send(
				w,
				metav1.APIGroup{
					TypeMeta:         metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"},
					Name:             of.Group,
					Versions:         []metav1.GroupVersionForDiscovery{v},
					PreferredVersion: v,
				},
			)
			return
		}
	}
	refuse(
		w,
		http.StatusNotFound,
		metav1.StatusReasonNotFound,
		"the fake has no API group "+r.PathValue("group"),
	)
}

// groupVersion answers with the resources of a group.
func (a *API) groupVersion(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: r.PathValue("group") + "/" + r.PathValue("version"),
	}
	if out.GroupVersion == storagev1.SchemeGroupVersion.String() {
		out.APIResources = []metav1.APIResource{
			{Name: "csinodes", SingularName: "csinode", Kind: "CSINode",
				Verbs: metav1.Verbs{"get", "create", "delete"}},
		}
	}
	for resource, of := range a.kinds {
		if of.Group+"/"+of.Version == out.GroupVersion {
			name := resource[:len(resource)-len(of.Group)-1]
			out.APIResources = append(out.APIResources,
				metav1.APIResource{Name: name, Kind: of.Kind, Namespaced: true,
					Verbs: metav1.Verbs{"get", "list", "watch"}})
		}
	}
	if len(out.APIResources) == 0 {
		refuse(
			w,
			http.StatusNotFound,
			metav1.StatusReasonNotFound,
			"the fake has no "+out.GroupVersion,
		)
		return
	}
	send(w, out)
}

// AddNamespace adds a namespace with labels.
func (a *API) AddNamespace(name string, labels map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.put(
		"namespaces",
		&corev1.Namespace{TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive}},
	)
}

// BreakWatches ends all watches that are running, as a load balancer would.
func (a *API) BreakWatches() { a.server.CloseClientConnections() }

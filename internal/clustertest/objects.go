package clustertest

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// rootCA is the ConfigMap that every namespace has from the start, as in a real cluster.
const rootCA = "kube-root-ca.crt"

// handleObjects adds the handlers for namespaces, ConfigMaps and the resources of AddKind. There is no namespace
// controller: a namespace that was deleted stays Terminating, with what is in it, until it is finalized.
func (a *API) handleObjects(mux *http.ServeMux) {
	mux.HandleFunc("POST /api/v1/namespaces", a.create)
	mux.HandleFunc("GET /api/v1/namespaces",
		func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, "namespaces", "") })
	mux.HandleFunc(
		"GET /api/v1/namespaces/{name}",
		func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, "namespaces", r.PathValue("name")) },
	)
	mux.HandleFunc("DELETE /api/v1/namespaces/{name}", a.terminate)
	mux.HandleFunc("PUT /api/v1/namespaces/{name}/finalize", a.finalize)
	mux.HandleFunc("GET /api/v1/configmaps",
		func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, "configmaps", "") })
	const path = "/api/v1/namespaces/{ns}/configmaps"
	mux.HandleFunc("POST "+path, a.create)
	mux.HandleFunc(
		"GET "+path,
		func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, "configmaps", "") },
	)
	mux.HandleFunc("GET "+path+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		a.serve(w, r, "configmaps", r.PathValue("name"))
	})
	mux.HandleFunc("DELETE "+path, a.deleteConfigMaps)
	mux.HandleFunc("DELETE "+path+"/{name}", a.deleteConfigMaps)
	a.handleKinds(mux)
}

// Intercept makes every request go to f first. A request for which f returns true was answered by f, and goes no
// further. A nil f ends this.
func (a *API) Intercept(f func(w http.ResponseWriter, r *http.Request) (answered bool)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.intercept = f
}

// key returns an object's namespace and name, by which lists are sorted.
func key(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

func byKey(o metav1.Object, k string) int { return strings.Compare(key(o), k) }

// find returns an object and its index, or nil and the index where it would belong; the caller holds mu.
func (a *API) find(resource, namespace, name string) (at int, o metav1.Object) {
	at, ok := slices.BinarySearchFunc(a.objects[resource], namespace+"/"+name, byKey)
	if ok {
		o = a.objects[resource][at]
	}
	return at, o
}

// put adds or replaces an object; the caller holds mu.
func (a *API) put(resource string, o metav1.Object) {
	at, have := a.find(resource, o.GetNamespace(), o.GetName())
	if have != nil {
		a.objects[resource][at] = o
		a.record(resource, "MODIFIED", o)
		return
	}
	a.unique++
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", a.unique)))
	}
	o.SetCreationTimestamp(metav1.Now())
	a.objects[resource] = slices.Insert(a.objects[resource], at, o)
	a.record(resource, "ADDED", o)
}

// drop removes an object; the caller holds mu, and has found the object.
func (a *API) drop(resource string, o metav1.Object) {
	at, _ := a.find(resource, o.GetNamespace(), o.GetName())
	a.objects[resource] = slices.Delete(a.objects[resource], at, at+1)
	last := o.(runtime.Object).DeepCopyObject().(metav1.Object) // objects are never changed in place
	a.record(resource, "DELETED", last)
}

// create adds the namespace, ConfigMap, pod, service or Endpoints in the request, which is JSON or protobuf. A dry run
// is checked and goes no further.
func (a *API) create(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	into, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	resource, ns := "namespaces", r.PathValue("ns")
	switch o := into.(type) {
	case *corev1.Namespace:
		o.TypeMeta = metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}
		o.Status.Phase = corev1.NamespaceActive
	case *corev1.ConfigMap:
		resource, o.Namespace, o.TypeMeta = "configmaps", ns, metav1.TypeMeta{
			Kind:       "ConfigMap",
			APIVersion: "v1",
		}
	case *corev1.Pod:
		resource, o.Namespace, o.TypeMeta = "pods", ns, metav1.TypeMeta{
			Kind:       "Pod",
			APIVersion: "v1",
		}
		o.Status.Phase = corev1.PodPending
	case *corev1.Service:
		resource, o.Namespace, o.TypeMeta = "services", ns, metav1.TypeMeta{
			Kind:       "Service",
			APIVersion: "v1",
		}
		o.Spec.ClusterIP = "10.96.0.10"
		for i := range o.Spec.Ports {
			o.Spec.Ports[i].NodePort = 30000
		}
	case *corev1.Endpoints:
		resource, o.Namespace, o.TypeMeta = "endpoints", ns, metav1.TypeMeta{
			Kind:       "Endpoints",
			APIVersion: "v1",
		}
	}
	if resource != "namespaces" {
		_, in := a.find("namespaces", "", ns)
		if in == nil {
			refuse(
				w,
				http.StatusNotFound,
				metav1.StatusReasonNotFound,
				fmt.Sprintf("namespaces %q not found", ns),
			)
			return
		}
		if in.GetDeletionTimestamp() != nil {
			refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden,
				fmt.Sprintf("namespace %s is being terminated", ns))
			return
		}
	}
	o := into.(metav1.Object)
	if _, have := a.find(resource, o.GetNamespace(), o.GetName()); have != nil {
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists,
			fmt.Sprintf("%s %q already exists", resource, o.GetName()))
		return
	}
	if r.URL.Query().Has("dryRun") {
		send(w, o)
		return
	}
	a.put(resource, o)
	switch resource {
	case "pods":
		a.runPod(o.(*corev1.Pod))
	case "services":
		a.runService(o.(*corev1.Service))
	case "namespaces":
		a.put(
			"configmaps",
			&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
				ObjectMeta: metav1.ObjectMeta{Namespace: o.GetName(),
					Name: rootCA}, Data: map[string]string{"ca.crt": "none"}},
		)
	}
	send(w, o)
}

// terminate begins the deletion of a namespace.
func (a *API) terminate(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, o := a.find("namespaces", "", r.PathValue("name"))
	switch {
	case o == nil:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound,
			fmt.Sprintf("namespaces %q not found", r.PathValue("name")))
		return
	case o.GetDeletionTimestamp() != nil:
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict,
			fmt.Sprintf("namespace %s is being deleted already", o.GetName()))
		return
	}
	ns := o.(*corev1.Namespace).DeepCopy()
	ns.DeletionTimestamp = new(metav1.Now())
	ns.Status.Phase = corev1.NamespaceTerminating
	a.put("namespaces", ns)
	send(w, ns)
}

// finalize ends the deletion of a namespace.
func (a *API) finalize(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, o := a.find("namespaces", "", r.PathValue("name"))
	if o == nil || o.GetDeletionTimestamp() == nil {
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict,
			fmt.Sprintf("namespace %s is not being deleted", r.PathValue("name")))
		return
	}
	a.drop("namespaces", o)
	send(w, o)
}

// deleteConfigMaps deletes one ConfigMap by its name, or all that are selected, and then answers with what they were.
func (a *API) deleteConfigMaps(w http.ResponseWriter, r *http.Request) {
	keep, err := filter(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	name := r.PathValue("name")
	gone := a.take(
		func(o metav1.Object) bool { return keep(o) && (name == "" || o.GetName() == name) },
	)
	switch {
	case name == "":
		sendList(w, "ConfigMapList", metav1.ListMeta{}, gone)
	case len(gone) == 0:
		refuse(
			w,
			http.StatusNotFound,
			metav1.StatusReasonNotFound,
			fmt.Sprintf("configmaps %q not found", name),
		)
	default:
		send(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusSuccess})
	}
}

// take deletes the ConfigMaps for which want returns true, and returns them in order.
func (a *API) take(want func(metav1.Object) bool) (gone []metav1.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	gone = []metav1.Object{}
	for _, o := range slices.Clone(a.objects["configmaps"]) {
		if want(o) {
			a.drop("configmaps", o)
			gone = append(gone, o)
		}
	}
	return gone
}

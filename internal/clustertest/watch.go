package clustertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// serve answers with one object, or lists or watches those that the query asks for.
func (a *API) serve(w http.ResponseWriter, r *http.Request, resource, name string) {
	keep, err := filter(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	switch watch, _ := strconv.ParseBool(r.URL.Query().Get("watch")); {
	case name != "":
		for _, o := range a.now(resource) {
			if o.GetName() == name && keep(o) {
				send(w, o)
				return
			}
		}
		refuse(
			w,
			http.StatusNotFound,
			metav1.StatusReasonNotFound,
			fmt.Sprintf("%s %q not found", resource, name),
		)
	case watch:
		a.watch(w, r, resource, keep)
	default:
		a.list(w, r, resource, keep)
	}
}

// filter returns a function that reports whether the query and the path select an object. It returns an error for a
// selector that the fake can't apply.
func filter(r *http.Request) (func(metav1.Object) bool, error) {
	q := r.URL.Query()
	with, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	sel, err := fields.ParseSelector(q.Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	for _, req := range sel.Requirements() {
		if !slices.Contains([]string{"metadata.name", "metadata.namespace", "spec.nodeName"}, req.Field) {
			return nil, fmt.Errorf("the fake knows no field selector for %q", req.Field)
		}
	}
	ns := r.PathValue("ns")
	return func(o metav1.Object) bool {
		return (ns == "" || o.GetNamespace() == ns) && with.Matches(labels.Set(o.GetLabels())) &&
			sel.Matches(
				fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace(),
					"spec.nodeName": nodeOf(o)},
			)
	}, nil
}

// nodeOf returns the node that a pod is bound to.
func nodeOf(o metav1.Object) string {
	if p, ok := o.(*corev1.Pod); ok {
		return p.Spec.NodeName
	}
	return ""
}

// now returns the objects of a resource, which are never changed in place.
func (a *API) now(resource string) (out []metav1.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.locked(resource)
}

func (a *API) locked(resource string) (out []metav1.Object) {
	if slices.Contains([]string{"namespaces", "configmaps", "pods", "services", "endpoints"}, resource) ||
		a.kinds[resource].Kind != "" {
		return slices.Clone(a.objects[resource])
	}
	if resource == "nodes" {
		for _, n := range a.nodes {
			out = append(out, n)
		}
		return out
	}
	for _, e := range a.events {
		out = append(out, e)
	}
	return out
}

// list answers with the objects that keep selects. If there is a limit, they are in order of their keys, and the last
// key is the token with which a client goes on.
func (a *API) list(
	w http.ResponseWriter,
	r *http.Request,
	resource string,
	keep func(metav1.Object) bool,
) {
	a.mu.Lock()
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(a.version)}
	all, of := a.locked(resource), a.kinds[resource]
	a.mu.Unlock()
	items, from := []metav1.Object{}, r.URL.Query().Get("continue")
	for _, o := range all {
		if keep(o) && (from == "" || key(o) > from) {
			items = append(items, o)
		}
	}
	if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 && len(items) > limit {
		slices.SortFunc(
			items,
			func(x, y metav1.Object) int { return strings.Compare(key(x), key(y)) },
		)
		items = items[:limit]
		meta.Continue = key(items[limit-1])
	}
	if of.Kind != "" {
		sendListOf(
			w,
			metav1.TypeMeta{Kind: of.Kind + "List", APIVersion: of.Group + "/" + of.Version},
			meta,
			items,
		)
		return
	}
	kind := map[string]string{"nodes": "NodeList", "events": "EventList", "namespaces": "NamespaceList",
		"configmaps": "ConfigMapList", "pods": "PodList", "services": "ServiceList", "endpoints": "EndpointsList"}[resource]
	sendList(w, kind, meta, items)
}

func sendList(w http.ResponseWriter, kind string, meta metav1.ListMeta, items []metav1.Object) {
	sendListOf(w, metav1.TypeMeta{Kind: kind, APIVersion: "v1"}, meta, items)
}

func sendListOf(
	w http.ResponseWriter,
	of metav1.TypeMeta,
	meta metav1.ListMeta,
	items []metav1.Object,
) {
	send(w, struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
		Items           []metav1.Object `json:"items"`
	}{of, meta, items})
}

// watch sends the changes after the given version. Without a version, or when the client asks for the initial events,
// it first sends all objects that exist. When the client asks for them, a bookmark says where they end.
func (a *API) watch(
	w http.ResponseWriter,
	r *http.Request,
	resource string,
	keep func(metav1.Object) bool,
) {
	q := r.URL.Query()
	initial, _ := strconv.ParseBool(q.Get("sendInitialEvents"))
	since, err := strconv.Atoi(q.Get("resourceVersion"))
	if err != nil || since == 0 {
		initial = true
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	out := json.NewEncoder(w)
	say := func(typ string, o any) { _ = out.Encode(map[string]any{"type": typ, "object": o}) }
	if initial {
		a.mu.Lock()
		all := a.locked(resource)
		since = a.version
		a.mu.Unlock()
		for _, o := range all {
			if keep(o) {
				say("ADDED", o)
			}
		}
		if q.Get("sendInitialEvents") != "" {
			say("BOOKMARK", bookmark(resource, since))
		}
	}
	flush := http.NewResponseController(w)
	for at := 0; ; {
		a.mu.Lock()
		changes, wake, closed := a.history[at:], a.wake, a.closed
		a.mu.Unlock()
		at += len(changes)
		for _, c := range changes {
			if c.resource == resource && c.version > since && keep(c.object) {
				say(c.typ, c.object)
			}
		}
		if flush.Flush() != nil || closed {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-wake:
		}
	}
}

// bookmark tells a client that it has seen everything up to a version.
func bookmark(resource string, version int) any {
	meta := metav1.ObjectMeta{ResourceVersion: strconv.Itoa(version),
		Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
	of := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{Kind: kind, APIVersion: "v1"} }
	switch resource {
	case "nodes":
		return &corev1.Node{TypeMeta: of("Node"), ObjectMeta: meta}
	case "namespaces":
		return &corev1.Namespace{TypeMeta: of("Namespace"), ObjectMeta: meta}
	case "pods":
		return &corev1.Pod{TypeMeta: of("Pod"), ObjectMeta: meta}
	case "configmaps":
		return &corev1.ConfigMap{TypeMeta: of("ConfigMap"), ObjectMeta: meta}
	}
	return &corev1.Event{TypeMeta: of("Event"), ObjectMeta: meta}
}

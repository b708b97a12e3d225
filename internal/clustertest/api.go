package clustertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// API is a small API server over HTTP. It serves get, list and watch of nodes, events, namespaces, ConfigMaps and pods,
// and writes of the latter three. It also serves creations and reads of services and Endpoints, reads of Leases,
// CSINodes, the kinds of AddKind, and the node proxy to kubelets. It refuses other writes, and other field selectors
// than metadata.name, metadata.namespace and spec.nodeName, rather than ignoring them.
type API struct {
	server *httptest.Server
	pipes  *pipes // the way to the server; nil if it has a socket
	proxy  func(node, path string) ([]byte, error)
	dark   func() bool                   // whether the power of all control planes is off
	leases func() []coordinationv1.Lease // of the nodes, as they are right now

	mu      sync.Mutex
	version int
	nodes   []*corev1.Node
	events  []*corev1.Event
	objects map[string][]metav1.Object // namespaces, configmaps and pods, in order of their keys
	idle    map[string]bool            // nodes whose kubelets do nothing about pods
	// idleScheduler says that pods without a node get none, idleServices that services get no address.
	idleScheduler, idleServices bool
	kinds                       map[string]metav1.GroupVersionKind // what AddKind added, by plural name and group
	stored                      map[string]storedValue             // in etcd, by key, as far as it was written past the API
	revision                    int                                // of the last of these writes
	unique                      int
	history                     []change
	wake                        chan struct{} // closed and replaced at each change
	closed                      bool
	intercept                   func(http.ResponseWriter, *http.Request) bool
}

// change is one watch event; version is the object's resourceVersion.
type change struct {
	resource, typ string
	version       int
	object        metav1.Object
}

func newAPI(p *pipes) *API {
	a := &API{wake: make(chan struct{}), objects: map[string][]metav1.Object{}, pipes: p}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api", answer(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
		Versions: []string{"v1"}}))
	mux.HandleFunc("GET /apis", answer(metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList",
		APIVersion: "v1"}}))
	mux.HandleFunc("GET /version", answer(map[string]string{"major": "1", "minor": "34", "gitVersion": "v1.34.4"}))
	verbs := metav1.Verbs{"get", "list", "watch"}
	mux.HandleFunc("GET /api/v1", answer(metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
		APIResources: []metav1.APIResource{
			{Name: "nodes", SingularName: "node", Kind: "Node", Verbs: verbs},
			{Name: "events", SingularName: "event", Kind: "Event", Namespaced: true, Verbs: verbs},
			{Name: "namespaces", SingularName: "namespace", Kind: "Namespace",
				Verbs: append(verbs, "create", "delete")},
			{Name: "pods", SingularName: "pod", Kind: "Pod", Namespaced: true,
				Verbs: append(verbs, "create", "delete")},
			{Name: "services", SingularName: "service", Kind: "Service", Namespaced: true,
				Verbs: metav1.Verbs{"get", "list", "create"}},
			{Name: "endpoints", SingularName: "endpoints", Kind: "Endpoints", Namespaced: true,
				Verbs: metav1.Verbs{"get", "list", "create", "update"}},
			{Name: "configmaps", SingularName: "configmap", Kind: "ConfigMap", Namespaced: true,
				Verbs: append(verbs, "create", "delete", "deletecollection")},
		},
	}))
	mux.HandleFunc(
		"GET /api/v1/nodes",
		func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, "nodes", "") },
	)
	mux.HandleFunc(
		"GET /api/v1/nodes/{name}",
		func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, "nodes", r.PathValue("name")) },
	)
	mux.HandleFunc("GET /api/v1/nodes/{name}/proxy/{path...}", a.serveProxy)
	mux.HandleFunc(
		"GET /api/v1/events",
		func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, "events", "") },
	)
	mux.HandleFunc("GET /api/v1/namespaces/{ns}/events",
		func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, "events", "") })
	a.handleObjects(mux)
	a.handlePods(mux)
	a.handleServices(mux)
	a.handleHeartbeats(mux)
	a.handleCSINodes(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(
			w,
			http.StatusNotFound,
			metav1.StatusReasonNotFound,
			r.Method+" "+r.URL.Path+" is nothing the fake has",
		)
	})
	start := httptest.NewServer
	if p != nil {
		start = p.start
	}
	a.server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		first, closed := a.intercept, a.closed
		a.mu.Unlock()
		if closed || a.dark != nil && a.dark() {
			panic(http.ErrAbortHandler) // the request came in before the connections were closed
		}
		if first == nil || !first(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	return a
}

// config returns a client configuration for JSON. The fake reads protobuf, but answers in JSON whatever is asked for.
func (a *API) config() *rest.Config {
	c := &rest.Config{Host: a.server.URL, QPS: 100, Burst: 200,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON,
			AcceptContentTypes: runtime.ContentTypeJSON}}
	if a.pipes != nil {
		c = a.pipes.lead(c)
	}
	return c
}

func (a *API) close() {
	a.mu.Lock()
	if !a.closed {
		a.closed = true
		close(a.wake)
	}
	a.mu.Unlock()
	_ = a.server.Listener.Close() // before its connections, or clients come back at once; closing it twice is an error
	a.server.CloseClientConnections()
	a.server.Close()
}

// PutNode adds or replaces a node; watches see it.
func (a *API) PutNode(n *corev1.Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.putNode(n)
}

// putNode is PutNode for a caller that holds mu.
func (a *API) putNode(n *corev1.Node) {
	n = n.DeepCopy()
	n.TypeMeta = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}
	if n.UID == "" {
		n.UID = types.UID("uid-" + n.Name)
	}
	i := slices.IndexFunc(a.nodes, func(have *corev1.Node) bool { return have.Name == n.Name })
	typ := "MODIFIED"
	if i < 0 {
		typ, i = "ADDED", len(a.nodes)
		a.nodes = append(a.nodes, nil)
		a.putCSINode(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}) // as its kubelet does when it starts
	}
	a.nodes[i] = n
	a.record("nodes", typ, n)
}

// SetCondition sets one condition of a node and leaves the others; an unknown node is a programming error.
func (a *API) SetCondition(node string, c corev1.NodeCondition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.nodes, func(have *corev1.Node) bool { return have.Name == node })
	if i < 0 {
		panic(fmt.Sprintf("clustertest: no node %q", node))
	}
	n := a.nodes[i].DeepCopy()
	j := slices.IndexFunc(
		n.Status.Conditions,
		func(have corev1.NodeCondition) bool { return have.Type == c.Type },
	)
	if j < 0 {
		n.Status.Conditions = append(n.Status.Conditions, c)
	} else {
		n.Status.Conditions[j] = c
	}
	a.putNode(n)
}

// AddEvent adds an event; watches see it. Its namespace defaults to "default", and its name to a name that no other
// event has.
func (a *API) AddEvent(e *corev1.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e = e.DeepCopy()
	e.TypeMeta = metav1.TypeMeta{Kind: "Event", APIVersion: "v1"}
	if e.Namespace == "" {
		e.Namespace = "default"
	}
	if e.Name == "" {
		e.Name = "event-" + strconv.Itoa(len(a.events)+1)
	}
	e.UID = types.UID("uid-" + e.Name)
	a.events = append(a.events, e)
	a.record("events", "ADDED", e)
}

// record gives the object a new resourceVersion and wakes the watches. The caller holds mu.
func (a *API) record(resource, typ string, o metav1.Object) {
	a.version++
	o.SetResourceVersion(strconv.Itoa(a.version))
	a.history = append(a.history, change{resource, typ, a.version, o})
	if !a.closed {
		close(a.wake)
		a.wake = make(chan struct{})
	}
}

func (a *API) serveProxy(w http.ResponseWriter, r *http.Request) {
	path := "/" + r.PathValue("path")
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	b, err := a.proxy(r.PathValue("name"), path)
	switch {
	case err == nil:
		_, _ = w.Write(b)
	case strings.Contains(err.Error(), "404"):
		http.Error(w, err.Error(), http.StatusNotFound)
	default:
		refuse(
			w,
			http.StatusServiceUnavailable,
			metav1.StatusReasonServiceUnavailable,
			err.Error(),
		)
	}
}

func answer(v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { send(w, v) }
}

func send(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	_ = json.NewEncoder(w).Encode(v) // the client that went away is told nothing
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).
		Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message})
}

package clustertest

import (
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// handleServices adds the handlers for services and Endpoints. All services get an address of the cluster and a node
// port. Services of type LoadBalancer also get an address from outside at once, unless the service controller is idle.
func (a *API) handleServices(mux *http.ServeMux) {
	for _, resource := range []string{"services", "endpoints"} {
		mux.HandleFunc("POST /api/v1/namespaces/{ns}/"+resource, a.create)
		mux.HandleFunc("GET /api/v1/namespaces/{ns}/"+resource, func(w http.ResponseWriter, r *http.Request) {
			a.serve(w, r, resource, "")
		})
		mux.HandleFunc("GET /api/v1/namespaces/{ns}/"+resource+"/{name}", func(w http.ResponseWriter, r *http.Request) {
			a.serve(w, r, resource, r.PathValue("name"))
		})
	}
	mux.HandleFunc("PUT /api/v1/namespaces/{ns}/endpoints/{name}", a.putEndpoints)
	mux.HandleFunc(
		"GET /api/v1/services",
		func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, "services", "") },
	)
}

// putEndpoints replaces Endpoints that exist.
func (a *API) putEndpoints(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	into, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	e, ok := into.(*corev1.Endpoints)
	if err != nil || !ok || e.Name != r.PathValue("name") {
		refuse(
			w,
			http.StatusBadRequest,
			metav1.StatusReasonBadRequest,
			fmt.Sprintf("%T, %v", into, err),
		)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	e.Namespace = r.PathValue("ns")
	if _, have := a.find("endpoints", e.Namespace, e.Name); have == nil {
		refuse(
			w,
			http.StatusNotFound,
			metav1.StatusReasonNotFound,
			fmt.Sprintf("endpoints %q not found", e.Name),
		)
		return
	}
	a.put("endpoints", e)
	send(w, e)
}

// IdleServices makes the service controller get no more addresses, though it is healthy. With false, it gets them for
// new services again.
func (a *API) IdleServices(idle bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.idleServices = idle
}

// runService does what a service controller does about a new service; the caller holds mu.
func (a *API) runService(s *corev1.Service) {
	if a.idleServices || s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return
	}
	s = s.DeepCopy() // what was put is never changed
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "198.18.0.1"}}
	a.put("services", s)
}

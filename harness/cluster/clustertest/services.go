package clustertest

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
)

// handleServices adds services. Those of type LoadBalancer get an address at once, unless their controller is idle.
func (a *API) handleServices(mux *http.ServeMux) {
	mux.HandleFunc("POST /api/v1/namespaces/{ns}/services", a.create)
	mux.HandleFunc("GET /api/v1/services", func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, "services", "") })
}

// IdleServices has the service controller get no more addresses, though it is well.
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

package clustertest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// handlePods adds the handlers for pods. A pod that is bound to a node runs at once, and is gone as soon as it is
// deleted, unless the kubelet of the node is idle.
func (a *API) handlePods(mux *http.ServeMux) {
	const path = "/api/v1/namespaces/{ns}/pods"
	mux.HandleFunc(
		"GET /api/v1/pods",
		func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, "pods", "") },
	)
	mux.HandleFunc("POST "+path, a.create)
	mux.HandleFunc(
		"GET "+path,
		func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, "pods", "") },
	)
	mux.HandleFunc("GET "+path+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		a.serve(w, r, "pods", r.PathValue("name"))
	})
	mux.HandleFunc("DELETE "+path+"/{name}", a.deletePod)
}

// IdleKubelet makes the kubelet of a node, given by its full name, do nothing more about pods, though the node is
// Ready. With false, the kubelet catches up.
func (a *API) IdleKubelet(node string, idle bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.idle == nil {
		a.idle = map[string]bool{}
	}
	a.idle[node] = idle
	if idle {
		return
	}
	for _, o := range append([]metav1.Object{}, a.objects["pods"]...) {
		p := o.(*corev1.Pod)
		switch {
		case p.Spec.NodeName != node:
		case p.DeletionTimestamp != nil:
			a.drop("pods", p)
		case p.Status.Phase == corev1.PodPending:
			a.runPod(p)
		}
	}
}

// IdleScheduler makes the scheduler bind no more pods, though it is ready. With false, it binds new ones again.
func (a *API) IdleScheduler(idle bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.idleScheduler = idle
}

// runPod does what a scheduler and a kubelet do about a new pod; the caller holds mu.
func (a *API) runPod(p *corev1.Pod) {
	p = p.DeepCopy()
	if p.Spec.NodeName == "" && !a.idleScheduler && len(a.nodes) > 0 {
		p.Spec.NodeName = a.nodes[0].Name
		a.put("pods", p)
	}
	if p.Spec.NodeName == "" || a.idle[p.Spec.NodeName] {
		return
	}
	p = p.DeepCopy() // what was put is never changed
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses,
			corev1.ContainerStatus{
				Name:  c.Name,
				Ready: true,
				State: corev1.ContainerState{
					Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()},
				},
			})
	}
	a.put("pods", p)
}

// deletePod deletes a pod: at once if the grace period is 0 or the node's kubelet works. Otherwise it only marks the
// pod as being deleted, as an API server does.
func (a *API) deletePod(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	var opts metav1.DeleteOptions
	if into, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
		if o, ok := into.(*metav1.DeleteOptions); ok {
			opts = *o
		}
	} else if len(body) > 0 && json.Unmarshal(body, &opts) != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, o := a.find("pods", r.PathValue("ns"), r.PathValue("name"))
	if o == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound,
			fmt.Sprintf("pods %q not found", r.PathValue("name")))
		return
	}
	p := o.(*corev1.Pod).DeepCopy()
	if opts.GracePeriodSeconds != nil && *opts.GracePeriodSeconds == 0 || !a.idle[p.Spec.NodeName] {
		a.drop("pods", o)
	} else if p.DeletionTimestamp == nil {
		p.DeletionTimestamp = new(metav1.Now())
		a.put("pods", p)
	}
	send(w, p)
}

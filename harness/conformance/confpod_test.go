package conformance_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// hookPods gives each worker a pod. An HTTP request puts the pod into a state, and a client over HTTPS frees it. The
// nodes' hooks are called before a pod answers.
func hookPods(w *world) {
	w.API().AddNamespace("ns", nil)
	client := kubernetes.NewForConfigOrDie(w.RESTConfig())
	for _, n := range w.nodes {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "of-" + n.Name(), Labels: map[string]string{"app.kubernetes.io/name": "subject"}}, Spec: corev1.PodSpec{NodeName: n.Name()}}
		if _, err := client.CoreV1().Pods("ns").Create(context.Background(), p, metav1.CreateOptions{}); err != nil {
			panic(err) // a fake that can't create a pod
		}
	}
	w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		for _, n := range w.nodes {
			of, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/ns/pods/"), "/proxy")
			if of != "of-"+n.Name()+":8080" && of != "https:of-"+n.Name()+":8443" {
				continue
			}
			err := n.hooked(r.Context(), []string{r.Method, "probe"})
			switch what := r.Method + " " + path; {
			case err != nil:
				http.Error(rw, err.Error(), http.StatusInternalServerError)
			case what == "PUT /state":
				n.puts.Add(1)
				n.state.Store(true)
			case what == "GET /state" && !n.state.Load():
				http.NotFound(rw, r)
			case what == "GET /end" && strings.HasPrefix(of, "https:"):
				n.state.Store(false)
				http.Error(rw, "a client that nothing is said to", http.StatusTeapot)
			}
			return true
		}
		return false
	})
}

// podsArmed counts how often a node's pod was put into its state, and lists the pod while it is in that state.
func podsArmed(_ *testing.T, n *criNode) (ever int, armed []string) {
	if n.state.Load() {
		armed = append(armed, "the pod of "+n.Name())
	}
	return int(n.puts.Load()), armed
}

package conformance_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func init() {
	faults.add(faultCase{lay: layPods, forever: "the state ends with its pod"}, "podState")
}

// layPods gives each worker a pod. An HTTP request puts the pod into a state, and a client over HTTPS frees it. The
// nodes' hooks are called before a pod answers.
func layPods(t *testing.T, w *world) sight {
	t.Helper()
	w.API().AddNamespace("ns", nil)
	client := testerOf(t, w.Cluster)
	puts, in := newCounts(w), map[*criNode]*atomic.Bool{} // in tells which pods are in the state
	for _, n := range w.nodes {
		in[n] = &atomic.Bool{}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "of-" + n.Name(), Labels: map[string]string{"app.kubernetes.io/name": "subject"}}, Spec: corev1.PodSpec{NodeName: n.Name()}}
		if _, err := client.CoreV1().Pods("ns").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
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
				puts[n].Add(1)
				in[n].Store(true)
			case what == "GET /state" && !in[n].Load():
				http.NotFound(rw, r)
			case what == "GET /end" && strings.HasPrefix(of, "https:"):
				in[n].Store(false)
				http.Error(rw, "a client that nothing is said to", http.StatusTeapot)
			}
			return true
		}
		return false
	})
	return sight{armed: func(_ *testing.T, n *criNode) (ever int, armed []string) {
		if in[n].Load() {
			armed = append(armed, "the pod of "+n.Name())
		}
		return int(puts[n].Load()), armed
	}}
}

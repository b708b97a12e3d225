package kinds_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/internal/clustertest"
	"github.com/kube-relapse/relapse/scenarios/listener-busy-wait/kinds"
)

// A pod that a request ends has reacted to it, which is its own evidence; that no pod gets into the state is a failure
// of the fault.
func TestPodStateOfPodsThatEnd(t *testing.T) {
	c := clustertest.New("pods", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "worker", Role: cluster.Worker}}})
	t.Cleanup(c.Close)
	c.API().AddNamespace("ns", nil)
	client := kubernetes.NewForConfigOrDie(c.RESTConfig())
	adds := func(name string) {
		t.Helper()
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/name": "subject"}}, Spec: corev1.PodSpec{NodeName: "pods-worker"}}
		if _, err := client.CoreV1().Pods("ns").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.API().Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/pods/ends:8080/proxy") {
			http.Error(w, "error trying to reach service: connection refused", http.StatusServiceUnavailable)
			return true
		}
		return strings.Contains(r.URL.Path, "/pods/stays:8080/proxy") // 200
	})
	var mu sync.Mutex
	var said []string
	target := fault.Target{Run: "run", Name: "item", Cluster: c, Nodes: []cluster.Node{c.Node("worker")}, Events: event.NewStream(event.SinkFunc(func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, e.Type+" "+e.Message)
	}))}
	f := &kinds.PodState{App: "subject", Port: 8080, Path: "/state", End: kinds.PodRequest{Port: 8080, Path: "/end"}}
	wants := func(want string) {
		t.Helper()
		if err := f.Inject(t.Context(), target); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	wants("item: no pod of subject runs on pods-worker")
	adds("ends")
	wants("item: no pod of subject gets into the state")
	adds("stays")
	said = nil
	if err := f.Inject(t.Context(), target); err != nil {
		t.Error(err)
	}
	slices.Sort(said)
	if want := []string{
		event.Warning + " item: ns/ends: the change was not seen within 30s: it doesn't answer any more", event.FaultSeen + " item: ns/stays is in the state",
	}; !slices.Equal(said, slices.Sorted(slices.Values(want))) {
		t.Errorf("it says %q, want %q", said, want)
	}
}

func TestPodStateRefuses(t *testing.T) {
	for want, f := range map[string]kinds.PodState{
		`app is "" and end.scheme "" (want a name; http or https)`:               {Port: 1, Path: "/", End: kinds.PodRequest{Port: 1, Path: "/"}},
		`app is "a" and end.scheme "ftp" (want a name; http or https)`:           {App: "a", Port: 1, Path: "/", End: kinds.PodRequest{Scheme: "ftp", Port: 1, Path: "/"}},
		`port is 0 and path "/" (want a TCP port and a path: /listener)`:         {App: "a", Path: "/", End: kinds.PodRequest{Port: 1, Path: "/"}},
		`end.port is 1 and end.path "x" (want a TCP port and a path: /listener)`: {App: "a", Port: 1, Path: "/", End: kinds.PodRequest{Port: 1, Path: "x"}},
	} {
		if err := f.Validate(); err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", f, err, want)
		}
	}
}

// runner is a cluster whose only workload is a plain process at an address.
type runner struct {
	*clustertest.Cluster
	address string
}

func (r runner) Abilities() cluster.ClusterAbilities { return cluster.ClusterAbilities{Processes: r} }
func (r runner) Run(context.Context, cluster.Workload, cluster.Process) error {
	return errors.New("not asked for")
}
func (r runner) Workloads(_ context.Context, name string) ([]cluster.Addressed, error) {
	if name != "subject" {
		return nil, nil
	}
	return []cluster.Addressed{plainProcess{r.Component("control-plane", "kube-apiserver"), r.address}}, nil
}

type plainProcess struct {
	cluster.Component
	address string
}

func (p plainProcess) Address() string { return p.address }

// A plain process is asked itself, also by TLS with a certificate of its own.
func TestPodStateOfPlainProcesses(t *testing.T) {
	var on, gone, moved atomic.Bool
	end := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { on.Store(false) }))
	defer end.Close()
	state := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case gone.Load():
			panic(http.ErrAbortHandler)
		case r.Method == http.MethodPut:
			on.Store(true)
		case !on.Load():
			http.NotFound(w, r)
		case !moved.Swap(true):
			http.Redirect(w, r, end.URL+"/end", http.StatusFound) // who follows ends the state
		}
	}))
	defer state.Close()
	portOf := func(s *httptest.Server) int { return s.Listener.Addr().(*net.TCPAddr).Port }
	fake := clustertest.New("pods", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "control-plane", Role: cluster.ControlPlane, Arm: "fixed"}}})
	t.Cleanup(fake.Close)
	var mu sync.Mutex
	var said []string
	target := fault.Target{Run: "run", Name: "item", Cluster: runner{fake, "127.0.0.1"}, Nodes: []cluster.Node{fake.Node("control-plane")},
		Events: event.NewStream(event.SinkFunc(func(e event.Event) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, e.Type+" "+e.Message)
		}))}
	f := &kinds.PodState{App: "subject", Port: portOf(state), Path: "/state", End: kinds.PodRequest{Scheme: "https", Port: portOf(end), Path: "/end"}}
	if err := f.Inject(t.Context(), target); err != nil || !on.Load() {
		t.Fatalf("%v; it is in the state: %v, and nobody was to be sent on to what ends it", err, on.Load())
	}
	if err := errors.Join(f.Recover(t.Context(), target), f.Recover(t.Context(), target)); err != nil {
		t.Fatal(err)
	}
	name := "item: kube-apiserver of fixed"
	if want := []string{event.FaultSeen + " " + name + " is in the state", event.FaultGone + " " + name + " is not in the state",
		event.FaultGone + " " + name + " is not in the state"}; !slices.Equal(said, want) {
		t.Errorf("it says %q, want %q", said, want)
	}
	gone.Store(true)
	if err := f.Inject(t.Context(), target); err == nil || err.Error() != "item: no pod of subject gets into the state" {
		t.Errorf("of one that doesn't answer: %v", err)
	}
	f.App = "other"
	if err := f.Inject(t.Context(), target); err == nil || err.Error() != "item: no process of other runs" {
		t.Errorf("of none: %v", err)
	}
}

package collect_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/match/collect"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// server answers like an API server with two nodes and a scheduler that was restarted, and notes what it was asked.
type server struct {
	sync.Mutex
	asked, methods []string
	goroutines     string // how many the kubelets have
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Lock()
	defer s.Unlock()
	s.asked, s.methods = append(s.asked, r.URL.RequestURI()), append(s.methods, r.Method)
	switch p := r.URL.Path; {
	case p == "/version":
		w.Write([]byte(`{"gitVersion":"v1.34.4"}`))
	case p == "/api/v1/nodes":
		w.Write([]byte(`{"kind":"NodeList","items":[{"metadata":{"name":"n1"}},{"metadata":{"name":"n2"}}]}`))
	case p == "/api/v1/pods":
		w.Write([]byte(`{"kind":"PodList","items":[{"metadata":{"name":"s","namespace":"kube-system"},"spec":{"containers":[{"name":"kube-scheduler"}]},` +
			`"status":{"containerStatuses":[{"name":"kube-scheduler","restartCount":2}]}},{"metadata":{"name":"x","namespace":"d"},"spec":{"containers":[{"name":"app"}]}}]}`))
	case strings.HasSuffix(p, "/goroutine") && r.URL.Query().Get("debug") == "1":
		w.Write([]byte("goroutine profile: total " + s.goroutines + "\n" + s.goroutines + " @ 0x1\n#\t0x1\tmain.f+0x1\t/a.go:1\n\n"))
	case strings.HasSuffix(p, "/goroutine"):
		w.Write([]byte("goroutine 1 [select]:\nmain.main()\n\t/a.go:1 +0x1\n"))
	case strings.HasSuffix(p, "/log"):
		w.Write([]byte("I0301 token=hunter2hunter2 starting\n"))
	default:
		http.Error(w, "no such thing", http.StatusNotFound)
	}
}

func collected(t *testing.T, s *server, b collect.Budget, components ...string) (dir string, said []collect.Request) {
	t.Helper()
	dir = collectedFrom(t, s, b, func(r collect.Request) { said = append(said, r) }, components...)
	return dir, said
}

// collectedFrom collects from an API server, and returns the folder.
func collectedFrom(t *testing.T, s http.Handler, b collect.Budget, told func(collect.Request), components ...string) string {
	t.Helper()
	api := httptest.NewServer(s)
	t.Cleanup(api.Close)
	dir := filepath.Join(t.TempDir(), "out")
	b.Pause = time.Microsecond
	err := collect.Run(context.Background(), collect.Options{Config: &rest.Config{Host: api.URL}, Dir: dir, Components: components, Budget: b, Log: told})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// What is asked is what the plan lists, by GET alone, and secrets don't reach the disk.
func TestCollect(t *testing.T) {
	s := &server{goroutines: "1"}
	dir, said := collected(t, s, collect.Budget{}, "kubelet", "kube-scheduler")
	if slices.ContainsFunc(s.methods, func(m string) bool { return m != http.MethodGet }) {
		t.Errorf("methods: %q", s.methods)
	}
	if len(s.asked) != len(said) {
		t.Errorf("%d requests were made, %d told", len(s.asked), len(said))
	}
	planned := collect.Plan([]string{"kubelet", "kube-scheduler"}, collect.Budget{})
	for _, asked := range s.asked {
		as := strings.NewReplacer("n1", "NODE", "n2", "NODE", "namespaces/kube-system", "namespaces/NAMESPACE", "pods/s/", "pods/POD/").Replace(asked)
		if !slices.ContainsFunc(planned, func(r collect.Request) bool { return r.Path == as }) {
			t.Errorf("%s was asked, and is in no plan", asked)
		}
	}
	for _, f := range []string{"nodes/n2/kubelet/goroutines-debug2.txt", "pods/kube-system/s/kube-scheduler/previous.log", "requests.jsonl"} {
		b, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil || strings.Contains(string(b), "hunter2") {
			t.Errorf("%s: %v: %s", f, err, b)
		}
	}
}

func TestBudget(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget collect.Budget
		want   string // of a request that wasn't made, or whose answer was cut
		most   int    // requests that are made
	}{
		{"many goroutines", collect.Budget{Goroutines: 99}, "not made: there are 100 goroutines, over 99", 8},
		{"few nodes", collect.Budget{Nodes: 1}, "not made: 1 nodes were asked", 7},
		{"few requests", collect.Budget{Requests: 3}, "not made: there were 3 requests already", 3},
		{"few bytes", collect.Budget{Bytes: 30}, "cut off after", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &server{goroutines: "100"}
			_, said := collected(t, s, c.budget, "kubelet")
			if !slices.ContainsFunc(said, func(r collect.Request) bool { return strings.Contains(r.Error, c.want) }) {
				t.Errorf("nobody says %q: %+v", c.want, said)
			}
			if len(s.asked) > c.most {
				t.Errorf("%d requests were made: %q", len(s.asked), s.asked)
			}
		})
	}
}

// A connection that breaks within the list of nodes loses those after the break, not all.
func TestAListThatIsCutOff(t *testing.T) {
	whole := &server{goroutines: "1"}
	var said []collect.Request
	collectedFrom(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/nodes" {
			w.Header().Set("Content-Length", "1000")
			w.Write([]byte(`{"kind":"NodeList","metadata":{},"items":[{"metadata":{"name":"n1"}},{"metadata":{"na`))
			return
		}
		whole.ServeHTTP(w, r)
	}), collect.Budget{}, func(r collect.Request) { said = append(said, r) }, "kubelet")
	if !slices.ContainsFunc(whole.asked, func(uri string) bool { return strings.HasPrefix(uri, "/api/v1/nodes/n1/proxy/debug/") }) {
		t.Errorf("the node before the break was not asked: %q", whole.asked)
	}
	if !slices.ContainsFunc(said, func(r collect.Request) bool { return strings.HasPrefix(r.Path, "/api/v1/nodes") && r.Error != "" }) {
		t.Errorf("nobody says that the list is not whole: %+v", said)
	}
}

func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := collect.Run(context.Background(), collect.Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "it isn't empty") {
		t.Errorf("a folder that has files: %v", err)
	}
}

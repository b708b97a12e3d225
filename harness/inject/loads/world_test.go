package loads_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/inject/loads"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// world is a cluster in memory whose client configuration asks for a throttle, with one load in it and what is seen of
// that.
type world struct {
	*clustertest.Cluster
	front  *rest.Config // another way to the API server, if there is one
	client *kubernetes.Clientset
	w      *bundle.Writer
	told   chan string // "1 began", "1 over"

	mu   sync.Mutex
	said []string
	more chan struct{} // closed and replaced at each event
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		Cluster: clustertest.New("load", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "control-plane", Role: cluster.ControlPlane}}}),
		told:    make(chan string, 100), more: make(chan struct{}),
	}
	t.Cleanup(w.Close)
	cfg := w.Cluster.RESTConfig()
	cfg.QPS = -1
	var err error
	if w.client, err = kubernetes.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	if w.w, err = bundle.Create(filepath.Join(t.TempDir(), "001")); err != nil {
		t.Fatal(err)
	}
	return w
}

// overHTTP2 puts a front before the API server that speaks TLS and HTTP/2, as a real one does.
func (w *world) overHTTP2(t *testing.T) {
	t.Helper()
	to, err := url.Parse(w.Cluster.RESTConfig().Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("%s %s came by %s", r.Method, r.URL, r.Proto)
		}
		proxy.ServeHTTP(rw, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	w.front = &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// RESTConfig allows one request a second.
func (w *world) RESTConfig() *rest.Config {
	cfg := w.Cluster.RESTConfig()
	if w.front != nil {
		cfg = rest.CopyConfig(w.front)
	}
	cfg.QPS, cfg.Burst = 1, 1
	return cfg
}

func (w *world) target() load.Target {
	return load.Target{
		Run: "run", Name: "deletions", Arm: "vulnerable", Cluster: w,
		Events: event.NewStream(event.SinkFunc(func(e event.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.said = append(w.said, e.Type+" "+e.Message)
			close(w.more)
			w.more = make(chan struct{})
		})),
		Round: func(n int, began bool) {
			w.told <- fmt.Sprint(n, map[bool]string{true: " began", false: " over"}[began])
		},
	}
}

// events are those that were said, type and message.
func (w *world) events() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.said, "\n")
}

// says waits for an event.
func (w *world) says(t *testing.T, want string) {
	t.Helper()
	for {
		w.mu.Lock()
		more, there := w.more, slices.Contains(w.said, want)
		w.mu.Unlock()
		if there {
			return
		}
		controltest.Soon(t, want, more)
	}
}

func (w *world) prepare(t *testing.T, spec string) load.Load {
	t.Helper()
	l, err := kinds.Decode[load.Load](kinds.Load, "deleteCollection", json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.(*loads.DeleteCollection).Validate(); err != nil {
		t.Fatal(err)
	}
	if err := l.Prepare(t.Context(), w.target()); err != nil {
		t.Fatal(err)
	}
	return l
}

// start runs the load until it ends or cancel is called; done has its error.
func (w *world) start(t *testing.T, l load.Load) (done <-chan error, cancel func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	out := make(chan error, 1)
	go func() { out <- l.Run(ctx, w.target(), w.w) }()
	return out, cancel
}

// ends waits for a load that was started.
func ends(t *testing.T, done <-chan error) {
	t.Helper()
	if err := controltest.Soon(t, "the load's end", done); err != nil {
		t.Fatal(err)
	}
}

// wants fails unless this is told next.
func (w *world) wants(t *testing.T, want string) {
	t.Helper()
	if got := controltest.Soon(t, want, w.told); got != want {
		t.Fatalf("told %q, want %q; events:\n%s", got, want, w.events())
	}
}

// silent fails if anything was told.
func (w *world) silent(t *testing.T, when string) {
	t.Helper()
	select {
	case got := <-w.told:
		t.Fatalf("%s: told %q", when, got)
	default:
	}
}

// left are the names of a namespace's ConfigMaps, in order.
func (w *world) left(t *testing.T, namespace string) (names []string) {
	t.Helper()
	list, err := w.client.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, cm := range list.Items {
		names = append(names, cm.Name)
	}
	return names
}

// remove deletes the first items that are there, one by one.
func (w *world) remove(t *testing.T, namespace string, n int) {
	t.Helper()
	for _, name := range w.left(t, namespace)[:n] {
		if err := w.client.CoreV1().ConfigMaps(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// recorded reads the calls and their summary, each of which must be there once.
func (w *world) recorded(t *testing.T) (calls []bundle.Call, sum bundle.Load, of bundle.Artifact) {
	t.Helper()
	for kind, read := range map[bundle.Kind]func(*bufio.Scanner){
		bundle.Calls: func(lines *bufio.Scanner) {
			for lines.Scan() {
				var c bundle.Call
				if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
					t.Fatal(err)
				}
				calls = append(calls, c)
			}
		},
		bundle.LoadSummary: func(lines *bufio.Scanner) {
			var text strings.Builder
			for lines.Scan() {
				text.WriteString(lines.Text())
			}
			if err := json.Unmarshal([]byte(text.String()), &sum); err != nil {
				t.Fatal(err)
			}
		},
	} {
		found := w.w.View().Artifacts(bundle.Query{Kind: kind, Arm: "vulnerable"})
		if len(found) != 1 {
			t.Fatalf("there are %d artifacts %s: %+v", len(found), kind, found)
		}
		r, err := w.w.View().Open(found[0])
		if err != nil {
			t.Fatal(err)
		}
		read(bufio.NewScanner(r))
		r.Close()
		if kind == bundle.Calls {
			of = found[0]
		}
	}
	return calls, sum, of
}

package watch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/watch"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// controller serves profiles and metrics below a path, as a manager does. Its process is told by when it started.
type controller struct {
	*httptest.Server
	started atomic.Int64 // in seconds; 0 for a program whose metrics don't tell
	dead    atomic.Bool
}

func newController(t *testing.T, below string) *controller {
	c := &controller{}
	c.started.Store(1_700_000_000)
	mux := http.NewServeMux()
	mux.HandleFunc(below+"/debug/pprof/{profile}", func(w http.ResponseWriter, r *http.Request) {
		pprof.Handler(r.PathValue("profile")).ServeHTTP(w, r)
	})
	mux.HandleFunc(below+"/metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE up gauge\nup 1\n")
		if at := c.started.Load(); at > 0 {
			fmt.Fprintf(w, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", at)
		}
	})
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.dead.Load() {
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *controller) options() watch.Options {
	return watch.Options{Subject: watch.At(watch.Endpoint{Profiles: c.URL, Metrics: c.URL + "/metrics"}),
		Checks: []watch.Check{watch.NothingStuck()}}
}

// soon are options of a watch that is to fail, and not to wait for long.
func (c *controller) soon() watch.Options {
	o := c.options()
	o.Settle = time.Second
	return o
}

// A controller that restarted has lost what it leaked, and one that doesn't answer shows nothing: neither passes.
func TestAnEndpoint(t *testing.T) {
	t.Run("well", func(t *testing.T) {
		c := newController(t, "")
		if err := started(t, c.options()).Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("restarted", func(t *testing.T) {
		c := newController(t, "")
		w := started(t, c.soon())
		c.started.Add(60)
		o := found(t, w.Stop(t.Context()), "oneProcess")
		if o.Met != check.False || !strings.Contains(o.Seen, "the process was not the same any more") {
			t.Errorf("it is %s: %s", o.Met, o.Seen)
		}
	})
	t.Run("dead", func(t *testing.T) {
		c := newController(t, "")
		w := started(t, c.soon())
		c.dead.Store(true)
		f := found(t, w.Stop(t.Context()), "nothingStuck")
		if f.Met != check.Unknown || f.Code != check.TooFew || !strings.Contains(strings.Join(f.Differs, " "), "503") {
			t.Errorf("it is %s (%s): %s; %q", f.Met, f.Code, f.Seen, f.Differs)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		c := newController(t, "")
		c.started.Store(0)
		_, err := watch.Start(t.Context(), quick(t, c.options()))
		if want := "don't tell when the process started: want process_start_time_seconds"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want %q in it", err, want)
		}
	})
	t.Run("in a pod", func(t *testing.T) {
		c := newController(t, "/api/v1/namespaces/system/pods/manager:8082/proxy")
		pod, err := watch.Pod(&rest.Config{Host: c.URL}, "system", "manager", 8082, 8082)
		if err != nil {
			t.Fatal(err)
		}
		if err := started(t, watch.Options{Subject: pod, Checks: []watch.Check{watch.NothingStuck()}}).Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

const widgets = "widgets.example.org"

// world is a cluster in memory with a widget, whose status somebody may write.
type world struct{ api *clustertest.API }

func newWorld(t *testing.T) (world, *rest.Config) {
	t.Helper()
	c := clustertest.New("world", cluster.Topology{})
	t.Cleanup(c.Close)
	c.API().AddKind(metav1.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}, "widgets")
	return world{c.API()}, c.RESTConfig()
}

func (w world) write(namespace string, n int) {
	w.api.PutObject(widgets, &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "one", "namespace": namespace}, "status": map[string]any{"n": int64(n)}}})
}

// writeOn writes until the test is over.
func (w world) writeOn(t *testing.T, namespace string) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			w.write(namespace, n)
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
}

// Objects have to stand still once the tests are over, and some have to be there.
func TestQuietWorld(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*testing.T, world)
		met  check.Truth
		seen string
	}{
		{"quiet", func(_ *testing.T, w world) { w.write("mine", 2) }, check.True, ""},
		{"of others", func(t *testing.T, w world) { w.writeOn(t, "other") }, check.True, ""},
		{"a loop", func(t *testing.T, w world) { w.writeOn(t, "mine") }, check.False, "until a write to widgets.example.org mine/one"},
		{"nothing left", func(_ *testing.T, w world) { w.api.DropObject(widgets, "mine", "one") }, check.Unknown,
			"there was no object of widgets.example.org left to be written"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, cfg := newWorld(t)
			w.write("mine", 1)
			settle := 30 * time.Second
			if c.met != check.True {
				settle = 5 * time.Second
			}
			one := started(t, watch.Options{Subject: watch.Self(), Config: cfg, Settle: settle, Checks: []watch.Check{
				watch.QuietWorld(watch.Quiet{Resources: []string{widgets}, Namespaces: []string{"mine"}, For: time.Second})}})
			c.do(t, w)
			err := one.Stop(t.Context())
			if c.met == check.True {
				if err != nil {
					t.Error(err)
				}
				return
			}
			f := found(t, err, "quietWorld")
			if f.Met != c.met || !strings.Contains(f.Seen, c.seen) {
				t.Errorf("it is %s: %s; want %s: %s", f.Met, f.Seen, c.met, c.seen)
			}
			if c.met == check.False && !strings.Contains(f.Detail, "status.n: ") {
				t.Errorf("the detail is %q, want what a write changed", f.Detail)
			}
		})
	}
}

// A resource that the API server doesn't have is no quiet one.
func TestNoSuchResource(t *testing.T) {
	_, cfg := newWorld(t)
	w := started(t, watch.Options{Subject: watch.Self(), Config: cfg, Settle: time.Second,
		Checks: []watch.Check{watch.QuietWorld(watch.Quiet{Resources: []string{"gadgets.example.org"}, For: 100 * time.Millisecond})}})
	if f := found(t, w.Stop(t.Context()), "quietWorld"); f.Met != check.Unknown || f.Code != check.NotRecorded {
		t.Errorf("it is %s (%s): %s", f.Met, f.Code, f.Seen)
	}
}

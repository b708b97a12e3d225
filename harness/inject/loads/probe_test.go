package loads_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// probes runs a probe that was prepared, and gives its record.
func (w *world) probes(t *testing.T, ctx context.Context, l load.Load) bundle.ProbeRecord {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx, w.probing(), w.w) }()
	ends(t, done)
	found := w.w.View().Artifacts(bundle.Query{Kind: bundle.WorkProbe, Arm: "vulnerable"})
	if len(found) != 1 {
		t.Fatalf("there are %d records: %+v", len(found), found)
	}
	r, err := w.w.View().Open(found[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var p bundle.ProbeRecord
	if err := json.NewDecoder(r).Decode(&p); err != nil {
		t.Fatal(err)
	}
	if p.Name != "probe" || p.Work == "" || p.Start.After(p.End) {
		t.Errorf("recorded as %+v", p)
	}
	return p
}

// probing is the target of a probe: the cluster's node.
func (w *world) probing() load.Target {
	t := w.target()
	t.Name, t.Nodes = "probe", w.Nodes()
	return t
}

func (w *world) probe(t *testing.T, kind, spec string) load.Load {
	t.Helper()
	l, err := kinds.Decode[load.Load](kinds.Load, kind, json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // what is there already is fine
		if err := l.Prepare(t.Context(), w.probing()); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// steps are those of a record: "1 created", with "?" behind one that was never seen.
func steps(p bundle.ProbeRecord) string {
	var out []string
	for _, s := range p.Steps {
		one := string(rune('0'+s.Try)) + " " + s.Step
		if s.Seen.IsZero() {
			one += "?"
		}
		out = append(out, one)
	}
	return strings.Join(out, ", ")
}

// nothingLeft fails if a pod of the probe is there, or its namespace isn't on its way out.
func (w *world) nothingLeft(t *testing.T) {
	t.Helper()
	list, err := w.client.CoreV1().Pods("relapse-probe-vulnerable").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("pods are left: %+v, %v", list.Items, err)
	}
	ns, err := w.client.CoreV1().Namespaces().Get(t.Context(), "relapse-probe-vulnerable", metav1.GetOptions{})
	if err != nil || ns.DeletionTimestamp == nil {
		t.Errorf("the namespace stays: %+v, %v", ns, err)
	}
}

// The time limits are long enough for a busy machine to take each step that is expected, and short enough to wait for.
func TestPodProbe(t *testing.T) {
	const node = "load-control-plane"
	for _, c := range []struct {
		name  string
		spec  string
		world func(*testing.T, *world)
		ended string
		steps string
		why   string
	}{
		{"a kubelet that works", `{}`, nil, bundle.ProbeDone, "1 created, 1 running, 1 gone", ""},
		{"one that does nothing", `{"timeout":"3s"}`, func(_ *testing.T, w *world) { w.API().IdleKubelet(node, true) },
			bundle.ProbeFailed, "1 created, 1 running?, 2 created, 2 running?", "running: not done within 3s: the pod is Pending"},
		{"one that runs the pod and never ends it", `{"timeout":"4s","tries":1}`, func(t *testing.T, w *world) {
			w.before(http.MethodDelete, func() { w.API().IdleKubelet(node, true) })
		}, bundle.ProbeFailed, "1 created, 1 running, 1 gone?", "gone: not done within 4s: the pod is Running, being deleted, its container started at "},
		{"one that lost the events of one pod", `{"timeout":"4s"}`, func(t *testing.T, w *world) {
			w.API().IdleKubelet(node, true)
			n := 0
			w.before(http.MethodPost, func() {
				if n++; n == 2 {
					w.API().IdleKubelet(node, false)
				}
			})
		}, bundle.ProbeDone, "1 created, 1 running?, 2 created, 2 running, 2 gone", ""},
		{"an API server that takes no pods", `{"timeout":"3s"}`, func(t *testing.T, w *world) {
			w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost {
					status(500, metav1.StatusReasonInternalError, "etcd is slow")(rw, r)
				}
				return r.Method == http.MethodPost
			})
		}, bundle.ProbeUnasked, "1 created?", "created: etcd is slow"},
		{"an API server that shows no pods", `{"timeout":"3s"}`, func(t *testing.T, w *world) {
			w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet && path.Base(r.URL.Path) == "pods" && r.UserAgent() == "relapse/probe" {
					status(500, metav1.StatusReasonInternalError, "etcd is slow")(rw, r)
					return true
				}
				return false
			})
		}, bundle.ProbeUnasked, "1 created, 1 running?", "running: looking at the pod at the end: etcd is slow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			l := w.probe(t, "podProbe", c.spec)
			if c.world != nil {
				c.world(t, w)
			}
			p := w.probes(t, t.Context(), l)
			if p.Ended != c.ended || steps(p) != c.steps || !strings.HasPrefix(p.Why, c.why) || c.why == "" && p.Why != "" {
				t.Errorf("it ended %q with %s: %s", p.Ended, steps(p), p.Why)
			}
			if p.Work != "a pod on "+node || !strings.HasSuffix(p.Steps[0].What, "image image.invalid/pause:1") {
				t.Errorf("%+v", p)
			}
			w.API().Intercept(nil)
			w.nothingLeft(t)
			if want := "probe: " + c.ended + " after "; !strings.Contains(w.events(), want) {
				t.Errorf("no event %q in:\n%s", want, w.events())
			}
		})
	}
}

// before has f called before each request of a method that the probe makes about a pod, dry runs aside.
func (w *world) before(method string, f func()) {
	w.API().Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == method && strings.Contains(r.URL.Path, "/pods") && r.UserAgent() == "relapse/probe" {
			f()
		}
		return false
	})
}

// The end of the phase cuts a probe off, which says nothing of the kubelet, and leaves nothing of it.
func TestPodProbeIsCutOff(t *testing.T) {
	w := newWorld(t)
	l := w.probe(t, "podProbe", `{}`)
	w.API().IdleKubelet("load-control-plane", true)
	ctx, cancel := context.WithCancel(t.Context())
	w.API().Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("watch") {
			cancel()
		}
		return false
	})
	if p := w.probes(t, ctx, l); p.Ended != bundle.ProbeCut || steps(p) != "1 created, 1 running?" || !strings.Contains(p.Why, "context canceled") {
		t.Errorf("it ended %q with %s: %s", p.Ended, steps(p), p.Why)
	}
	w.API().Intercept(nil)
	w.nothingLeft(t)
}

// What would keep the pod from running on any kubelet is found before the steady state.
func TestPodProbeIsRefusedBeforehand(t *testing.T) {
	w := newWorld(t)
	l, err := kinds.Decode[load.Load](kinds.Load, "podProbe", nil)
	if err != nil {
		t.Fatal(err)
	}
	node, err := w.client.CoreV1().Nodes().Get(t.Context(), "load-control-plane", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"image.invalid/agent:1"}}}
	w.API().PutNode(node)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := l.Prepare(ctx, w.probing()); err == nil || !strings.Contains(err.Error(), "preparing the pod of load probe: node load-control-plane lists no pause image among its 1 images (want spec.image)") {
		t.Errorf("without an image: %v", err)
	}
	w.API().AddNamespace("relapse-probe-fixed", nil)
	foreign := w.probing()
	foreign.Arm = "fixed"
	if err := l.Prepare(t.Context(), foreign); err == nil || !strings.Contains(err.Error(), "making namespace relapse-probe-fixed: it is there and was not made by this load") {
		t.Errorf("in a namespace of somebody else: %v", err)
	}
	nowhere := w.probing()
	nowhere.Nodes = nil
	if err := l.Prepare(t.Context(), nowhere); err == nil || err.Error() != "load probe: its target chooses 0 nodes in vulnerable (want one)" {
		t.Errorf("without a node: %v", err)
	}
}

func TestCollectionProbe(t *testing.T) {
	for _, c := range []struct {
		name  string
		world func(*world)
		ended string
		steps string
		why   string
		left  int
	}{
		{"an API server that works", nil, bundle.ProbeDone, "1 created, 1 deleted, 1 emptied", "", 0},
		{"one that answers 200 and leaves the objects", func(w *world) {
			w.answers(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusOK) })
		}, bundle.ProbeFailed, "1 created, 1 deleted, 1 emptied?", "emptied: not done: 7 of 7 ConfigMaps are left: probe-00000, probe-00001, probe-00002", 7},
		{"one that gives up", func(w *world) { w.answers(timeout) }, bundle.ProbeFailed, "1 created, 1 deleted?",
			"deleted: not done: request did not complete within requested timeout", 7},
		{"one that says that it began", func(w *world) {
			w.answers(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusAccepted) })
		}, bundle.ProbeFailed, "1 created, 1 deleted?", "deleted: not done: answered 202 (want 200)", 7},
		{"one that doesn't answer", func(w *world) {
			w.answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}, bundle.ProbeFailed, "1 created, 1 deleted?", "deleted: not done: ", 7},
		{"one that takes nothing", func(w *world) {
			w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost {
					timeout(rw, r)
				}
				return r.Method == http.MethodPost
			})
		}, bundle.ProbeFailed, "1 created?", "created: not done: request did not complete within requested timeout", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			l := w.probe(t, "collectionProbe", `{"items":7,"timeout":"6s"}`)
			if c.world != nil {
				c.world(w)
			}
			p := w.probes(t, t.Context(), l)
			if p.Ended != c.ended || steps(p) != c.steps || !strings.HasPrefix(p.Why, c.why) || c.why == "" && p.Why != "" {
				t.Errorf("it ended %q with %s: %s", p.Ended, steps(p), p.Why)
			}
			w.API().Intercept(nil)
			left := slices.DeleteFunc(w.left(t, "relapse-probe"), func(name string) bool { return !strings.HasPrefix(name, "probe-") })
			if len(left) != c.left {
				t.Errorf("%d ConfigMaps are left: %q", len(left), left)
			}
			if _, err := w.client.CoreV1().Namespaces().Get(t.Context(), "relapse-probe", metav1.GetOptions{}); apierrors.IsNotFound(err) {
				t.Error("the namespace was deleted, which has the namespace controller delete collections")
			}
		})
	}
}

// answers answers the probe's call in the API server's place.
func (w *world) answers(f func(http.ResponseWriter, *http.Request)) {
	w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		ours := r.Method == http.MethodDelete && r.UserAgent() == "relapse/probe"
		if ours {
			f(rw, r)
		}
		return ours
	})
}

func TestProbeSpecs(t *testing.T) {
	for _, c := range []struct{ kind, spec, says string }{
		{"podProbe", `{}`, "a pod must run within 55s, and be gone within 55s of its deletion, in one of 2 tries"},
		{"podProbe", `{"timeout":"0s"}`, "timeout is 0s (want above 0)"},
		{"podProbe", `{"tries":0}`, "tries is 0 (want at least 1)"},
		{"collectionProbe", `{}`, "one DELETECOLLECTION of 50 ConfigMaps must answer 200 and leave none, each step within 1m0s"},
		{"collectionProbe", `{"items":0}`, "items is 0 (want 1 to 100000)"},
		{"collectionProbe", `{"timeout":"-1s"}`, "timeout is -1s (want above 0)"},
	} {
		l, err := kinds.Decode[load.Load](kinds.Load, c.kind, json.RawMessage(c.spec))
		if err != nil {
			t.Fatal(err)
		}
		says := l.(interface{ Describe() string }).Describe()
		if err := l.(interface{ Validate() error }).Validate(); err != nil {
			says = err.Error()
		}
		if says != c.says {
			t.Errorf("%s %s\ngot  %s\nwant %s", c.kind, c.spec, says, c.says)
		}
	}
}

// A step may make objects and wait for each of them, with one time limit.
func TestProbeOfWhatItMakes(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME"},"spec":{"containers":[{"name":"c","image":"pause"}]}}`
	spec := `{"work":"pods are bound and go","steps":[{"name":"bound","within":"WITHIN","expression":"has(object.spec.nodeName)","manifests":[` +
		strings.Replace(pod, "NAME", "a", 1) + "," + strings.Replace(pod, "NAME", "b", 1) + `]},` +
		`{"name":"gone","within":"20s","verb":"delete","gone":true,"manifests":[` + strings.Replace(pod, "NAME", "a", 1) + `]}]}`
	for _, c := range []struct {
		name, within      string
		world             func(*world)
		ended, steps, why string
	}{
		{"a scheduler that works", "20s", func(*world) {}, bundle.ProbeDone, "1 bound, 1 gone", ""},
		{"one that is idle", "2s", func(w *world) { w.API().IdleScheduler(true) }, bundle.ProbeFailed, "1 bound?", "bound: not done within 2s: has(object.spec.nodeName) of Pod a: false"},
		{"an API server that takes no pod", "2s", func(w *world) {
			w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost {
					rw.WriteHeader(http.StatusInternalServerError)
				}
				return r.Method == http.MethodPost
			})
		}, bundle.ProbeUnasked, "1 bound?", "bound: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			l := w.probe(t, "probe", strings.Replace(spec, "WITHIN", c.within, 1))
			c.world(w)
			p := w.probes(t, t.Context(), l)
			if p.Ended != c.ended || steps(p) != c.steps || !strings.HasPrefix(p.Why, c.why) || c.why == "" && p.Why != "" {
				t.Errorf("it ended %q with %s: %s", p.Ended, steps(p), p.Why)
			}
		})
	}
}

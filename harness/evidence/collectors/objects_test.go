package collectors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

const bundles = "bundledeployments.fleet.cattle.io"

var kindOf = metav1.GroupVersionKind{Group: "fleet.cattle.io", Version: "v1alpha1", Kind: "BundleDeployment"}

// recording is an objects collector at work on a cluster in memory.
type recording struct {
	t    *testing.T
	c    *clustertest.Cluster
	w    *bundle.Writer
	stop func() error
}

// recorded starts a collector; the cluster has the kind if there is a plural for it.
func recorded(t *testing.T, spec, plural string) *recording {
	t.Helper()
	r := &recording{t: t, c: clustertest.New("objects",
		cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "worker", Role: cluster.Worker}}})}
	t.Cleanup(r.c.Close)
	if plural != "" {
		r.c.API().AddKind(kindOf, plural)
	}
	var err error
	if r.w, err = bundle.Create(filepath.Join(t.TempDir(), "001")); err != nil {
		t.Fatal(err)
	}
	k, err := kinds.Decode[capture.Collector](kinds.Collector, "objects", json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	target := capture.Target{Arm: "fixed", Cluster: r.c, Namespace: "own"}
	if k.(capture.ClusterWide).ClusterWide() {
		target.Arm, target.Namespace = bundle.Shared, ""
	}
	ctx, cancel := context.WithCancel(t.Context())
	done, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		done <- k.(capture.Streamer).Stream(ctx, target, r.w)
	}()
	r.stop = func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(30 * time.Second):
			t.Fatal("the stream does not end")
			return nil
		}
	}
	t.Cleanup(func() { // nothing may write any more when the test's folder is removed
		cancel()
		<-over
	})
	return r
}

// put writes an object with a number in it.
func (r *recording) put(namespace, name string, n int) {
	o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"n": int64(n)}}}
	o.SetNamespace(namespace)
	o.SetName(name)
	r.c.API().PutObject(bundles, o)
}

func (r *recording) artifact() bundle.Artifact {
	r.t.Helper()
	all := r.w.View().Artifacts(bundle.Query{Kind: bundle.Objects})
	if len(all) != 1 {
		r.t.Fatalf("there are %d artifacts: %+v", len(all), all)
	}
	return all[0]
}

// says is the record in short: type, name and the object's number.
func (r *recording) says() []string {
	r.t.Helper()
	if len(r.w.View().Artifacts(bundle.Query{})) == 0 {
		return nil
	}
	in, err := r.w.View().Open(r.artifact())
	if err != nil {
		r.t.Fatal(err)
	}
	defer in.Close()
	var out []string
	for v, err := range churn.Read(in) {
		if err != nil {
			r.t.Fatal(err)
		}
		var o struct{ Status struct{ N *int } }
		if v.Object != nil && json.Unmarshal(v.Object, &o) != nil {
			r.t.Fatalf("the object is %s", v.Object)
		}
		said := strings.TrimSpace(v.Type + " " + v.Name)
		if o.Status.N != nil {
			said += fmt.Sprint(" ", *o.Status.N)
		}
		out = append(out, said)
	}
	return out
}

// until waits until ok holds.
func (r *recording) until(what string, ok func() bool) {
	r.t.Helper()
	controltest.Eventually(r.t, what, func() string {
		if ok() {
			return ""
		}
		return fmt.Sprintf("it says %q", r.says())
	})
}

func (r *recording) untilSays(want ...string) {
	r.t.Helper()
	r.until(fmt.Sprintf("the record %q", want), func() bool { return slices.Equal(r.says(), want) })
}

// proven waits for a proof that is of now.
func (r *recording) proven() {
	r.t.Helper()
	from := time.Now()
	r.until("a proof", func() bool {
		all := r.w.View().Artifacts(bundle.Query{Kind: bundle.Objects})
		return len(all) == 1 && all[0].Coverage.Last.After(from)
	})
}

func TestObjectsOfAnArm(t *testing.T) {
	r := recorded(t, `{"resources":["`+bundles+`"],"interval":"50ms"}`, "bundledeployments")
	r.put("own", "a", 1)
	r.proven()
	began := r.says()
	r.put("other", "b", 1)
	r.put("own", "a", 2)
	r.put("own", "a", 3)
	r.c.API().DropObject(bundles, "own", "a")
	r.untilSays(append(began, "MODIFIED a 2", "MODIFIED a 3", "DELETED a 3")...)
	r.proven()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if a := r.artifact(); len(a.Coverage.Gaps) > 0 || a.Arm != "fixed" || !strings.HasSuffix(a.Path, ".jsonl.zst") {
		t.Errorf("the artifact is %+v, covering %+v", a, a.Coverage)
	}
	in, err := r.w.View().Open(r.artifact())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	b, err := io.ReadAll(in)
	if err != nil || !strings.Contains(string(b), `"resource":"`+bundles+`","namespace":"own","name":"a","uid":"uid-`) {
		t.Errorf("it holds %s, %v", b, err)
	}
}

// A resource that isn't there is waited for, and until then nothing is covered.
func TestObjectsOfALaterKind(t *testing.T) {
	r := recorded(t, `{"resources":["`+bundles+`"],"interval":"50ms"}`, "")
	var asked atomic.Int32
	r.c.API().Intercept(func(_ http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path == "/apis/fleet.cattle.io" {
			asked.Add(1)
		}
		return false
	})
	r.until("a second question", func() bool { return asked.Load() >= 2 })
	if a := r.artifact(); a.Coverage != nil && !a.Coverage.First.IsZero() {
		t.Errorf("it covers %+v without the resource", a.Coverage)
	}
	r.c.API().AddKind(kindOf, "bundledeployments")
	added := time.Now()
	r.put("own", "a", 1)
	r.proven()
	if got := r.says(); !slices.Contains(got, "LISTED a 1") && !slices.Contains(got, "ADDED a 1") {
		t.Errorf("it says %q", got)
	}
	if a := r.artifact(); a.Coverage.First.Before(added) || len(a.Coverage.Gaps) > 0 {
		t.Errorf("it covers %+v, and the resource came at %s", a.Coverage, added)
	}
}

// A watch that ends goes on where it was: nothing is lost. One that may not go on is a new list, a mark, and a gap.
func TestObjectsAfterABrokenWatch(t *testing.T) {
	r := recorded(t, `{"resources":["`+bundles+`"],"interval":"50ms"}`, "bundledeployments")
	r.put("own", "a", 1)
	r.proven()
	began := r.says()
	var mode atomic.Value
	mode.Store("end")
	// From now on watches hang until the mode is another, and then do as it says.
	r.c.API().Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if req.URL.Query().Get("watch") == "" || mode.Load() == "" {
			return false
		}
		if mode.Load() == "gone" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGone)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status: "Failure", Code: 410,
				Reason: metav1.StatusReasonExpired, Message: "too old resource version"})
			mode.Store("")
			return true
		}
		w.WriteHeader(http.StatusOK)
		return true
	})
	r.c.API().BreakWatches()
	r.put("own", "a", 2)
	r.put("own", "a", 3)
	mode.Store("")
	r.untilSays(append(began, "MODIFIED a 2", "MODIFIED a 3")...)
	r.proven()
	if gaps := r.artifact().Coverage.Gaps; len(gaps) > 0 {
		t.Errorf("the gaps are %+v, and nothing was lost", gaps)
	}
	mode.Store("gone")
	r.c.API().BreakWatches()
	r.until("a new list", func() bool { return slices.Contains(r.says(), "LOST") })
	r.proven()
	if got := r.says()[len(began)+2:]; !slices.Equal(got, []string{"LOST", "LISTED a 3", "SYNCED"}) {
		t.Errorf("then it says %q", got)
	}
	gaps := r.artifact().Coverage.Gaps
	if len(gaps) != 1 || gaps[0].Reason != bundles+" had to be listed anew: watching: too old resource version" ||
		!gaps[0].To.After(gaps[0].From) {
		t.Errorf("the gaps are %+v", gaps)
	}
}

// A watch that is open and says nothing proves nothing: it is found out, and begun anew.
func TestObjectsOfADeadWatch(t *testing.T) {
	r := recorded(t, `{"resources":["`+bundles+`"],"interval":"50ms"}`, "bundledeployments")
	r.put("own", "a", 1)
	r.proven()
	began := r.says()
	var hung atomic.Int32
	r.c.API().Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if req.URL.Query().Get("watch") == "" || hung.Add(1) > 1 {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
		return true
	})
	r.c.API().BreakWatches()
	r.until("a watch that hangs", func() bool { return hung.Load() == 1 })
	r.put("own", "a", 2)
	wrote := time.Now()
	r.untilSays(append(began, "MODIFIED a 2")...)
	if a := r.artifact(); time.Since(wrote) < 5*time.Second {
		t.Errorf("after %s it says %q: the watch did not hang; it covers %+v", time.Since(wrote), r.says(), a.Coverage)
	}
	r.proven()
}

func TestSharedObjects(t *testing.T) {
	r := recorded(t, `{"resources":["nodes","`+bundles+
		`"],"shared":true,"namespaces":["own"],"namespaceSelector":"arm","interval":"50ms"}`, "bundledeployments")
	r.c.API().AddNamespace("labelled", map[string]string{"arm": "fixed"})
	r.c.API().AddNamespace("elsewhere", nil)
	r.proven()
	for _, ns := range []string{"elsewhere", "labelled", "own"} {
		r.put(ns, "in-"+ns, 1)
	}
	r.c.API().SetCondition("objects-worker", corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown})
	r.until("all of it", func() bool {
		got := r.says()
		return slices.Contains(got, "MODIFIED objects-worker") && slices.Contains(got, "ADDED in-own 1") &&
			slices.Contains(got, "ADDED in-labelled 1")
	})
	r.proven()
	if got := r.says(); slices.Contains(got, "ADDED in-elsewhere 1") {
		t.Errorf("it says %q", got)
	}
	if a := r.artifact(); a.Arm != bundle.Shared {
		t.Errorf("it is of arm %q", a.Arm)
	}
}

func TestChosenObjects(t *testing.T) {
	for _, tc := range []struct{ kind, spec, want string }{
		{"objects", `{}`, "resources is empty (want at least one)"},
		{"objects", `{"resources":["secrets"]}`, "resources: secrets are not recorded"},
		{"objects", `{"resources":["pods","pods"]}`, "resources: pods is there twice"},
		{"objects", `{"resources":["Pod","apps/v1"]}`,
			"resources: \"Pod\" is no resource (want its plural name and group: pods, deployments.apps)\n" +
				`resources: "apps/v1" is no resource (want its plural name and group: pods, deployments.apps)`},
		{"objects", `{"resources":["pods"],"namespaces":["a"]}`,
			"namespaces are chosen without shared (want shared: true; without it, it is the arm's)"},
		{"objects", `{"resources":["pods"],"interval":"0s"}`, "interval is 0s (want above 0)"},
		{"objects", `{"resources":["pods"]}`, "arm fixed has no namespace of its own (want shared: true, or placement workload)"},
		{"objectList", `{"resources":["pods"],"shared":true,"where":"dead"}`,
			`where is "dead" (want terminating, or nothing)`},
	} {
		c, err := kinds.Decode[capture.Collector](kinds.Collector, tc.kind, json.RawMessage(tc.spec))
		if err != nil {
			t.Fatal(err)
		}
		w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
		if err != nil {
			t.Fatal(err)
		}
		target := capture.Target{Arm: "fixed"}
		if st, ok := c.(capture.Streamer); ok {
			err = st.Stream(t.Context(), target, w)
		} else {
			err = c.(capture.Snapshotter).Snapshot(t.Context(), target, w)
		}
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s %s: got %v, want %s", tc.kind, tc.spec, err, tc.want)
		}
		if all := w.View().Artifacts(bundle.Query{}); len(all) != 1 || all[0].Error != tc.want {
			t.Errorf("%s %s left %+v", tc.kind, tc.spec, all)
		}
	}
}

func TestObjectList(t *testing.T) {
	r := recorded(t, `{"resources":["`+bundles+`"],"interval":"50ms"}`, "bundledeployments")
	r.put("own", "stays", 1)
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetNamespace("own")
	o.SetName("goes")
	o.SetDeletionTimestamp(&metav1.Time{Time: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)})
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubelet"}})
	r.c.API().PutObject(bundles, o)
	c, err := kinds.Decode[capture.Collector](kinds.Collector, "objectList",
		json.RawMessage(`{"resources":["`+bundles+`"],"where":"terminating"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.(capture.Snapshotter).Snapshot(t.Context(), capture.Target{Arm: "fixed", Cluster: r.c, Namespace: "own"},
		r.w); err != nil {
		t.Fatal(err)
	}
	in, err := r.w.View().Open(r.w.View().Artifacts(bundle.Query{Kind: bundle.ObjectList})[0])
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	b, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	if d := cmp.Diff([]string{"---", "# 1 of 2 " + bundles, "apiVersion: fleet.cattle.io/v1alpha1", "items:"},
		lines[:4]); d != "" {
		t.Errorf("it begins (-want +got):\n%s", d)
	}
	for part, want := range map[string]bool{"name: goes": true, `deletionTimestamp: "2026-03-01T10:00:00Z"`: true,
		"stays": false, "managedFields": false} {
		if strings.Contains(string(b), part) != want {
			t.Errorf("%q in it: %t, want %t\n%s", part, !want, want, b)
		}
	}
}

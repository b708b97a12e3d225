package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// quick is a power cut whose waits are short: the fake's Leases run out after a second.
const quick = `{"stale":"10s","ready":"10s"}`

// powered is a cluster with two workers, and a target of some of its nodes.
func powered(t *testing.T, nodes ...string) (*clustertest.Cluster, fault.Target, func() string) {
	t.Helper()
	c := clustertest.New("relapse-x", cluster.Topology{Nodes: []cluster.NodeSpec{
		{Name: "control-plane", Role: cluster.ControlPlane}, {Name: "worker", Role: cluster.Worker}, {Name: "worker2", Role: cluster.Worker},
	}})
	t.Cleanup(c.Close)
	var mu sync.Mutex
	var said []string
	target := fault.Target{Run: "run", Name: "off", Cluster: c, Events: event.NewStream(event.SinkFunc(func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, fmt.Sprint(e.Type, " ", e.Fields["node"], " ", e.Message))
	}))}
	for _, n := range nodes {
		target.Nodes = append(target.Nodes, c.Node(n))
	}
	return c, target, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(said, "\n")
	}
}

// runs is a pod that is ready, of a container that began at a time.
func runs(name, node string, began time.Time) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(began)}}}},
		},
	}
}

func TestPowerOffAndBack(t *testing.T) {
	c, target, said := powered(t, "worker")
	c.API().PutPod(runs("a", "relapse-x-worker", time.Now()))
	f := newFault(t, "nodePowerOff", quick)
	began := time.Now()
	if err := f.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < clustertest.LeaseSeconds*time.Second {
		t.Errorf("it was injected after %s, and its Lease is good for %ds", took, clustertest.LeaseSeconds)
	}
	if !strings.Contains(said(), event.FaultSeen+" relapse-x-worker off: the node is off: its Lease was renewed ") || !strings.HasSuffix(said(), "and is good for 1s") {
		t.Errorf("it said %q", said())
	}
	if err := newFault(t, "nodePowerOff", quick).Recover(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said(), event.FaultGone+" relapse-x-worker off: the node runs since ") || !strings.HasSuffix(said(), "is Ready, and its 1 pods are ready") {
		t.Errorf("it said %q", said())
	}
	if c.Node("worker").Offs() != 1 || c.Node("worker2").Offs() != 0 {
		t.Error("the other node was switched off, too")
	}
}

// With the only control plane it is the API itself that shows the loss.
func TestPowerOffOfTheControlPlane(t *testing.T) {
	_, target, said := powered(t, "control-plane", "worker2")
	f := newFault(t, "nodePowerOff", quick)
	if err := f.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if got := said(); strings.Count(got, "the node is off: the API server refused 3 times: ") != 2 {
		t.Errorf("it said %q", got)
	}
	if err := f.Recover(t.Context(), target); err != nil {
		t.Fatal(err)
	}
}

// A loss that nobody sees is not injected, and the error says what was seen.
func TestPowerOffNotSeen(t *testing.T) {
	answer := func(code int, body string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/leases/") {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprint(w, strings.ReplaceAll(body, "NOW", time.Now().UTC().Format(metav1.RFC3339Micro)))
			return true
		}
	}
	lease := func(spec string) string {
		return `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"relapse-x-worker"},"spec":` + spec + `}`
	}
	for _, tc := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request) bool
		want   string
	}{
		{"somebody renews the Lease", answer(200, lease(`{"renewTime":"NOW","leaseDurationSeconds":60}`)), "s ago and is good for 1m0s"},
		{"a Lease that is good for long", answer(200, lease(`{"renewTime":"2026-01-01T00:00:00.000000Z","leaseDurationSeconds":2000000000}`)), "and is good for 555555h33m20s"},
		{"a Lease without a time", answer(200, lease(`{"leaseDurationSeconds":1}`)), "its Lease says no time or no duration"},
		{"no Lease", answer(404, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"none"}`), "its Lease can't be read: none"},
		{"an API that fails", answer(500, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"etcd"}`), "its Lease can't be read: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, target, said := powered(t, "worker")
			c.API().Intercept(tc.answer)
			err := newFault(t, "nodePowerOff", `{"stale":"4s"}`).Inject(t.Context(), target)
			want := "off: relapse-x-worker is off and its loss is not seen: not within 4s; last seen: "
			if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), tc.want) || said() != "" {
				t.Errorf("got  %v\nwant %s%s\nit said %q", err, want, tc.want, said())
			}
		})
	}
	t.Run("a control plane whose API answers", func(t *testing.T) {
		t.Parallel()
		c, target, _ := powered(t, "control-plane")
		other, _, _ := powered(t)
		target.Cluster = elsewhere{c, other} // its API is served by something that stays
		err := newFault(t, "nodePowerOff", `{"stale":"4s"}`).Inject(t.Context(), target)
		if want := "not within 4s; last seen: the API server answers"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

// What was reported before a node's start says nothing about the node that runs.
func TestPowerNotBack(t *testing.T) {
	const node = "relapse-x-worker"
	long := time.Now().Add(-time.Hour)
	for _, tc := range []struct {
		name string
		set  func(*clustertest.API)
		want string // "" if it is back
	}{
		{"no pods at all", func(*clustertest.API) {}, ""},
		{"Ready, as was reported before", func(a *clustertest.API) {
			a.SetCondition(node, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(long)})
		}, "Ready is True as of " + long.UTC().Format("15:04:05") + ", and it started at "},
		{"not Ready", func(a *clustertest.API) {
			a.SetCondition(node, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "no network"})
		}, "Ready is False (KubeletNotReady: no network)"},
		{"a pod as it was before", func(a *clustertest.API) { a.PutPod(runs("a", node, long)) },
			"1 of its 1 pods are not back: default/a has a container main that is only known from before the node's start"},
		{"a pod that isn't ready", func(a *clustertest.API) {
			p := runs("a", node, time.Now())
			p.Status.Conditions = nil
			a.PutPod(p)
			a.PutPod(runs("b", node, time.Now()))
		}, "1 of its 2 pods are not back: default/a is not ready"},
		{"a pod that waits", func(a *clustertest.API) {
			p := runs("a", node, time.Now())
			p.Status.Phase = corev1.PodPending
			a.PutPod(p)
		}, "default/a is Pending"},
		{"a pod whose container ended", func(a *clustertest.API) {
			p := runs("a", node, time.Now())
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
			a.PutPod(p)
		}, "default/a has a container main that doesn't run"},
		{"a pod of which nothing was reported", func(a *clustertest.API) {
			p := runs("a", node, time.Now())
			p.Status.ContainerStatuses = nil
			a.PutPod(p)
		}, "default/a has no container status"},
		{"pods on their way out, done, or elsewhere", func(a *clustertest.API) {
			leaving, done, elsewhere := runs("a", node, long), runs("b", node, long), runs("c", "relapse-x-worker2", long)
			leaving.DeletionTimestamp, done.Status.Phase = new(metav1.Now()), corev1.PodSucceeded
			a.PutPod(leaving)
			a.PutPod(done)
			a.PutPod(elsewhere)
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, target, _ := powered(t, "worker")
			tc.set(c.API())
			spec := `{"ready":"3s"}`
			if tc.want == "" { // it returns as soon as it has seen it, however slow this machine is
				spec = `{"ready":"1m"}`
			}
			err := newFault(t, "nodePowerOff", spec).Recover(t.Context(), target)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), "off: relapse-x-worker is on and not back: not within 3s; last seen: ") ||
				!strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestPowerOffRefuses(t *testing.T) {
	_, target, _ := powered(t)
	target.Nodes = []cluster.Node{powerless{}}
	f := newFault(t, "nodePowerOff", quick)
	for what, act := range map[string]func(context.Context, fault.Target) error{"Inject": f.Inject, "Recover": f.Recover} {
		if err := act(t.Context(), target); err == nil || err.Error() != "node powerless has no power switch" {
			t.Errorf("%s of a node without one: %v", what, err)
		}
	}
	for _, tc := range []struct{ spec, want string }{
		{`{}`, ""}, {quick, ""},
		{`{"stale":"0s"}`, "stale is 0s (want above 0)"},
		{`{"ready":"-1s"}`, "ready is -1s (want above 0)"},
	} {
		f, err := kinds.Decode[fault.Fault](kinds.Fault, "nodePowerOff", json.RawMessage(tc.spec))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.(interface{ Validate() error }).Validate(); tc.want == "" && got != nil || tc.want != "" && fmt.Sprint(got) != tc.want {
			t.Errorf("%s: %v, want %q", tc.spec, got, tc.want)
		}
	}
	if !f.Needs().Power || f.Needs().Exec {
		t.Errorf("it needs %+v", f.Needs())
	}
}

// A wait that is cut off says that it was, and what it saw last.
func TestPowerOffCutOff(t *testing.T) {
	c, target, _ := powered(t, "worker")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	looks := 0
	c.API().Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/leases/") {
			if looks++; looks == 2 {
				cancel()
			}
		}
		return false
	})
	err := newFault(t, "nodePowerOff", quick).Inject(ctx, target)
	if !errors.Is(err, context.Canceled) || !strings.Contains(fmt.Sprint(err), "last seen: its Lease was renewed ") {
		t.Errorf("it ended with %v", err)
	}
}

// elsewhere is a cluster whose API is another's.
type elsewhere struct {
	*clustertest.Cluster
	api *clustertest.Cluster
}

func (e elsewhere) RESTConfig() *rest.Config { return e.api.RESTConfig() }

type powerless struct{ cluster.Node }

func (powerless) Name() string                     { return "powerless" }
func (powerless) Role() string                     { return cluster.Worker }
func (powerless) Arm() string                      { return "" }
func (powerless) Abilities() cluster.NodeAbilities { return cluster.NodeAbilities{} }

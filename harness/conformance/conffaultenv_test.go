package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-relapse/relapse/harness/inject/fault"
)

// faultEnv is how the suite sees a fault without using the fault. inForce tells whether the effect is there. armed
// counts what was ever armed on a node, and lists what still is. setup makes the fault's actions call the nodes'
// hooks, where the actions aren't commands on the nodes. forever says why the fault can't have a time limit.
type faultEnv struct {
	setup   func(*world)
	forever string
	inForce func(*testing.T, *criNode) bool
	armed   func(*testing.T, *criNode) (ever int, armed []string)
}

// grounds are the places where most faults act, by the seam that they need; "power" is the nodes' switch. A fault
// that acts at one of them needs no entry in faultEnvs as long as its effect is one that the place's inForce looks
// for.
var grounds = map[string]faultEnv{
	"cri":   {inForce: func(t *testing.T, n *criNode) bool { return criFlooded(t, n) || criSlow(t, n) }, armed: criArmed},
	"etcd":  {inForce: func(t *testing.T, n *criNode) bool { return etcdSilent(t, n) || etcdSlow(t, n) }, armed: etcdArmed},
	"lbaas": {inForce: lbaasSlow(time.Second), armed: lbaasArmed},
	"power": {setup: hookPower, inForce: powerless, armed: powerArmed, forever: "nothing runs in a node that is off"},
}

// faultEnvs has an entry for each fault that acts elsewhere.
var faultEnvs = map[string]faultEnv{
	"processPause": {
		setup: hookPauses, armed: pauseArmed,
		inForce: func(t *testing.T, n *criNode) bool { _, paused := pauseArmed(t, n); return len(paused) > 0 },
	},
	"csiNodeLoss": {
		setup: hookCSINodes, forever: "nothing in the cluster knows that it is to come back", armed: csiNodeGone,
		inForce: func(t *testing.T, n *criNode) bool { _, gone := csiNodeGone(t, n); return len(gone) > 0 },
	},
	"nodeAddresses": {
		setup: hookAddresses, armed: addressesArmed,
		inForce: func(t *testing.T, n *criNode) bool { _, listed := addressesArmed(t, n); return len(listed) > 0 },
	},
	"hangingWebhook": {setup: hookWebhooks, armed: webhooksArmed, inForce: webhooksHang},
	"podState": {
		setup: hookPods, forever: "the state ends with its pod", armed: podsArmed,
		inForce: func(_ *testing.T, n *criNode) bool { return n.state.Load() },
	},
}

// envOf returns how a fault is seen.
func envOf(t *testing.T, name string, needs fault.Needs) faultEnv {
	t.Helper()
	if env, ok := faultEnvs[name]; ok {
		return env
	}
	ground := strings.Join(needs.Seams, "+")
	if needs.Power {
		ground = "power"
	}
	env, ok := grounds[ground]
	if !ok {
		t.Fatalf("fault %s acts at %q, where the suite can't look, and has no entry in faultEnvs: it is not tested", name, ground)
	}
	return env
}

// least is the latency of the CRI and etcd latency faults in this suite.
const least = 250 * time.Millisecond

// criSlow tells whether calls to the runtime take the latency.
func criSlow(t *testing.T, n *criNode) bool {
	for range 3 { // any call of a loaded machine may be slow; under the delay all are
		began := time.Now()
		if _, err := n.cri.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{}); err != nil {
			t.Fatal(err)
		}
		if time.Since(began) < least {
			return false
		}
	}
	return true
}

// criFlooded tells whether the pods of a flood are listed. It fails the test if only some of them are.
func criFlooded(t *testing.T, n *criNode) bool {
	pods, containers := countReported(t, n)
	if pods != 7 || containers != 21 { // the flood may have been lifted between the two listings, but only once
		pods, containers = countReported(t, n)
	}
	if (pods != 7 || containers != 21) && (pods != 0 || containers != 0) {
		t.Errorf("%d pods and %d containers are reported, want 7 and 21, or none", pods, containers)
	}
	return pods > 0
}

func powerless(t *testing.T, n *criNode) bool {
	_, err := n.Exec(t.Context(), nil, "echo")
	return err != nil
}

// hookPower calls the nodes' hooks before a node is switched, and before its Lease is read, which shows the loss of a
// node.
func hookPower(w *world) {
	for _, n := range w.nodes {
		n.OnPower(func(ctx context.Context, _ bool) error { return n.hooked(ctx, []string{"power", "switch"}) })
	}
	w.API().Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		for _, n := range w.nodes {
			if strings.HasSuffix(r.URL.Path, "/leases/"+n.Name()) && n.hooked(r.Context(), []string{"lease", "probe"}) != nil {
				panic(http.ErrAbortHandler)
			}
		}
		return false
	})
}

// hookPauses calls the nodes' hooks before a kubelet is paused, resumed or looked at.
func hookPauses(w *world) {
	for _, n := range w.nodes {
		n.kubelet = w.Component(n.Name(), "kubelet")
		n.kubelet.OnPause(func(ctx context.Context, what string) error {
			if what == "identity" {
				what = "probe"
			}
			return n.hooked(ctx, []string{"pause", what})
		})
	}
}

// pauseArmed counts how often a node's kubelet was stopped, and lists it while it is.
func pauseArmed(t *testing.T, n *criNode) (ever int, armed []string) {
	t.Helper()
	ever, now := n.kubelet.Pauses()
	if now {
		armed = append(armed, "the kubelet is stopped")
	}
	return ever, armed
}

// hookCSINodes calls the nodes' hooks before a CSINode is read or changed, and counts deletions.
func hookCSINodes(w *world) {
	w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		for _, n := range w.nodes {
			if strings.HasSuffix(r.URL.Path, "/csinodes/"+n.Name()) && r.UserAgent() != tester {
				if err := n.hooked(r.Context(), []string{"csinode", "probe"}); err != nil {
					http.Error(rw, err.Error(), http.StatusInternalServerError)
					return true
				}
				if r.Method == http.MethodDelete {
					n.losses.Add(1)
				}
			}
		}
		return false
	})
	for _, n := range w.nodes {
		n.api = w.RESTConfig()
	}
}

// csiNodeGone counts how often a node's CSINode was deleted, and lists it while it is gone.
func csiNodeGone(t *testing.T, n *criNode) (ever int, gone []string) {
	t.Helper()
	cfg := rest.CopyConfig(n.api)
	cfg.UserAgent = tester
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.StorageV1().CSINodes().Get(t.Context(), n.Name(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		gone = append(gone, err.Error())
	} else if err != nil {
		t.Fatal(err)
	}
	return int(n.losses.Load()), gone
}

// powerArmed counts how often a node was off, and lists the node while it is.
func powerArmed(t *testing.T, n *criNode) (ever int, armed []string) {
	if _, err := n.Booted(t.Context()); err != nil {
		armed = append(armed, err.Error())
	}
	return n.Offs(), armed
}

// criArmed counts the armings of a node's interposer, and lists those that are still armed.
func criArmed(t *testing.T, n *criNode) (ever int, armed []string) {
	t.Helper()
	c, err := n.client().Totals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Arms {
		if r.Armed() {
			armed = append(armed, fmt.Sprintf("%+v", r))
		}
	}
	return len(c.Arms), armed
}

// countReported counts the pods and containers that are only reported. It fails the test if the real ones aren't
// listed.
func countReported(t *testing.T, n *criNode) (pods, containers int) {
	t.Helper()
	p, err := n.cri.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := n.cri.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range p.Items {
		if reported(one.Id) {
			pods++
		}
	}
	for _, one := range c.Containers {
		if reported(one.Id) {
			containers++
		}
	}
	if len(p.Items)-pods != 2 || len(c.Containers)-containers != 2 {
		t.Errorf("%d real pods and %d real containers are listed, want 2 each", len(p.Items)-pods, len(c.Containers)-containers)
	}
	return pods, containers
}

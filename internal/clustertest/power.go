package clustertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// LeaseSeconds is how long a fake node's Lease is valid after a renewal: the least that a Lease can say.
const LeaseSeconds = 1

// OnPower makes PowerOff and PowerOn call f first. If f returns an error, so does the call, and nothing is switched. A
// nil f ends this.
func (n *Node) OnPower(f func(ctx context.Context, on bool) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.power = f
}

// Offs returns how often the node's power was cut.
func (n *Node) Offs() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.offs
}

// PowerOff takes the components down and makes the node NotReady, which a real API server only notices later. With the
// last control plane the API server stops answering.
func (n *Node) PowerOff(ctx context.Context) error {
	if err := n.ask(ctx, false); err != nil {
		return fmt.Errorf("powering off node %s: %w", n.name, err)
	}
	n.mu.Lock()
	was := n.on
	n.on = false
	if was {
		n.ended = time.Now()
		n.offs++
	}
	n.mu.Unlock()
	if was {
		for _, k := range n.components {
			k.stop()
		}
		n.cluster.api.SetCondition(
			n.name,
			corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown,
				Reason: "NodeStatusUnknown"},
		)
		if n.cluster.dark() {
			n.cluster.api.server.CloseClientConnections()
		}
	}
	return nil
}

// PowerOn starts the components as new processes, and restarts the containers of the node's pods.
func (n *Node) PowerOn(ctx context.Context) error {
	if err := n.ask(ctx, true); err != nil {
		return fmt.Errorf("powering on node %s: %w", n.name, err)
	}
	n.mu.Lock()
	was := n.on
	n.on = true
	if !was {
		n.booted = time.Now()
	}
	n.mu.Unlock()
	if !was {
		for _, k := range n.components {
			k.start(false)
		}
		n.cluster.api.restartPods(n.name)
		n.cluster.api.SetCondition(n.name, readyNow())
	}
	return nil
}

func (n *Node) ask(ctx context.Context, on bool) error {
	n.mu.Lock()
	f := n.power
	n.mu.Unlock()
	if err := ctx.Err(); err != nil || f == nil {
		return err
	}
	return f(ctx, on)
}

// Booted returns when the node was last switched on.
func (n *Node) Booted(context.Context) (time.Time, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.on {
		return time.Time{}, fmt.Errorf(
			"asking when node %s was started: %w",
			n.name,
			errors.New("it is off"),
		)
	}
	return n.booted, nil
}

func (n *Node) powered() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.on
}

func readyNow() corev1.NodeCondition {
	return corev1.NodeCondition{
		Type:              corev1.NodeReady,
		Status:            corev1.ConditionTrue,
		Reason:            "KubeletReady",
		LastHeartbeatTime: metav1.Now(),
	}
}

// dark reports whether there are control planes, and all of them are off.
func (c *Cluster) dark() bool {
	planes := slices.DeleteFunc(
		slices.Clone(c.Machines),
		func(n *Node) bool { return n.Role() != cluster.ControlPlane },
	)
	return len(planes) > 0 && !slices.ContainsFunc(planes, (*Node).powered)
}

// leases returns the Leases of all nodes. The Lease of a node that is on was renewed just now, any other when its node
// went off.
func (c *Cluster) leases() []coordinationv1.Lease {
	var out []coordinationv1.Lease
	for _, n := range c.Machines {
		n.mu.Lock()
		renewed := metav1.NewMicroTime(n.ended)
		if n.on {
			renewed = metav1.NowMicro()
		}
		n.mu.Unlock()
		out = append(out, coordinationv1.Lease{
			TypeMeta:   metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"},
			ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: n.name},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.name, RenewTime: &renewed,
				LeaseDurationSeconds: new(int32(LeaseSeconds))},
		})
	}
	return out
}

// PutPod adds or replaces a pod, by its namespace and name.
func (a *API) PutPod(p *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p = p.DeepCopy()
	p.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	a.put("pods", p)
}

// restartPods gives the running containers of a node a new start time.
func (a *API) restartPods(node string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range slices.Clone(a.objects["pods"]) {
		p := o.(*corev1.Pod).DeepCopy()
		if p.Spec.NodeName != node {
			continue
		}
		for j := range p.Status.ContainerStatuses {
			if r := p.Status.ContainerStatuses[j].State.Running; r != nil {
				r.StartedAt = metav1.Now()
			}
		}
		a.put("pods", p)
	}
}

// handleHeartbeats adds the handlers for the nodes' Leases.
func (a *API) handleHeartbeats(mux *http.ServeMux) {
	const path = "/apis/coordination.k8s.io/v1/namespaces/" + corev1.NamespaceNodeLease + "/leases"
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		send(w, coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{Kind: "LeaseList",
			APIVersion: "coordination.k8s.io/v1"},
			Items: a.leases()})
	})
	mux.HandleFunc("GET "+path+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		for _, l := range a.leases() {
			if l.Name == r.PathValue("name") {
				send(w, l)
				return
			}
		}
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound,
			fmt.Sprintf("leases %q not found", r.PathValue("name")))
	})
}

package faults

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "nodePowerOff",
		Doc: "Nodes whose power is cut: nothing is stopped in order or unmounted, and their disks stay.\n\n" +
			"The fault counts as injected once the node is down and its Lease has run out. If too few control planes " +
			"are left for the API, the fault counts as injected once the API server no longer answers. It counts as " +
			"lifted once the node runs, its kubelet has renewed the Lease and reported Ready, and all pods on the " +
			"node are ready, except for finished pods and pods that are being deleted. Only reports from after the " +
			"node's start count. The fault has no time limit: a node that is off stays off until the harness " +
			"recovers or removes it.",
		// The clouds' stops (AWSChaos ec2-stop, GCPChaos node-stop, AzureChaos vm-stop) let the system shut down in
		// order.
		ChaosMesh: "PhysicalMachineChaos (vm)",
		Example: "name: off\nkind: nodePowerOff\ntarget: {mode: one, selector: {nodeSelectors: {relapse.dev/role: " +
			"worker}}}\nspec: {stale: 2m, ready: 3m}\n",
		Tested: `{"stale":"20s","ready":"20s"}`,
		New: func() fault.Fault {
			return &NodePowerOff{Stale: metav1.Duration{Duration: 2 * time.Minute},
				Ready: metav1.Duration{Duration: 3 * time.Minute}}
		},
	})
}

// NodePowerOff cuts the power of nodes.
//
// Other faults carry a time limit into the node, in case the harness dies. Nothing runs in a node that is off, so this
// fault can't. If the harness dies, `relapse clean` removes the node: a cluster is found by its name whether its nodes
// run or not.
type NodePowerOff struct {
	Stale metav1.Duration `json:"stale,omitzero" jsonschema:"how long the loss may take to be seen, above 0; a Lease runs out after 40s unless the kubelet is configured otherwise"`
	Ready metav1.Duration `json:"ready,omitzero" jsonschema:"how long the node and its pods may take to be back; above 0"`
}

// Validate refuses time limits of 0 or less.
func (f *NodePowerOff) Validate() error {
	for _, l := range []struct {
		name  string
		limit time.Duration
	}{{"stale", f.Stale.Duration}, {"ready", f.Ready.Duration}} {
		if l.limit <= 0 {
			return fmt.Errorf("%s is %s (want above 0)", l.name, l.limit)
		}
	}
	return nil
}

// Needs returns what the fault requires: nodes with a power switch.
func (f *NodePowerOff) Needs() fault.Needs { return fault.Needs{Power: true} }

// Inject switches every node off and returns once each loss was observed: the node's Lease ran out and was not
// renewed, or the API itself is gone. It doesn't enforce the target's time limit.
func (f *NodePowerOff) Inject(ctx context.Context, t fault.Target) error {
	client, err := APIClient(t)
	if err != nil {
		return err
	}
	stays := apiStays(t)
	return f.each(ctx, f.Stale.Duration, t, func(ctx context.Context, n cluster.Node, p cluster.PowerSwitch) error {
		if err := p.PowerOff(ctx); err != nil {
			return err
		}
		look := &loss{client: client, node: n.Name()}
		see := look.refused
		if stays {
			see = look.stale
		}
		seen, err := Await(ctx, see)
		if err != nil {
			return fmt.Errorf("%s: %s is off and its loss is not seen: %w", t.Name, n.Name(), err)
		}
		Emit(t, event.FaultSeen, n, "the node is off: %s", seen)
		return nil
	})
}

// Recover switches every node on and returns once each is back with its pods. A node that was never off only has to
// be well.
func (f *NodePowerOff) Recover(ctx context.Context, t fault.Target) error {
	client, err := APIClient(t)
	if err != nil {
		return err
	}
	return f.each(ctx, f.Ready.Duration, t, func(ctx context.Context, n cluster.Node, p cluster.PowerSwitch) error {
		if err := p.PowerOn(ctx); err != nil {
			return err
		}
		booted, err := p.Booted(ctx) // older reports are about the time before
		if err != nil {
			return err
		}
		look := &arrival{client: client, node: n.Name(), since: booted.Truncate(time.Second)} // most times of the API have whole seconds
		seen, err := Await(ctx, look.back)
		if err != nil {
			return fmt.Errorf("%s: %s is on and not back: %w", t.Name, n.Name(), err)
		}
		Emit(t, event.FaultGone, n, "%s", seen)
		return nil
	})
}

// each acts on all nodes at once, within one time limit, and returns all errors.
func (f *NodePowerOff) each(ctx context.Context, within time.Duration, t fault.Target,
	act func(context.Context, cluster.Node, cluster.PowerSwitch) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not within %s", within))
	defer cancel()
	return Each(t.Nodes, func(n cluster.Node) error {
		p, err := cluster.Power(n)
		if err != nil {
			return err
		}
		return act(ctx, n, p)
	})
}

// apiStays reports whether the API survives the loss of the target's nodes: etcd runs on the control planes, and
// needs more than half of them. A cluster without control planes has its API elsewhere.
func apiStays(t fault.Target) bool {
	all, left := 0, 0
	for _, n := range t.Cluster.Nodes() {
		if n.Role() != cluster.ControlPlane {
			continue
		}
		all++
		if !slices.ContainsFunc(t.Nodes, func(off cluster.Node) bool { return off.Name() == n.Name() }) {
			left++
		}
	}
	return all == 0 || 2*left > all
}

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "partition",
		Doc: "Nodes that are cut off from other nodes, or from a component on other nodes: packets are dropped in both " +
			"directions, and connections stay open and pass no data.\n\n" +
			"With nodes alone, nothing passes between the two nodes or between their pods. With a component, only " +
			"connections from the target's nodes to the component's port are cut off. The rules are in the target's " +
			"nodes, in their own network, never in the host's. A node removes them after atMost, or earlier if the " +
			"harness lifts the fault. For both the partition and its end, the harness opens connections from the " +
			"target's nodes: they must open before the partition, must not open in it, and must open again, or be " +
			"refused, after it. In a cluster with several control planes, nodes reach the API through a load balancer, which no " +
			"partition cuts off.",
		ChaosMesh: "NetworkChaos (partition)",
		Example: "name: split\nkind: partition\ntarget: {mode: all, selector: {nodes: [worker2]}}\nspec: {nodes: " +
			"[control-plane], atMost: 2m}\n",
		Tested: `{"nodes":["control-plane"]}`,
		New:    func() fault.Fault { return &Partition{} },
	})
}

// Partition cuts the nodes of its target off from others.
type Partition struct {
	Nodes     []string         `json:"nodes,omitempty" refers:"node" jsonschema:"the nodes to be cut off from, by their names in the topology; with a component, the only ones on which it counts"`
	Component string           `json:"component,omitempty" jsonschema:"the component to be cut off from, on other nodes than the target's: etcd, for its other members; kube-apiserver; kubelet"`
	AtMost    *metav1.Duration `json:"atMost,omitempty" jsonschema:"the partition ends after this time at the latest, above 0; if not given, some time after the fault phase's deadline"`
}

// partitionSeen is how long a partition, or its end, may take to be observed.
const partitionSeen = 30 * time.Second

// Validate refuses a partition from nothing, an unknown component, and a time limit of 0 or less.
func (f *Partition) Validate() error {
	if len(f.Nodes) == 0 && f.Component == "" {
		return errors.New("there is nothing to be cut off from (want nodes: [control-plane], or component: kube-apiserver)")
	}
	if row, _ := component.Of(f.Component); f.Component != "" && row.Port == 0 {
		return fmt.Errorf(
			"component is %q (want one of %s, which listen for other nodes)",
			f.Component,
			strings.Join(component.Names(component.Remote), ", "),
		)
	}
	if f.AtMost != nil && f.AtMost.Duration <= 0 {
		return fmt.Errorf("atMost is %s (want above 0)", f.AtMost.Duration)
	}
	return nil
}

// Needs returns what the fault requires: nodes with a network of their own.
func (f *Partition) Needs() fault.Needs { return fault.Needs{Network: true} }

// Inject cuts each node off, and returns once connections to its peers, which opened before, were seen not to open.
func (f *Partition) Inject(ctx context.Context, t fault.Target) error {
	atMost := t.Expires
	if f.AtMost != nil {
		atMost = min(atMost, f.AtMost.Duration)
	}
	return f.each(t, func(n cluster.Node, w cluster.Network, peers []peer) error {
		if err := w.Mend(ctx, cutName(t)); err != nil { // what is cut off already can't be seen to be cut off
			return err
		}
		if err := awaitReach(ctx, w, peers, true); err != nil {
			return fmt.Errorf("before the partition: %w", err)
		}
		cuts := make([]cluster.Peer, len(peers))
		for i, p := range peers {
			cuts[i] = p.Peer
		}
		if err := w.Cut(ctx, cutName(t), cuts, atMost); err != nil {
			return err
		}
		if err := awaitReach(ctx, w, peers, false); err != nil {
			return fmt.Errorf("in the partition: %w", err)
		}
		Emit(
			t,
			event.FaultSeen,
			n,
			"no connection to %s opens, for %s at most",
			describePeers(peers),
			atMost,
		)
		return nil
	})
}

// Recover removes the rules in each node, and returns once connections to its peers were seen to open, or to be
// refused.
func (f *Partition) Recover(ctx context.Context, t fault.Target) error {
	return f.each(t, func(n cluster.Node, w cluster.Network, peers []peer) error {
		if err := w.Mend(ctx, cutName(t)); err != nil {
			return err
		}
		if err := awaitReach(ctx, passed{w}, peers, true); err != nil {
			return fmt.Errorf("after the partition: %w", err)
		}
		Emit(t, event.FaultGone, n, "connections to %s open", describePeers(peers))
		return nil
	})
}

// cutName names what the fault does in a node, so that another process can undo it.
func cutName(t fault.Target) string { return t.Run + "/" + t.Name }

// peer is what a node is cut off from, with the port by which that is seen.
type peer struct {
	cluster.Peer
	probe int
}

func describePeers(all []peer) string {
	var out []string
	for _, p := range all {
		out = append(out, fmt.Sprintf("port %d of %s", p.probe, p.Node.Name()))
	}
	return strings.Join(out, ", ")
}

// each acts on all nodes of the target at once, and returns all errors.
func (f *Partition) each(
	t fault.Target,
	act func(cluster.Node, cluster.Network, []peer) error,
) error {
	return Each(t.Nodes, func(n cluster.Node) error {
		w, err := cluster.NetworkOf(n)
		if err != nil {
			return err
		}
		peers, err := f.peers(t, n)
		if err == nil {
			err = act(n, w, peers)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", t.Name, n.Name(), err)
		}
		return nil
	})
}

// peers returns what a node is to be cut off from. Every node has a kubelet, whose port shows whether a whole node is
// reached.
func (f *Partition) peers(t fault.Target, n cluster.Node) (out []peer, err error) {
	port, probe := 0, f.Component
	if f.Component == "" {
		probe = "kubelet"
	}
	row, _ := component.Of(probe)
	if f.Component != "" {
		port = row.Port
	}
	add := func(o cluster.Node) { out = append(out, peer{cluster.Peer{Node: o, Port: port}, row.Port}) }
	all := t.Cluster.Nodes()
	for _, name := range f.Nodes {
		i := slices.IndexFunc(
			all,
			func(o cluster.Node) bool { return o.Name() == t.Cluster.Name()+"-"+name },
		)
		switch {
		case i < 0:
			return nil, fmt.Errorf("the cluster has no node %s to be cut off from", name)
		case all[i].Name() == n.Name():
			return nil, errors.New("it can't be cut off from itself (want other nodes, or another target)")
		case f.Component != "" && !runsOn(t.Cluster, f.Component, all[i]):
			return nil, fmt.Errorf(
				"node %s runs no %s to be cut off from",
				all[i].Name(),
				f.Component,
			)
		}
		add(all[i])
	}
	if len(f.Nodes) > 0 {
		return out, nil
	}
	for _, o := range all {
		if o.Name() != n.Name() && runsOn(t.Cluster, f.Component, o) {
			add(o)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no other node runs %s", f.Component)
	}
	return out, nil
}

func runsOn(c cluster.Cluster, name string, n cluster.Node) bool {
	return slices.ContainsFunc(
		c.Components(name),
		func(k cluster.Component) bool { return k.Node().Name() == n.Name() },
	)
}

// passed is a network in which a node that refuses a connection is reached, too: its packets come through, whatever
// became of the component there.
type passed struct{ cluster.Network }

func (a passed) Reaches(ctx context.Context, other cluster.Node, port int) (bool, error) {
	reached, err := a.Network.Reaches(ctx, other, port)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return true, nil
	}
	return reached, err
}

// awaitReach returns once connections to all peers open, or to none of them.
func awaitReach(ctx context.Context, w cluster.Network, peers []peer, want bool) error {
	return Each(peers, func(p peer) error {
		_, err := ProbeUntil(ctx, partitionSeen, func(ctx context.Context) (bool, error) {
			return w.Reaches(ctx, p.Node, p.probe)
		}, func(reached bool) bool { return reached == want })
		switch {
		case err == nil:
			return nil
		case want:
			return fmt.Errorf(
				"no connection to port %d of %s was seen to open: %w",
				p.probe,
				p.Node.Name(),
				err,
			)
		default:
			return fmt.Errorf(
				"connections to port %d of %s still open: %w",
				p.probe,
				p.Node.Name(),
				err,
			)
		}
	})
}

package clustertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// network is what a node was cut off from, by the names of the cuts.
type network struct {
	cuts  map[string]cut
	count int // how often it was cut
	ask   func(ctx context.Context, what string) error
}

type cut struct {
	peers []cluster.Peer
	end   *time.Timer
}

// OnNetwork makes Cut, Mend and Reaches call f first, with "cut", "mend" or "reach". If f returns an error, so does the
// call, and nothing is done.
func (n *Node) OnNetwork(f func(ctx context.Context, what string) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.network.ask = f
}

// Cuts returns how often the node was cut off, and how many cuts are in force.
func (n *Node) Cuts() (ever, now int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.network.count, len(n.network.cuts)
}

// Cut cuts the node off from its peers until atMost is over. Only Reaches notices.
func (n *Node) Cut(
	ctx context.Context,
	name string,
	peers []cluster.Peer,
	atMost time.Duration,
) error {
	if err := n.askNetwork(ctx, "cut"); err != nil {
		return fmt.Errorf("cutting node %s off: %w", n.name, err)
	}
	n.mend(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.network.cuts == nil {
		n.network.cuts = map[string]cut{}
	}
	n.network.cuts[name] = cut{peers, time.AfterFunc(atMost, func() { n.mend(name) })}
	n.network.count++
	return nil
}

// Mend undoes the cut with a name.
func (n *Node) Mend(ctx context.Context, name string) error {
	if err := n.askNetwork(ctx, "mend"); err != nil {
		return fmt.Errorf("mending the network of node %s: %w", n.name, err)
	}
	n.mend(name)
	return nil
}

func (n *Node) mend(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c, ok := n.network.cuts[name]; ok {
		c.end.Stop()
		delete(n.network.cuts, name)
	}
}

// Reaches reports whether both nodes are on, and no cut of either is in between. Every port of a node is open.
func (n *Node) Reaches(ctx context.Context, other cluster.Node, port int) (bool, error) {
	if err := n.askNetwork(ctx, "reach"); err != nil {
		return false, fmt.Errorf("connecting node %s to another: %w", n.name, err)
	}
	to := n.cluster.Node(other.Name())
	if to == nil {
		return false, fmt.Errorf(
			"connecting node %s to another: there is no node %q",
			n.name,
			other.Name(),
		)
	}
	return to.powered() && !n.isCutOff(to, port) && !to.isCutOff(n, 0), nil
}

// isCutOff reports whether a cut of this node stops connections to a port of another. Port 0 stands for a port that no
// cut names.
func (n *Node) isCutOff(from *Node, port int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.network.cuts {
		for _, p := range c.peers {
			if p.Node.Name() == from.name && (p.Port == 0 || p.Port == port) {
				return true
			}
		}
	}
	return false
}

func (n *Node) askNetwork(ctx context.Context, what string) error {
	n.mu.Lock()
	f, on := n.network.ask, n.on
	n.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case f != nil:
		if err := f(ctx, what); err != nil {
			return err
		}
	}
	if !on {
		return errors.New("it is off")
	}
	return nil
}

package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// validateTargets chooses the nodes of every load and fault, with the same code and seed as the run. It refuses an item
// for which no node can be chosen, before anything is built.
func (t *Trial) validateTargets(seed int64) error {
	var errs []error
	for i, it := range t.injections() {
		category, list, seams := kinds.Load, "loads", []string(nil)
		if i >= len(t.Loads) {
			category, list, seams = kinds.Fault, "faults", t.Faults[i-len(t.Loads)].Spec.Needs().Seams
		}
		if err := t.validateTarget(*it, seams, seed); err != nil {
			errs = append(errs, scenario.InField(fmt.Errorf("%s %q: %w", category, it.Name, err), list, it.Name, "target",
				"selector"))
		}
	}
	return errors.Join(errs...)
}

// validateTarget checks the arms in which an item acts; arms that share nodes are checked together. It stops at the
// first arm in which nothing can be chosen, because the others mostly fail in the same way. It skips arms without a
// cluster, which validateArms refuses. seams are those that the item acts through on its nodes.
func (t *Trial) validateTarget(it scenario.ItemHeader, seams []string, seed int64) error {
	if t.Place().SharedNodes() {
		if it.Target.Arm != "" {
			return fmt.Errorf(
				"it is aimed at arm %s, and the arms share the nodes (want no arm)",
				it.Target.Arm,
			)
		}
		for _, c := range t.Clusters {
			if _, err := fault.SelectNodes(it.Target, c.Topology.Nodes, bundle.Shared, seed); err != nil {
				return err
			}
		}
		return nil
	}
	for _, arm := range t.Arms {
		in := t.ClusterOf(arm.Name)
		if in == nil || it.Target.Arm != "" && it.Target.Arm != arm.Name {
			continue
		}
		names, err := fault.SelectNodes(it.Target, in.Topology.Nodes, arm.Name, seed)
		if err == nil {
			err = haveSeams(in.Topology.Nodes, names, seams)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// haveSeams refuses nodes, by their names, that don't get a seam which a fault acts through.
func haveSeams(nodes []cluster.NodeSpec, names, seams []string) error {
	for _, name := range seams {
		s, err := kinds.Make[seam.Seam](kinds.Seam, name)
		if err != nil {
			continue // refused as a seam
		}
		for _, n := range nodes {
			if slices.Contains(names, n.Name) && !seam.On(s, n.Role) {
				return fmt.Errorf(
					"the selector takes in the node %s, a %s, and the seam %s is on each %s only",
					n.Name,
					n.Role,
					name,
					s.Role(),
				)
			}
		}
	}
	return nil
}

// validateControlPlanes refuses several control planes in a cluster if the provider can make only one.
func (t *Trial) validateControlPlanes(have *cluster.Capabilities) error {
	if have == nil || have.OneControlPlane == nil {
		return nil
	}
	for _, c := range t.Clusters {
		nodes := slices.DeleteFunc(slices.Clone(c.Topology.Nodes),
			func(n cluster.NodeSpec) bool { return n.Role != cluster.ControlPlane })
		if len(nodes) < 2 {
			continue // the provider may have to ask a registry
		}
		if why := have.OneControlPlane(); why != "" {
			return fmt.Errorf(
				"the topology has %d control planes, and here a cluster can have one only: %s",
				len(nodes),
				why,
			)
		}
	}
	return nil
}

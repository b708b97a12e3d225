package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// validateTargets has every load and fault choose its nodes, by the same code and the same seed as the run will. What chooses none is refused here,
// before anything is built for it.
func (t *Trial) validateTargets(seed int64) error {
	var errs []error
	for i, it := range t.items() {
		if err := t.validateTarget(*it, seed); err != nil {
			category := kinds.Load
			if i >= len(t.Loads) {
				category = kinds.Fault
			}
			errs = append(errs, fmt.Errorf("%s %q: %w", category, it.Name, err))
		}
	}
	return errors.Join(errs...)
}

// validateTarget looks at the cells in which an item acts; arms that share a cluster are all met at once by what happens to it. The first cell
// in which nothing can be chosen is enough: the others mostly say the same. Cells without a cluster are for validateCells to refuse.
func (t *Trial) validateTarget(it Item, seed int64) error {
	if t.Place().SharedNodes() {
		if it.Target.Cell != "" {
			return fmt.Errorf("it is aimed at cell %s, and the arms share the nodes (want no cell)", it.Target.Cell)
		}
		for _, c := range t.Clusters {
			if _, err := fault.SelectNodes(it.Target, c.Topology.Nodes, bundle.Shared, seed); err != nil {
				return err
			}
		}
		return nil
	}
	for _, cell := range t.Cells {
		in := t.ClusterOf(cell.Name)
		if in == nil || it.Target.Cell != "" && it.Target.Cell != cell.Name {
			continue
		}
		if _, err := fault.SelectNodes(it.Target, in.Topology.Nodes, cell.Name, seed); err != nil {
			return err
		}
	}
	return nil
}

// validateControlPlanes refuses a topology that the provider can't make.
func (t *Trial) validateControlPlanes(have *cluster.Capabilities) error {
	if have == nil || have.OneControlPlane == "" {
		return nil
	}
	for _, c := range t.Clusters {
		nodes := slices.DeleteFunc(slices.Clone(c.Topology.Nodes), func(n cluster.NodeSpec) bool { return n.Role != cluster.ControlPlane })
		if len(nodes) > 1 {
			return fmt.Errorf("the topology has %d control planes, and here a cluster can have one only: %s", len(nodes), have.OneControlPlane)
		}
	}
	return nil
}

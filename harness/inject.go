package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/fault"
	"github.com/kube-relapse/relapse/harness/plan"
)

// lifted is how long all lifts together may take to be observed. Faults have limits of their own, which say more.
const lifted = 5 * time.Minute

// recover lifts every fault in every cell and returns when each lift was observed.
func (r *trial) recover(ctx context.Context, cells []string) error {
	if r.plan.NoFaults {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lifted)
	defer cancel()
	aimed, err := r.aim(cells)
	errs := make([]error, len(aimed), len(aimed)+1)
	var wg sync.WaitGroup
	for i, f := range aimed {
		wg.Go(func() {
			if err := f.fault.Recover(ctx, f.target); err != nil {
				errs[i] = fmt.Errorf("recovering %s in %s: %w", f.item.Name, f.target.Cell, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, err)...)
}

// aimedFault is a fault with what it acts on in one cell.
type aimedFault struct {
	namedFault
	target fault.Target
}

// targeted are the cells that faults act in: where arms share everything but a namespace, what happens to the cluster happens to all of them, once.
func (r *trial) targeted(cells []string) []string {
	if r.plan.Placement == plan.PlacementWorkload {
		return []string{bundle.Shared}
	}
	return cells
}

// aim chooses the targets of all faults in cells. What could be chosen is returned beside an error, so that it can still be recovered.
func (r *trial) aim(cells []string) (aimed []aimedFault, err error) {
	for _, cell := range r.targeted(cells) {
		for _, f := range r.faults {
			t, acts, e := r.target(cell, f.item)
			if e != nil {
				err = errors.Join(err, e)
			} else if acts {
				aimed = append(aimed, aimedFault{f, t})
			}
		}
	}
	return aimed, err
}

// target is where an item acts in a cell; false if it doesn't act there.
func (r *trial) target(cell string, item plan.Item) (t fault.Target, acts bool, err error) {
	if item.Target.Cell != "" && item.Target.Cell != cell {
		return t, false, nil
	}
	c, top, owner := r.world.clusterOf(cell), r.plan.ClusterOf(cell), cell
	if cell == bundle.Shared {
		c, top, owner = r.world.Cluster(), &r.plan.Clusters[0], "" // a node of no cell is everyone's
	}
	labels := map[string]map[string]string{}
	for _, n := range top.Topology.Nodes {
		labels[c.Name()+"-"+n.Name] = n.Labels
	}
	nodes, err := fault.Select(item.Target, c, owner, labels, r.world.plan.Seed)
	if err != nil {
		return t, false, fmt.Errorf("choosing the target of %s: %w", item.Name, err)
	}
	return fault.Target{
		Run: r.world.name, Name: item.Name, Cell: cell, Cluster: c, Nodes: nodes,
		Constants: r.world.cells[cell].constants,
		Expires:   r.plan.Phases.Fault.Deadline.Duration + 2*time.Minute, Events: r.events,
	}, true, nil
}

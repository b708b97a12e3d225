package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/fault"
	"github.com/kube-relapse/relapse/harness/plan"
)

// inject injects every fault into every cell at once; a fault with `at` or `after` waits for its moment.
func (r *trial) inject(ctx context.Context, cells []string) error {
	if r.plan.NoFaults {
		r.events.Say(event.Note, "null control: no fault is injected")
		return nil
	}
	var mu sync.Mutex
	took := map[string]chan struct{}{}
	gate := func(cell, name string) chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		key := cell + "/" + name
		if took[key] == nil {
			took[key] = make(chan struct{})
		}
		return took[key]
	}
	aimed, err := r.aim(cells)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, f := range aimed {
		g.Go(func() error {
			if err := wait(ctx, time.Duration(f.item.At)); err != nil {
				return err
			}
			if a := f.item.After; a != nil {
				select {
				case <-gate(f.target.Cell, a.Name):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				if err := wait(ctx, time.Duration(a.Plus)); err != nil {
					return err
				}
			}
			if err := f.fault.Inject(ctx, f.target); err != nil {
				return fmt.Errorf("injecting %s into %s: %w", f.item.Name, f.target.Cell, err)
			}
			close(gate(f.target.Cell, f.item.Name))
			return nil
		})
	}
	return g.Wait()
}

// recover lifts every fault in every cell and returns when each lift was observed.
func (r *trial) recover(ctx context.Context, cells []string) error {
	if r.plan.NoFaults {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
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

// aim chooses the targets of all faults in cells. What could be chosen is returned beside an error, so that it can still be recovered.
func (r *trial) aim(cells []string) (aimed []aimedFault, err error) {
	for _, cell := range cells {
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
	labels := map[string]map[string]string{}
	for _, n := range r.plan.Topology.Nodes {
		labels[r.world.cluster.Name()+"-"+n.Name] = n.Labels
	}
	nodes, err := fault.Select(item.Target, r.world.cluster, cell, labels, r.world.plan.Seed)
	if err != nil {
		return t, false, fmt.Errorf("choosing the target of %s: %w", item.Name, err)
	}
	return fault.Target{
		Run: r.world.name, Name: item.Name, Cell: cell, Cluster: r.world.cluster, Nodes: nodes,
		Constants: r.world.cells[cell].constants,
		Expires:   r.plan.Phases.Fault.Deadline.Duration + 2*time.Minute, Events: r.events,
	}, true, nil
}

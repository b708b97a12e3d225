package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-relapse/relapse/harness/cluster"
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
	g, ctx := errgroup.WithContext(ctx)
	for _, cell := range cells {
		for _, f := range r.faults {
			t, ok := r.target(cell, f.item)
			if !ok {
				continue
			}
			g.Go(func() error {
				if err := wait(ctx, time.Duration(f.item.At)); err != nil {
					return err
				}
				if a := f.item.After; a != nil {
					select {
					case <-gate(cell, a.Name):
					case <-ctx.Done():
						return context.Cause(ctx)
					}
					if err := wait(ctx, time.Duration(a.Plus)); err != nil {
						return err
					}
				}
				if err := f.fault.Inject(ctx, t); err != nil {
					return fmt.Errorf("injecting %s into %s: %w", f.item.Name, cell, err)
				}
				close(gate(cell, f.item.Name))
				return nil
			})
		}
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
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for _, cell := range cells {
		for _, f := range r.faults {
			t, ok := r.target(cell, f.item)
			if !ok {
				continue
			}
			wg.Go(func() {
				if err := f.fault.Recover(ctx, t); err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, fmt.Errorf("recovering %s in %s: %w", f.item.Name, cell, err))
				}
			})
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// target is where an item acts in a cell; false if it doesn't act there.
func (r *trial) target(cell string, item plan.Item) (fault.Target, bool) {
	if item.Target.Cell != "" && item.Target.Cell != cell {
		return fault.Target{}, false
	}
	nodes := slices.DeleteFunc(slices.Clone(r.world.cluster.Nodes()), func(n cluster.Node) bool { return n.Cell() != cell })
	if len(nodes) == 0 {
		return fault.Target{}, false
	}
	return fault.Target{
		Run: r.world.name, Name: item.Name, Cell: cell, Cluster: r.world.cluster, Nodes: nodes,
		Constants: r.world.cells[cell].constants,
		Expires:   r.plan.Phases.Fault.Deadline.Duration + 2*time.Minute, Events: r.events,
	}, true
}

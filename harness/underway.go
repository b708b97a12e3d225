package harness

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/load"
	"github.com/kube-relapse/relapse/harness/plan"
)

// underway is a phase of some cells: the loads that run and, in the fault phase, the faults that are injected, each at its moment.
type underway struct {
	r      *trial
	ctx    context.Context // ends when a load or a fault failed
	cancel context.CancelFunc
	group  *errgroup.Group
	board  *board
	first  sync.WaitGroup // every fault has taken effect for the first time, or never will

	mu    sync.Mutex
	cells map[string]*ofCell
}

// ofCell is what is under way in one cell.
type ofCell struct {
	ctx  context.Context
	stop context.CancelFunc
	left int       // loads that aren't over
	over time.Time // when the last of them was over; zero before
}

// begin starts every load of a phase in the cells, and in the fault phase every fault.
func (r *trial) begin(ctx context.Context, cells []string, phase string) (*underway, error) {
	u := &underway{r: r, board: newBoard(), cells: map[string]*ofCell{}}
	ctx, u.cancel = context.WithCancel(ctx)
	u.group, u.ctx = errgroup.WithContext(ctx)
	var aimed []aimedFault
	switch {
	case phase != check.Fault:
	case r.plan.NoFaults:
		r.events.Say(event.Note, "null control: no fault is injected")
	default:
		var err error
		if aimed, err = r.aim(cells); err != nil {
			u.cancel()
			return nil, err
		}
	}
	for _, cell := range slices.Concat(cells, r.targeted(cells)) {
		if u.cells[cell] == nil {
			c := &ofCell{left: len(r.loadsOf(cell, phase))}
			c.ctx, c.stop = context.WithCancel(u.ctx)
			u.cells[cell] = c
		}
	}
	for _, cell := range cells {
		for _, l := range r.loadsOf(cell, phase) {
			u.group.Go(func() error { return u.load(cell, l) })
		}
	}
	for _, f := range aimed {
		u.first.Add(1)
		u.group.Go(func() error { return u.fault(f) })
	}
	return u, nil
}

// loadsOf are the loads of a phase that act in a cell.
func (r *trial) loadsOf(cell, phase string) []namedLoad {
	return slices.DeleteFunc(slices.Clone(r.loads), func(l namedLoad) bool {
		return cmp.Or(l.item.Phase, check.Fault) != phase || l.item.Target.Cell != "" && l.item.Target.Cell != cell
	})
}

// end stops what still runs and waits for it. The error is the first that a load or a fault had, if it wasn't stopped.
func (u *underway) end() error {
	failed := context.Cause(u.ctx) != nil // before it is stopped
	u.cancel()
	if err := u.group.Wait(); failed {
		return err
	}
	return nil
}

// effective waits until every fault has taken effect.
func (u *underway) effective() error {
	done := make(chan struct{})
	go func() { u.first.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-u.ctx.Done():
		return context.Cause(u.ctx)
	}
}

// evidenceLag is how long after the last load the evidence of it may take to be on disk.
const evidenceLag = 15 * time.Second

// settled is exposure that waits for the cell's loads to be over. Once they are, exposure that has not come soon never will. Where the incident
// is over before them, as with a process that it has killed, they are stopped.
func (u *underway) settled(exposed func(string) bool) func(string) bool {
	return func(cell string) bool {
		c := u.cells[cell]
		u.mu.Lock()
		left, over := c.left, c.over
		u.mu.Unlock()
		if left > 0 {
			if u.r.signature(cell) && exposed(cell) {
				c.stop()
			}
			return false
		}
		return exposed(cell) || !over.IsZero() && time.Since(over) > evidenceLag
	}
}

// load runs one load in one cell.
func (u *underway) load(cell string, l namedLoad) error {
	defer func() {
		u.board.finish(cell, l.item.Name)
		u.mu.Lock()
		defer u.mu.Unlock()
		c := u.cells[cell]
		if c.left--; c.left == 0 {
			c.over = time.Now()
		}
	}()
	ctx := u.cells[cell].ctx
	if _, err := u.turn(cell, l.item, 1); err != nil {
		return err
	}
	t, err := u.r.loadTarget(cell, l.item)
	if err != nil {
		return err
	}
	t.Round = func(n int, began bool) { u.board.note(cell, l.item.Name, n, began) }
	if err := l.load.Run(ctx, t, u.r.writer); err != nil && ctx.Err() == nil {
		return fmt.Errorf("running the load %s in %s: %w", l.item.Name, cell, err)
	}
	return nil
}

// fault injects one fault into one cell, and again with every round of the load that it comes after if it lifts itself.
func (u *underway) fault(f aimedFault) error {
	said := sync.OnceFunc(u.first.Done)
	defer said()
	cell, name := f.target.Cell, f.item.Name
	defer u.board.finish(cell, name)
	ctx := u.cells[cell].ctx
	for round := 1; ; round++ {
		comes, err := u.turn(cell, f.item, round)
		if ctx.Err() != nil && u.ctx.Err() == nil { // this cell is done: what is injected is lifted with the rest
			return nil
		}
		if err != nil {
			return err
		}
		if !comes {
			if round == 1 {
				u.r.events.Emit(event.Event{Type: event.Warning, Cell: cell,
					Message: fmt.Sprintf("%s never took effect, so %s, which comes after it, is not injected", f.item.After.Name, name)})
			}
			return nil
		}
		if err := f.fault.Inject(ctx, f.target); err != nil {
			if ctx.Err() != nil && u.ctx.Err() == nil {
				return nil
			}
			return fmt.Errorf("injecting %s into %s: %w", name, cell, err)
		}
		u.board.note(cell, name, round, true)
		said()
		if f.item.Duration == 0 {
			return nil
		}
		if err := u.pulse(f, round); err != nil || f.item.After == nil {
			return err
		}
	}
}

// pulse lifts a fault after its duration, or when the round of the load it came after is over.
func (u *underway) pulse(f aimedFault, round int) error {
	cell := f.target.Cell
	ctx, cancel := context.WithTimeout(u.cells[cell].ctx, time.Duration(f.item.Duration))
	defer cancel()
	if a := f.item.After; a != nil {
		_, _ = u.board.await(ctx, cell, a.Name, func(p progress) bool { return p.ended >= round || p.over }) // or its time is up
	} else {
		<-ctx.Done()
	}
	if u.ctx.Err() != nil {
		return context.Cause(u.ctx)
	}
	if err := f.fault.Recover(u.ctx, f.target); err != nil {
		return fmt.Errorf("lifting %s in %s after its duration: %w", f.item.Name, cell, err)
	}
	u.board.note(cell, f.item.Name, round, false)
	u.r.sched.snapshot(u.ctx, []string{cell}, "round")
	return nil
}

// turn waits for an item's moment in a round; false if what it comes after is over and has no such round.
func (u *underway) turn(cell string, item plan.Item, round int) (bool, error) {
	ctx := u.cells[cell].ctx
	if round == 1 {
		if err := wait(ctx, time.Duration(item.At)); err != nil {
			return false, err
		}
	}
	if item.After == nil {
		return true, nil
	}
	p, err := u.board.await(ctx, cell, item.After.Name, func(p progress) bool { return p.began >= round || p.over })
	if err != nil || p.began < round {
		return false, err
	}
	return true, wait(ctx, time.Duration(item.After.Plus))
}

// prepareLoads has the loads make what they need.
func (r *trial) prepareLoads(ctx context.Context, cells []string) (err error) {
	if len(r.loads) == 0 {
		return nil
	}
	stage := r.lab.stage("load", "making the objects that the loads need", 20*time.Second)
	defer func() { stage(err) }()
	g, ctx := errgroup.WithContext(ctx)
	for _, cell := range cells {
		for _, l := range slices.Concat(r.loadsOf(cell, check.Fault), r.loadsOf(cell, check.Recovery)) {
			g.Go(func() error {
				t, err := r.loadTarget(cell, l.item)
				if err == nil {
					err = l.load.Prepare(ctx, t)
				}
				if err != nil {
					return fmt.Errorf("preparing the load %s in %s: %w", l.item.Name, cell, err)
				}
				return nil
			})
		}
	}
	return g.Wait()
}

func (r *trial) loadTarget(cell string, item plan.Item) (load.Target, error) {
	t, _, err := r.target(cell, item)
	return load.Target{
		Run: r.world.name, Name: item.Name, Cell: cell, Cluster: r.world.clusterOf(cell), Nodes: t.Nodes, Events: r.events, Seed: r.world.plan.Seed,
		Round: func(int, bool) {},
	}, err
}

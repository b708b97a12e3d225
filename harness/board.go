package harness

import (
	"context"
	"sync"
)

// board is where the loads and faults of a phase note how far they are, for those that come after them.
type board struct {
	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, at every change
	items   map[string]progress
}

// progress is how far a load or a fault is in a cell.
type progress struct {
	began, ended int  // the last round that took effect, and that was over
	over         bool // nothing more will come
}

func newBoard() *board { return &board{changed: make(chan struct{}), items: map[string]progress{}} }

// note records that a round took effect or was over.
func (b *board) note(cell, name string, round int, began bool) {
	b.change(cell, name, func(p *progress) {
		if began {
			p.began = max(p.began, round)
		} else {
			p.ended = max(p.ended, round)
		}
	})
}

// finish records that nothing more will come.
func (b *board) finish(cell, name string) {
	b.change(cell, name, func(p *progress) { p.over = true })
}

func (b *board) change(cell, name string, how func(*progress)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.items[cell+"/"+name]
	how(&p)
	b.items[cell+"/"+name] = p
	close(b.changed)
	b.changed = make(chan struct{})
}

// await waits until ok is true of an item's progress and returns that.
func (b *board) await(ctx context.Context, cell, name string, ok func(progress) bool) (progress, error) {
	for {
		b.mu.Lock()
		p, changed := b.items[cell+"/"+name], b.changed
		b.mu.Unlock()
		if ok(p) {
			return p, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return p, context.Cause(ctx)
		}
	}
}

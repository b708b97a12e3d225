package trial

import (
	"context"
	"sync"
)

// progress records how far the loads and faults of a phase are, for those that come after them.
type progress struct {
	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, at every change
	items   map[string]state
}

// state is how far a load or a fault is in an arm.
type state struct {
	began, ended int  // the last round that took effect, and that was over
	over         bool // nothing more will come
}

func newProgress() *progress {
	return &progress{changed: make(chan struct{}), items: map[string]state{}}
}

// note records that a round took effect or was over.
func (p *progress) note(arm, name string, round int, began bool) {
	p.change(arm, name, func(s *state) {
		if began {
			s.began = max(s.began, round)
		} else {
			s.ended = max(s.ended, round)
		}
	})
}

// finish records that nothing more will come.
func (p *progress) finish(arm, name string) {
	p.change(arm, name, func(s *state) { s.over = true })
}

func (p *progress) change(arm, name string, how func(*state)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.items[arm+"/"+name]
	how(&s)
	p.items[arm+"/"+name] = s
	close(p.changed)
	p.changed = make(chan struct{})
}

// await waits until ok is true of an item's progress, and returns the progress.
func (p *progress) await(ctx context.Context, arm, name string, ok func(state) bool) (state, error) {
	for {
		p.mu.Lock()
		s, changed := p.items[arm+"/"+name], p.changed
		p.mu.Unlock()
		if ok(s) {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s, context.Cause(ctx)
		}
	}
}

package trial

import (
	"context"
	"sync"
)

// progress records the rounds of a phase's loads and faults, for the items that come after them.
type progress struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	items   map[string]state
}

// state is the progress of one load or fault in one arm.
type state struct {
	began, ended int  // the last round that took effect, and the last that was over
	over         bool // no further round will come
}

func newProgress() *progress {
	return &progress{changed: make(chan struct{}), items: map[string]state{}}
}

// note records that a round took effect (began) or was over.
func (p *progress) note(arm, name string, round int, began bool) {
	p.change(arm, name, func(s *state) {
		if began {
			s.began = max(s.began, round)
		} else {
			s.ended = max(s.ended, round)
		}
	})
}

// finish records that an item will have no further round.
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

// now returns an item's state.
func (p *progress) now(arm, name string) state {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.items[arm+"/"+name]
}

// await waits until ok is true for an item's state, and returns that state.
func (p *progress) await(
	ctx context.Context,
	arm, name string,
	ok func(state) bool,
) (state, error) {
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

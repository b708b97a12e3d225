package match

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// Unexplained is what stands out, whether anybody knows it or not. It decides nothing.
type Unexplained struct {
	Goroutines []Group   `json:"goroutines"` // the largest groups, the largest first
	Restarts   []Restart `json:"restarts"`   // of containers, the most first
}

// Group is goroutines of one stack in a dump.
type Group struct {
	Where   string   `json:"where"`
	Count   int      `json:"count"`
	State   string   `json:"state,omitempty"`
	Minutes int      `json:"minutes,omitempty"` // that the longest of them has waited, as far as the dump says
	Frames  []string `json:"frames"`            // the innermost ones
}

// Restart is a container that was restarted, and how it last ended, if that is known.
type Restart struct {
	Container string    `json:"container"`
	Place     string    `json:"place"`
	Restarts  int       `json:"restarts"`
	Reason    string    `json:"reason,omitempty"`
	ExitCode  int32     `json:"exitCode,omitempty"`
	At        time.Time `json:"at,omitzero"`
	Path      string    `json:"path"`
}

// Few groups and restarts are enough to go on from.
const (
	maxGroups   = 5
	maxFrames   = 4
	maxRestarts = 10
)

func (e *evidence) unexplained() Unexplained {
	out := Unexplained{Goroutines: []Group{}, Restarts: append([]Restart{}, e.restarts...)}
	add := func(where string, d *goroutine.Dump) {
		for _, g := range d.Groups {
			if g.Count < 2 {
				continue
			}
			one := Group{Where: where, Count: g.Count, State: g.State, Minutes: int(g.MaxWait / time.Minute), Frames: []string{}}
			for _, f := range g.Frames[:min(len(g.Frames), maxFrames)] {
				one.Frames = append(one.Frames, fmt.Sprintf("%s %s:%d", f.Func, f.File, f.Line))
			}
			out.Goroutines = append(out.Goroutines, one)
		}
	}
	for _, s := range e.sources {
		if n := len(s.dumps); n > 0 { // the last one
			add(fmt.Sprintf("%s:%d", s.path, s.dumps[n-1].Line), s.dumps[n-1].Dump)
		}
	}
	for _, t := range e.trials {
		all := t.view.Artifacts(bundle.Query{Kind: bundle.Goroutines2, Cell: t.cell})
		if len(all) == 0 {
			continue
		}
		last := all[len(all)-1]
		_, err := t.view.Remember(last, "unexplained", func(_ any, r io.Reader) (any, error) {
			d, err := goroutine.Read(r)
			if err == nil {
				add(t.place+", "+last.Path, d)
			}
			return d, err
		})
		_ = err // a dump that can't be read was told where a check asked for it
	}
	slices.SortStableFunc(out.Goroutines, func(a, b Group) int { return cmp.Compare(b.Count, a.Count) })
	slices.SortStableFunc(out.Restarts, func(a, b Restart) int { return cmp.Compare(b.Restarts, a.Restarts) })
	out.Goroutines = out.Goroutines[:min(len(out.Goroutines), maxGroups)]
	out.Restarts = out.Restarts[:min(len(out.Restarts), maxRestarts)]
	return out
}

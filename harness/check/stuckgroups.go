package check

import (
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// goroutines are those of one dump: id -> the group that it is in.
type goroutines map[uint64]*goroutine.Group

// dumped are the dumps of a window, in order of time.
type dumped struct {
	captured
	in []goroutines
}

// dumpsIn reads the debug=2 dumps of a window.
func dumpsIn(v bundle.View, cell string, w bundle.Window) (out dumped) {
	out.each(v, bundle.Goroutines2, cell, w, "dump", func(a bundle.Artifact) error {
		d, err := whole(v, a)
		if err != nil {
			return err
		}
		ids := goroutines{}
		for i := range d.Groups {
			for _, id := range d.Groups[i].IDs {
				ids[id] = &d.Groups[i]
			}
		}
		out.in = append(out.in, ids)
		return nil
	})
	return out
}

// left are the goroutines of the last of some dumps that all of them show, each in one of the states if any are given. Ids are never used again.
func left(dumps []goroutines, states []string) goroutines {
	out := goroutines{}
	for id, g := range dumps[len(dumps)-1] {
		if !slices.ContainsFunc(dumps, func(d goroutines) bool {
			in, ok := d[id]
			return !ok || len(states) > 0 && !slices.Contains(states, in.State)
		}) {
			out[id] = g
		}
	}
	return out
}

// group is how many goroutines one function started at another: whatever they wait for, that stays the same for as long as they live.
type group struct {
	n   int
	one *goroutine.Group // of them
}

// origin is what tells groups apart.
type origin struct{ entry, createdBy string }

func originOf(g *goroutine.Group) origin {
	out := origin{createdBy: g.CreatedBy}
	if n := len(g.Frames); n > 0 {
		out.entry = g.Frames[n-1].Func
	}
	return out
}

// name is what people know a group by.
func (g group) name() string {
	o := originOf(g.one)
	if o.createdBy == "" {
		return o.entry
	}
	return fmt.Sprintf("%s (created by %s)", o.entry, o.createdBy)
}

func (in goroutines) groups() map[origin]group {
	out := map[origin]group{}
	for _, g := range in {
		had := out[originOf(g)]
		if had.one == nil || g.IDs[0] < had.one.IDs[0] { // the same each time
			had.one = g
		}
		had.n++
		out[originOf(g)] = had
	}
	return out
}

// largest is the group with most of them.
func (in goroutines) largest() (out group) {
	for _, g := range in.groups() {
		if out.one == nil || g.n > out.n || g.n == out.n && g.one.IDs[0] < out.one.IDs[0] {
			out = g
		}
	}
	return out
}

// without leaves out those that one of some dumps shows.
func (in goroutines) without(dumps []goroutines) goroutines {
	out := goroutines{}
	for id, g := range in {
		if !slices.ContainsFunc(dumps, func(d goroutines) bool { _, had := d[id]; return had }) {
			out[id] = g
		}
	}
	return out
}

// more is by how many goroutines the groups of the last dumps are larger than before, all together, and the one that is so by most. A group counts with
// what came since and stays; where others of it went, as when a client opens its watches anew, only with what it is larger by in each of the last dumps.
func more(before, last []goroutines) (all int, most group) {
	were, least := map[origin]int{}, map[origin]int{}
	for _, d := range before {
		for o, g := range d.groups() {
			were[o] = max(were[o], g.n)
		}
	}
	for i, d := range last {
		now := d.groups()
		for o, g := range now {
			if had, ok := least[o]; i == 0 || ok {
				least[o] = g.n
				if i > 0 {
					least[o] = min(had, g.n)
				}
			}
		}
		for o := range least {
			if _, ok := now[o]; !ok {
				delete(least, o)
			}
		}
	}
	for o, g := range left(last, nil).without(before).groups() {
		g.n = min(g.n, least[o]-were[o])
		if g.n <= 0 {
			continue
		}
		all += g.n
		if g.n > most.n || g.n == most.n && g.one.IDs[0] < most.one.IDs[0] {
			most = g
		}
	}
	return all, most
}

package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// goroutines maps the id of each goroutine in a dump to its group.
type goroutines map[uint64]*goroutine.Group

// dumped holds the dumps of a window, in order of time.
type dumped = taken[goroutines]

// dumpsIn reads the debug=2 dumps of the window.
func dumpsIn(q *question) (out dumped) {
	out.each(q, bundle.Goroutines2, "dump", func(a bundle.Artifact) error {
		d, err := completeDump(q.view, a)
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

// remaining returns the goroutines that all dumps show, with their groups in the last dump. If states are given, a
// goroutine must be in one of them in every dump. The runtime never uses an id again, so one id is one goroutine.
func remaining(dumps []goroutines, states []string) goroutines {
	out := maps.Clone(dumps[len(dumps)-1])
	maps.DeleteFunc(out, func(id uint64, _ *goroutine.Group) bool {
		return slices.ContainsFunc(dumps, func(d goroutines) bool {
			g, ok := d[id]
			return !ok || len(states) > 0 && !slices.Contains(states, g.State)
		})
	})
	return out
}

// minus returns the goroutines that none of the dumps shows.
func (in goroutines) minus(dumps []goroutines) goroutines {
	out := maps.Clone(in)
	for _, d := range dumps {
		maps.DeleteFunc(out, func(id uint64, _ *goroutine.Group) bool { return d[id] != nil })
	}
	return out
}

// group counts the goroutines with one entry function and one creator.
type group struct {
	n   int
	one *goroutine.Group // one of the goroutines, as an example
}

// name returns the entry function and the creator of a group's goroutines.
func (g group) name() string {
	o := g.one.Origin()
	if o.CreatedBy == "" {
		return o.Entry
	}
	return fmt.Sprintf("%s (created by %s)", o.Entry, o.CreatedBy)
}

func (in goroutines) groups() map[goroutine.Origin]group {
	out := map[goroutine.Origin]group{}
	for _, g := range in {
		had := out[g.Origin()]
		if had.one == nil || g.IDs[0] < had.one.IDs[0] { // so that the example is the same each time
			had.one = g
		}
		had.n++
		out[g.Origin()] = had
	}
	return out
}

// largerGroup returns the larger of two groups. Of two equal ones it returns the same each time.
func largerGroup(a, b group) group {
	if a.one == nil || b.n > a.n || b.n == a.n && b.one.IDs[0] < a.one.IDs[0] {
		return b
	}
	return a
}

// largest returns the group with most goroutines.
func (in goroutines) largest() (out group) {
	for _, g := range in.groups() {
		out = largerGroup(out, g)
	}
	return out
}

// counts returns how many goroutines each group has.
func (in goroutines) counts() map[goroutine.Origin]int64 {
	out := map[goroutine.Origin]int64{}
	for _, g := range in {
		out[g.Origin()]++
	}
	return out
}

// growthByGroup returns by how many goroutines in total the groups of the last dumps are larger than before, and the
// group that grew most. A goroutine that was added since and stays counts. If others of its group ended, for example
// because a client opened its watches anew, the group counts only by how much larger it is in each of the last dumps.
func growthByGroup(before, last []goroutines) (all int, most group) {
	grown := lasting(before, last, goroutines.counts)
	for o, g := range remaining(last, nil).minus(before).groups() {
		if g.n = min(g.n, int(grown[o])); g.n > 0 {
			all += g.n
			most = largerGroup(most, g)
		}
	}
	return all, most
}

// fewest is how many added goroutines are always tolerated: a client's new connection or watch brings some.
const fewest = 3

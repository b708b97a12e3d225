package goroutines

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// ByID maps the id of each goroutine in a dump to its group.
type ByID map[uint64]*goroutine.Group

// ReadDumps reads the debug=2 dumps of the window, in order of time.
func ReadDumps(q *question.Question) (out question.Snapshots[ByID]) {
	out.Each(q, bundle.Goroutines2, "dump", func(a bundle.Artifact) error {
		d, err := question.ReadCompleteDump(q.View, a)
		if err != nil {
			return err
		}
		ids := ByID{}
		for i := range d.Groups {
			for _, id := range d.Groups[i].IDs {
				ids[id] = &d.Groups[i]
			}
		}
		out.In = append(out.In, ids)
		return nil
	})
	return out
}

// Remaining returns the goroutines that all dumps show, with their groups in the last dump. If states are given, a
// goroutine must be in one of them in every dump. The runtime never uses an id again, so one id is one goroutine.
func Remaining(dumps []ByID, states []string) ByID {
	out := maps.Clone(dumps[len(dumps)-1])
	maps.DeleteFunc(out, func(id uint64, _ *goroutine.Group) bool {
		return slices.ContainsFunc(dumps, func(d ByID) bool {
			g, ok := d[id]
			return !ok || len(states) > 0 && !slices.Contains(states, g.State)
		})
	})
	return out
}

// Minus returns the goroutines that none of the dumps shows.
func (in ByID) Minus(dumps []ByID) ByID {
	out := maps.Clone(in)
	for _, d := range dumps {
		maps.DeleteFunc(out, func(id uint64, _ *goroutine.Group) bool { return d[id] != nil })
	}
	return out
}

// OriginGroup counts the goroutines with one entry function and one creator.
type OriginGroup struct {
	N       int
	Example *goroutine.Group // one of the goroutines, as an example
}

// Name returns the entry function and the creator of a group's goroutines.
func (g OriginGroup) Name() string {
	o := g.Example.Origin()
	if o.CreatedBy == "" {
		return o.Entry
	}
	return fmt.Sprintf("%s (created by %s)", o.Entry, o.CreatedBy)
}

func (in ByID) groups() map[goroutine.Origin]OriginGroup {
	out := map[goroutine.Origin]OriginGroup{}
	for _, g := range in {
		had := out[g.Origin()]
		if had.Example == nil || g.IDs[0] < had.Example.IDs[0] { // so that the example is the same each time
			had.Example = g
		}
		had.N++
		out[g.Origin()] = had
	}
	return out
}

// largerGroup returns the larger of two groups. Of two equal ones it returns the same each time.
func largerGroup(a, b OriginGroup) OriginGroup {
	if a.Example == nil || b.N > a.N || b.N == a.N && b.Example.IDs[0] < a.Example.IDs[0] {
		return b
	}
	return a
}

// Largest returns the group with most goroutines.
func (in ByID) Largest() (out OriginGroup) {
	for _, g := range in.groups() {
		out = largerGroup(out, g)
	}
	return out
}

// counts returns how many goroutines each group has.
func (in ByID) counts() map[goroutine.Origin]int64 {
	out := map[goroutine.Origin]int64{}
	for _, g := range in {
		out[g.Origin()]++
	}
	return out
}

// GrowthByGroup returns by how many goroutines in total the groups of the last dumps are larger than before, and the
// group that grew most. A goroutine that was added since and stays counts. If others of its group ended, for example
// because a client opened its watches anew, the group counts only by how much larger it is in each of the last dumps.
func GrowthByGroup(before, last []ByID) (all int, most OriginGroup) {
	grown := question.LastingGrowth(before, last, ByID.counts)
	for o, g := range Remaining(last, nil).Minus(before).groups() {
		if g.N = min(g.N, int(grown[o])); g.N > 0 {
			all += g.N
			most = largerGroup(most, g)
		}
	}
	return all, most
}

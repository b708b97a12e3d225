package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/goroutine"
)

// goroutines are those of one dump: id -> the group that it is in.
type goroutines map[uint64]*goroutine.Group

// dumped are the dumps of a window, in order of time.
type dumped struct {
	in      []goroutines
	last    time.Time
	missing string   // why some can't be relied on; "" if all can
	notes   []string // captures that failed
	paths   []string
}

// dumpsIn reads the debug=2 dumps of a window. A capture that failed is none; a file that is missing, damaged or cut could have shown anything.
func dumpsIn(v bundle.View, cell string, w bundle.Window) (out dumped) {
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Goroutines2, Cell: cell, From: w.Start, To: w.End}) {
		if a.Error != "" {
			out.notes = append(out.notes, fmt.Sprintf("the dump of %s failed: %s", clock(a.Time), a.Error))
			continue
		}
		d, err := whole(v, a)
		if err != nil {
			out.missing = err.Error()
			continue
		}
		ids := goroutines{}
		for i := range d.Groups {
			for _, id := range d.Groups[i].IDs {
				ids[id] = &d.Groups[i]
			}
		}
		out.in, out.last, out.paths = append(out.in, ids), a.Time, append(out.paths, a.Path)
	}
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

// group is how many goroutines have one stack and one creator, whatever they wait for and at which line.
type group struct {
	n   int
	one *goroutine.Group // of them
}

// name is what people know a group by: the function that it waits in, and who started it.
func (g group) name() string {
	if g.one.CreatedBy == "" {
		return top(*g.one)
	}
	return fmt.Sprintf("%s (created by %s)", top(*g.one), g.one.CreatedBy)
}

// stackOf is what tells groups apart.
func stackOf(g *goroutine.Group) string {
	var b strings.Builder
	for _, f := range g.Frames {
		b.WriteString(f.Func)
		b.WriteByte('\n')
	}
	b.WriteString("created by " + g.CreatedBy)
	return b.String()
}

func (in goroutines) byStack() map[string]group {
	keys, out := map[*goroutine.Group]string{}, map[string]group{}
	for _, g := range in {
		key, ok := keys[g]
		if !ok {
			key = stackOf(g)
			keys[g] = key
		}
		had := out[key]
		if had.one == nil || g.IDs[0] < had.one.IDs[0] { // the same each time
			had.one = g
		}
		had.n++
		out[key] = had
	}
	return out
}

// grouped are the groups, the largest first.
func (in goroutines) grouped() []group {
	var out []group
	for _, g := range in.byStack() {
		out = append(out, g)
	}
	slices.SortFunc(out, largestFirst)
	return out
}

func largestFirst(a, b group) int {
	return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.one.IDs[0], b.one.IDs[0]))
}

// over is by how many goroutines there are more than in the largest of some dumps, and by how many more of the stack that has most more.
func (in goroutines) over(dumps []goroutines) (all int, most group) {
	total, were := 0, map[string]int{}
	for _, d := range dumps {
		total = max(total, len(d))
		for key, g := range d.byStack() {
			were[key] = max(were[key], g.n)
		}
	}
	var more []group
	for key, g := range in.byStack() {
		g.n -= were[key]
		more = append(more, g)
	}
	slices.SortFunc(more, largestFirst)
	if len(more) > 0 {
		most = more[0]
	}
	return len(in) - total, most
}

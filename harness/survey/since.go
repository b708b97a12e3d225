package survey

import (
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// Since leaves only the releases that an earlier survey doesn't list. It reports whether there are any.
func (r *Record) Since(last *scenario.Surveyed) bool {
	listed := map[string]bool{}
	for _, b := range last.Branches {
		for _, one := range b.Releases {
			listed[one.Version] = true
		}
	}
	for i := range r.Branches {
		r.Branches[i].Releases = slices.DeleteFunc(
			r.Branches[i].Releases,
			func(one Release) bool { return listed[one.Version] },
		)
	}
	r.Branches = slices.DeleteFunc(
		r.Branches,
		func(b Branch) bool { return len(b.Releases) == 0 },
	)
	return len(r.Branches) > 0
}

// Turned says which releases answer other than the one before them of which the answer is known, by this survey or an
// earlier one. Before the first of a branch is the newest one of the branch before.
func (r *Record) Turned(last *scenario.Surveyed) (out []string) {
	type answer struct {
		version string
		state   State
		isNew   bool
	}
	var known []answer
	for _, b := range last.Branches {
		for _, one := range b.Releases {
			if one.Known() {
				known = append(known, answer{one.Version, State(one.State), false})
			}
		}
	}
	for _, row := range r.Rows() {
		for _, c := range row.Cells {
			if c.known() {
				known = append(known, answer{c.Version, c.State, true})
			}
		}
	}
	slices.SortFunc(known, func(a, b answer) int { return compare(a.version, b.version) })
	for i := 1; i < len(known); i++ {
		if was, is := known[i-1], known[i]; is.isNew && was.state != is.state {
			out = append(out, fmt.Sprintf("%s is %s, and %s before it is %s.", is.version, is.state, was.version, was.state))
		}
	}
	return out
}

package survey

import (
	"cmp"
	"fmt"
	"slices"
)

// Cell is what is known of one release.
type Cell struct {
	Version string `json:"version"`
	State   State  `json:"state"`
	Bad     int    `json:"bad"`          // runs that showed the bug
	Of      int    `json:"of"`           // runs with an answer about the release
	As      string `json:"as,omitempty"` // the releases of its class whose answer this is, for a release that did not run
	Class   int    `json:"class,omitempty"`
	// StandIns are modules of its repository that a run had from other releases. No class depends on them.
	StandIns string `json:"standIns,omitempty"`
	Why      string `json:"why,omitempty"`
}

// State is the answer about a release.
type State string

// The states of a cell. Only Bad and Good are answers.
const (
	IsBad         State = "bad"
	IsGood        State = "good"
	IsUnclear     State = "inconclusive" // it ran, and that says nothing: it is never good
	IsUnavailable State = "unavailable"  // its source can't be had, or can't be built
	IsNotRun      State = "not run"
)

// Text returns the cell as tables show it.
func (c Cell) Text() string {
	switch {
	case c.As != "":
		return fmt.Sprintf("%s (as %s)", c.State, c.As)
	case c.State == IsBad:
		return fmt.Sprintf("bad %d of %d", c.Bad, c.Of) + c.marked()
	case c.State == IsGood:
		return fmt.Sprintf("good %d", c.Of) + c.marked()
	}
	return string(c.State)
}

func (c Cell) marked() string {
	if c.StandIns == "" {
		return ""
	}
	return ", with stand-ins"
}

// Row is a branch with its cells, the oldest first, and the changes among them.
type Row struct {
	Branch  string   `json:"branch"`
	Cells   []Cell   `json:"cells"`
	Changes []Change `json:"changes"`
}

// Change says where a branch's answer changes, and between which releases: After is the last one known to be otherwise,
// and By the first one known to be so. Nothing is known of those in between, if there are any.
type Change struct {
	To      State  `json:"to"` // bad: the bug came in; good: it went
	After   string `json:"after"`
	By      string `json:"by"`
	Between int    `json:"between"` // releases of which nothing is known
}

// where names the first release of the new state, or the interval that it lies in.
func (c Change) where() string {
	if c.Between == 0 {
		return c.By
	}
	return fmt.Sprintf("(%s, %s]", c.After, c.By)
}

// Rows returns the answer about every release.
func (r *Record) Rows() (rows []Row) {
	for _, b := range r.Branches {
		row := Row{Branch: b.Name, Cells: r.cells(b)}
		for _, members := range b.members() {
			asNeighbours(row.Cells, members)
		}
		row.Changes = changes(row.Cells)
		rows = append(rows, row)
	}
	return rows
}

// cells returns what the releases' own runs say.
func (r *Record) cells(b Branch) []Cell {
	cells := make([]Cell, len(b.Releases))
	for i, release := range b.Releases {
		cells[i] = cellOf(release, r.Runs[release.Version])
	}
	return cells
}

// cellOf returns what a release's own runs say. One run that shows the bug is enough. A run that says nothing through the
// release's own fault takes away that it is good.
func cellOf(release Release, runs []Run) Cell {
	c := Cell{Version: release.Version, Class: release.Class, State: IsNotRun, Why: release.Why}
	if release.Why != "" {
		c.State = IsUnavailable
	}
	unclear := ""
	for _, one := range runs {
		switch {
		case one.Result == Unbuildable:
			c.State, c.Why = IsUnavailable, one.Why
			continue
		case !one.Controls && !one.Lost:
			c.State, c.Why = IsUnclear, "the controls were not as expected: "+one.Why
			continue
		case one.Result == Bad:
			c.Bad++
		case one.Result != Good:
			unclear = string(one.Result) + ": " + one.Why
		}
		c.Of, c.StandIns = c.Of+1, cmp.Or(c.StandIns, one.StandIns)
	}
	switch {
	case c.Bad > 0:
		c.State, c.Why = IsBad, ""
	case unclear != "":
		c.State, c.Why = IsUnclear, unclear
	case c.Of > 0:
		c.State, c.Why = IsGood, ""
	}
	return c
}

// asNeighbours gives members of a class that did not run the answer of those that did, where the one before and the one
// after agree. Members that differ split the class: between them nothing is known. Nor is it beside a member that ran and
// gave no answer, as what it could not show may be the bug.
func asNeighbours(cells []Cell, members []int) {
	answered := func(from []int) int {
		n := slices.IndexFunc(
			from,
			func(i int) bool { return cells[i].As == "" && (cells[i].known() || cells[i].State == IsUnclear) },
		)
		if n >= 0 && !cells[from[n]].known() {
			return -1
		}
		return n
	}
	for k, i := range members {
		if cells[i].State != IsNotRun {
			continue
		}
		before := slices.Clone(members[:k])
		slices.Reverse(before)
		b, a := answered(before), answered(members[k+1:])
		if b < 0 || a < 0 {
			continue
		}
		was, is := cells[before[b]], cells[members[k+1:][a]]
		if was.State == is.State {
			cells[i].State, cells[i].As = was.State, was.Version+" and "+is.Version
		}
	}
}

// known reports whether there is an answer.
func (c Cell) known() bool { return c.State == IsBad || c.State == IsGood }

func changes(cells []Cell) (out []Change) {
	last, unknown := -1, 0
	for i, c := range cells {
		if !c.known() {
			unknown++
			continue
		}
		if last >= 0 && cells[last].State != c.State {
			out = append(
				out,
				Change{To: c.State, After: cells[last].Version, By: c.Version, Between: unknown},
			)
		}
		last, unknown = i, 0
	}
	return out
}

package survey

import (
	"fmt"
	"slices"
	"strings"
)

// Cell is what is known of one release.
type Cell struct {
	Version string `json:"version"`
	State   State  `json:"state"`
	Bad     int    `json:"bad"`          // runs that showed the bug
	Of      int    `json:"of"`           // runs with an answer about the release
	As      string `json:"as,omitempty"` // the releases of its class whose answer this is, for a release that did not run
	Class   int    `json:"class,omitempty"`
	Why     string `json:"why,omitempty"`
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
		return fmt.Sprintf("bad %d of %d", c.Bad, c.Of)
	case c.State == IsGood:
		return fmt.Sprintf("good %d", c.Of)
	}
	return string(c.State)
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
		row := Row{Branch: b.Name, Cells: make([]Cell, len(b.Releases))}
		for i, release := range b.Releases {
			row.Cells[i] = cellOf(release, r.Runs[release.Version])
		}
		for _, members := range b.members() {
			asNeighbours(row.Cells, members)
		}
		row.Changes = changes(row.Cells)
		rows = append(rows, row)
	}
	return rows
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
			return c
		case !one.Controls:
			c.State, c.Why = IsUnclear, "the controls were not as expected: "+one.Why
			continue
		case one.Result == Bad:
			c.Bad++
		case one.Result != Good:
			unclear = string(one.Result) + ": " + one.Why
		}
		c.Of++
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
// after agree. Members that differ split the class: between them nothing is known.
func asNeighbours(cells []Cell, members []int) {
	answered := func(from []int) int {
		return slices.IndexFunc(from, func(i int) bool { return cells[i].known() && cells[i].As == "" })
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
			out = append(out, Change{To: c.State, After: cells[last].Version, By: c.Version, Between: unknown})
		}
		last, unknown = i, 0
	}
	return out
}

// first and last return the ends of what is known of a row; nil if nothing is.
func (r Row) first() *Cell { return end(slices.Values(r.Cells)) }

func (r Row) last() *Cell {
	return end(func(yield func(Cell) bool) {
		for _, c := range slices.Backward(r.Cells) {
			if !yield(c) {
				return
			}
		}
	})
}

func end(cells func(yield func(Cell) bool)) *Cell {
	for c := range cells {
		if c.known() {
			return &c
		}
	}
	return nil
}

// Sentences returns the answers in words: for each branch where the bug came in and went, and then the releases that got
// it back.
func Sentences(rows []Row) (out []string) {
	for i, r := range rows {
		out = append(out, r.Branch+": "+r.sentence()+".")
		if back := gotBack(rows[:i], r); back != "" {
			out = append(out, back)
		}
	}
	return out
}

func (r Row) sentence() string {
	first, last := r.first(), r.last()
	if first == nil {
		return "no release has an answer"
	}
	if len(r.Changes) == 0 {
		word := map[State]string{IsBad: "bad", IsGood: "good"}[first.State]
		if first.Version == last.Version {
			return fmt.Sprintf("%s is %s, and nothing else is known", first.Version, word)
		}
		if first.State == IsBad {
			return fmt.Sprintf("bad from %s, the first that is known, to %s, and not fixed in it", first.Version, last.Version)
		}
		return fmt.Sprintf("good from %s to %s, as far as it is known", first.Version, last.Version)
	}
	var said []string
	if first.State == IsBad {
		said = append(said, fmt.Sprintf("bad from %s, the first that is known", first.Version))
	}
	for _, c := range r.Changes {
		if c.To == IsBad {
			said = append(said, "first bad in "+c.where())
		} else {
			said = append(said, "first fixed in "+c.where())
		}
	}
	if last.State == IsBad {
		said = append(said, fmt.Sprintf("and not fixed up to %s", last.Version))
	}
	return strings.Join(said, ", ")
}

// gotBack says that whoever goes from an older branch, whose newest known release is good, to this one gets the bug; ""
// if that is not so. Where the older branch had the bug, they get it back.
func gotBack(older []Row, r Row) string {
	last := r.last()
	if last == nil || last.State != IsBad {
		return ""
	}
	for _, o := range slices.Backward(older) {
		was := o.last()
		if was == nil || was.State != IsGood {
			continue
		}
		back := ""
		if slices.ContainsFunc(o.Cells, func(c Cell) bool { return c.State == IsBad }) {
			back = " back"
		}
		return fmt.Sprintf("Whoever goes from %s to %s gets it%s.", was.Version, last.Version, back)
	}
	return ""
}

// Unfixed returns the branches whose newest known release is bad.
func Unfixed(rows []Row) (out []string) {
	for _, r := range rows {
		if last := r.last(); last != nil && last.State == IsBad {
			out = append(out, r.Branch)
		}
	}
	return out
}

// Splits returns how many releases were run only to try their class, and how many of them differ from the answer of the
// class's ends.
func (r *Record) Splits() (tried, differ int) {
	rows := r.Rows()
	for _, c := range r.Chosen {
		if c.Why != Drawn && c.Why != OtherNearby {
			continue
		}
		for i, row := range rows {
			k := slices.IndexFunc(row.Cells, func(one Cell) bool { return one.Version == c.Version })
			if k < 0 || !row.Cells[k].known() {
				continue
			}
			for _, members := range r.Branches[i].members() {
				at := slices.Index(members, k)
				if at <= 0 {
					continue
				}
				if end := row.Cells[members[0]]; end.known() {
					tried++
					if end.State != row.Cells[k].State {
						differ++
					}
				}
			}
		}
	}
	return tried, differ
}

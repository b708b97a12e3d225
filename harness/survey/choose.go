package survey

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/kube-relapse/relapse/harness/plan/rate"
)

// Choice is a release to run, and why.
type Choice struct {
	Version string `json:"version"`
	Why     string `json:"why"`
}

// Why a release is run.
const (
	EndOfBranch = "first or last of its branch"
	NextToOther = "next to another class"
	OtherNearby = "what its packages import changes here"
	Drawn       = "drawn"
	OfSplit     = "of a class with good and bad ones"
)

// Choose returns the releases to run, those that answer most first: the ends of each branch; both sides of every change
// of class; within a class, releases at which what the packages import changes; and so many more that seed draws.
func Choose(branches []Branch, drawn int, seed int64) []Choice {
	var ends, sides, nearby []Choice
	var rest []string
	for _, b := range branches {
		classes := b.members()
		for n, members := range classes {
			for k, i := range members {
				r := b.Releases[i]
				first, last := k == 0, k == len(members)-1
				switch {
				case n == 0 && first || n == len(classes)-1 && last:
					ends = append(ends, Choice{r.Version, EndOfBranch})
				case first || last:
					sides = append(sides, Choice{r.Version, NextToOther})
				case r.Near != b.Releases[members[k-1]].Near:
					nearby = append(nearby, Choice{r.Version, OtherNearby})
				default:
					rest = append(rest, r.Version)
				}
			}
		}
	}
	slices.SortFunc(
		rest,
		func(a, b string) int { return cmp.Compare(lot(seed, a), lot(seed, b)) },
	)
	out := slices.Concat(ends, sides, nearby)
	for _, v := range rest[:min(drawn, len(rest))] {
		out = append(out, Choice{v, Drawn})
	}
	return out
}

// lot returns the number by which a release is drawn. It is the same whatever other releases there are, so that a survey
// that goes on draws those that it drew before.
func lot(seed int64, version string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(version))
	return rand.NewPCG(uint64(seed), h.Sum64()).Uint64()
}

// Choose chooses the releases to run. Those that turned out not to be buildable are passed over, as are those whose source
// can't be had. Where the releases of a class turned out to differ, the class stands for nothing: all of it is run.
func (r *Record) Choose() {
	left := slices.Clone(r.Branches)
	for i := range left {
		left[i].Releases = slices.Clone(left[i].Releases)
		for k, one := range left[i].Releases {
			if cellOf(one, r.Runs[one.Version]).State == IsUnavailable {
				left[i].Releases[k].Class = 0
			}
		}
	}
	r.Chosen = Choose(left, r.Drawn, r.Seed)
	for _, b := range left {
		cells := r.cells(b)
		for _, members := range b.members() {
			for _, i := range members {
				if split(cells, members) && !r.chosen(cells[i].Version) {
					r.Chosen = append(r.Chosen, Choice{cells[i].Version, OfSplit})
				}
			}
		}
	}
}

// split reports whether releases of a class are known to differ.
func split(cells []Cell, members []int) bool {
	has := func(s State) bool {
		return slices.ContainsFunc(members, func(i int) bool { return cells[i].State == s })
	}
	return has(IsBad) && has(IsGood)
}

// chooseMore chooses again after the chosen releases ran. It reports whether there are further ones to run: in place of
// those that could not be built, and one more that is drawn, unless the rate of those that differ is proven to be below a
// figure. A figure of 0 draws none.
func (r *Record) chooseMore(below float64) bool {
	was := r.Chosen
	r.Choose()
	if slices.Equal(was, r.Chosen) && !r.Confident(below) {
		r.Drawn = r.Tried().Drawn + 1
		r.Choose()
	}
	return !slices.Equal(was, r.Chosen)
}

// Confident reports whether the rate of releases that differ from their class is proven to be below a figure, or every
// release that can be had was run, so that no class stands for any. A figure of 0 asks for no proof.
func (r *Record) Confident(below float64) bool {
	if below == 0 || r.Tried().atMost() < below {
		return true
	}
	for _, row := range r.Rows() {
		if slices.ContainsFunc(row.Cells, func(c Cell) bool { return c.As != "" }) {
			return false
		}
	}
	return true
}

func (r *Record) chosen(version string) bool {
	return slices.ContainsFunc(r.Chosen, func(c Choice) bool { return c.Version == version })
}

// Tried says how the classes stood the test: how many of the releases that were drawn answer other than the certain runs
// of their class on both sides.
type Tried struct {
	Drawn   int `json:"drawn"`
	Of      int `json:"of"`      // those of them that ran, of a class whose certain runs on both sides agree
	Differ  int `json:"differ"`  // from these
	Unclear int `json:"unclear"` // gave no answer
	Split   int `json:"split"`   // classes with a good and a bad release, whether drawn or not
}

const confidence = 0.95

// atMost returns the upper bound of the rate of releases that differ. It holds whenever one stops, and takes those without
// an answer for such.
func (t Tried) atMost() float64 {
	_, high := rate.Sequence(rate.Count{K: t.Differ + t.Unclear, N: t.Of}, 1-confidence)
	return high
}

func (t Tried) String() string {
	said := fmt.Sprintf(
		"Of %d releases that were drawn to try their class, %d differ",
		t.Of,
		t.Differ,
	)
	if t.Unclear > 0 {
		said += fmt.Sprintf(" and %d gave no answer", t.Unclear)
	}
	if t.Of > 0 {
		said += ": " + rate.Anytime(rate.Count{K: t.Differ, N: t.Of}, t.Unclear, confidence)
	}
	return said + fmt.Sprintf(". %d classes have good and bad releases.", t.Split)
}

// Tried compares the drawn releases with the answer that they would have as members of their class.
func (r *Record) Tried() (t Tried) {
	why := map[string]string{}
	for _, c := range r.Chosen {
		why[c.Version] = c.Why
	}
	for _, b := range r.Branches {
		ran, certain := r.cells(b), r.cells(b)
		for i, c := range certain {
			switch why[c.Version] {
			case Drawn:
				t.Drawn++
				fallthrough
			case OfSplit, "": // it ran because others did, or in an earlier survey
				certain[i].State = IsNotRun
			}
		}
		for _, members := range b.members() {
			asNeighbours(certain, members)
			for _, i := range members {
				if why[ran[i].Version] == Drawn && ran[i].State != IsNotRun && certain[i].known() {
					t.Of++
					t.Differ += count(ran[i].known() && ran[i].State != certain[i].State)
					t.Unclear += count(!ran[i].known())
				}
			}
			t.Split += count(split(ran, members))
		}
	}
	return t
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

package survey

import (
	"math/rand/v2"
	"slices"
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
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	out := slices.Concat(ends, sides, nearby)
	for _, v := range rest[:min(drawn, len(rest))] {
		out = append(out, Choice{v, Drawn})
	}
	return out
}

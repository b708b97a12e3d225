package survey

import (
	"fmt"
	"slices"
	"strings"
)

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
			return fmt.Sprintf(
				"bad from %s, the first that is known, and not fixed up to %s",
				first.Version,
				last.Version,
			)
		}
		return fmt.Sprintf(
			"good from %s to %s, as far as it is known",
			first.Version,
			last.Version,
		)
	}
	var said []string
	if first.State == IsBad {
		said = append(said, fmt.Sprintf("bad from %s, the first that is known", first.Version))
	}
	word := map[State]string{IsBad: "first bad in ", IsGood: "first fixed in "}
	if first.State == IsBad {
		word[IsBad] = "bad again in "
	}
	for _, c := range r.Changes {
		said = append(said, word[c.To]+c.where())
		word[c.To] = map[State]string{IsBad: "bad again in ", IsGood: "fixed again in "}[c.To]
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
		return fmt.Sprintf(
			"Whoever goes from %s to %s gets it%s.",
			was.Version,
			last.Version,
			back,
		)
	}
	return ""
}

// Unfixed returns the branches whose newest known release is bad, each with that release, and the branches of which
// nothing is known.
func Unfixed(rows []Row) (unfixed, unknown []string) {
	for _, r := range rows {
		switch last := r.last(); {
		case last == nil:
			unknown = append(unknown, r.Branch)
		case last.State == IsBad:
			unfixed = append(unfixed, fmt.Sprintf("%s (up to %s)", r.Branch, last.Version))
		}
	}
	return unfixed, unknown
}

package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// unproven says why a dump that others took may lack goroutines although its text isn't cut off, "" if the dump shows
// that it is complete. A complete dump begins with the first goroutine of the process; the beginning is missing if
// somebody pasted a part, filtered, or kept the end. A panic prints only one goroutine, unless GOTRACEBACK says
// otherwise, and that may be the first. A crash prints no stack of what runs on other threads.
func (s *source) unproven(d *goroutine.Found) string {
	first, unseen, begun := false, false, false
	for _, g := range d.Groups {
		first, unseen = first || slices.Contains(g.IDs, 1), unseen || len(g.Frames) == 0
		begun = begun || slices.Contains(g.IDs, 1) && beginsInMain(g)
	}
	switch {
	case !d.Format.HasStates(): // its total says how many there are
		return ""
	case !first:
		return "may be a part of a dump: goroutine 1, which a whole one has, isn't there"
	case d.Total == 1:
		return "may be a part of a dump: it is one goroutine, as of a panic"
	case !begun:
		return "may be a part of a dump: the stack of goroutine 1 doesn't begin in the program's main function"
	case d.Open:
		return "may be a part of a dump: its last stack doesn't say what created the goroutine"
	case unseen:
		return "may lack something: it doesn't show the stack of what runs"
	}
	if n := len(s.dumps); n > 0 && len(s.dumps[n-1].Groups) == 0 && d.Total < s.dumps[n-1].Total { // a header alone
		return fmt.Sprintf("is a part of a dump: the line above it counts %d goroutines", s.dumps[n-1].Total)
	}
	return ""
}

// beginsInMain reports whether the outermost function of a goroutine is of the program's main package, or the runtime's
// own that calls it. The stack of goroutine 1 of every program begins so, and ends elsewhere only where it was cut.
func beginsInMain(g goroutine.Group) bool {
	if len(g.Frames) == 0 {
		return true // none was to be seen
	}
	outer := g.Frames[len(g.Frames)-1].Func
	return isMain(outer) || strings.HasPrefix(outer, "runtime.") || strings.HasPrefix(outer, "...") || outer == "main"
}

// beside says why a dump may be a part, where a profile of the process counts more than twice as many goroutines; ""
// if none does.
func (d dumped) beside(counted int) string {
	if d.part != "" || d.Truncated || d.Total*2 >= counted {
		return ""
	}
	return fmt.Sprintf(
		"may be a part of a dump: it has %d goroutines, and a profile beside it %d",
		d.Total,
		counted,
	)
}

// partOf names a profile of these kinds that may be only a part, and says why; "" if there is none. Dumps count among
// them where a check doesn't ask for each by itself.
func (f *foreign) partOf(kinds []bundle.Kind) string {
	for _, a := range f.artifacts {
		if why := f.parts[a.Path]; why != "" && slices.Contains(kinds, a.Kind) {
			return a.Path + " is only a part: " + why
		}
	}
	return ""
}

// doubted returns the text of a finding with the reason why a dump may be a part. Checks take such dumps to be cut
// short, and say so.
func (f *foreign) doubted(seen string) string {
	for _, a := range f.Artifacts(bundle.Query{Kind: bundle.Goroutines2}) {
		if why := f.parts[a.Path]; why != "" {
			seen = strings.ReplaceAll(seen, a.Path+" is cut short", a.Path+" "+why)
		}
	}
	return seen
}

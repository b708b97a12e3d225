package match

import (
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// unproven says why a dump that others took may lack goroutines although its text isn't cut, "" if it shows that it is
// whole. A process's first goroutine stands at the beginning of all of them, and what one pastes, filters or keeps the end
// of begins elsewhere. A panic prints one goroutine, unless GOTRACEBACK says otherwise, and that may be the first.
func unproven(d *goroutine.Dump) string {
	first := slices.ContainsFunc(d.Groups, func(g goroutine.Group) bool { return slices.Contains(g.IDs, 1) })
	switch {
	case !d.Format.HasStates(): // its total says how many there are
		return ""
	case !first:
		return "may be a part of a dump: goroutine 1, which a whole one has, isn't there"
	case d.Total == 1:
		return "may be a part of a dump: it is one goroutine, as of a panic"
	}
	return ""
}

// doubted is what a check has seen, with the dumps named that may be parts of some: for checks they are cut short.
func (f *foreign) doubted(seen string) string {
	for _, a := range f.Artifacts(bundle.Query{Kind: bundle.Goroutines2}) {
		if why := f.parts[a.Path]; why != "" {
			seen = strings.ReplaceAll(seen, a.Path+" is cut short", a.Path+" "+why)
		}
	}
	return seen
}

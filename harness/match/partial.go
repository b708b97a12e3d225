package match

import (
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// unproven says why a dump that others took may lack goroutines although its text isn't cut off, "" if the dump shows
// that it is complete. A complete dump begins with the first goroutine of the process; the beginning is missing if
// somebody pasted a part, filtered, or kept the end. A panic prints only one goroutine, unless GOTRACEBACK says
// otherwise, and that may be the first.
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

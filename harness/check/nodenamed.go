package check

import (
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// ofCluster is the cell under which a kind is recorded for the whole of a cell's cluster: the cell's own name where the cell has the cluster to
// itself, bundle.Shared where it shares it.
func ofCluster(v bundle.View, kind bundle.Kind, cell string) string {
	if len(v.Artifacts(bundle.Query{Kind: kind, Cell: bundle.Shared})) > 0 {
		return bundle.Shared
	}
	return cell
}

// nodeNamed is the full name of a node among some, by its name relative to the cell's cluster: that cluster is named after the run, and after the
// cell if the cell has it to itself. "" if there is none, whatever else may end alike.
func nodeNamed(v bundle.View, cell, relative string, among []string) string {
	run := v.World().Run
	for _, full := range []string{run + "-" + relative, run + "-" + cell + "-" + relative} {
		if run != "" && slices.Contains(among, full) {
			return full
		}
	}
	return ""
}

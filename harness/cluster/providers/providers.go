// Package providers has the names of all that can make clusters, for those who know nothing else of clusters.
package providers

// A scenario that names none runs on Kind.
const (
	Kind      = "kind"
	Processes = "processes"
)

// All are in the order in which they were added.
var All = []string{Kind, Processes}

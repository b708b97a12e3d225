// Package providers lists the names of the cluster providers, for packages that know nothing else about clusters.
package providers

// The names of the providers. A scenario that names none runs on Kind.
const (
	Kind      = "kind"
	Processes = "processes"
)

// All lists the providers in the order in which they were added.
var All = []string{Kind, Processes}

// Package provider is how clusters come to be and go: the interface that each provider implements, in a package of its own beside
// this one, and the waiting that is the same for all of them.
package provider

import (
	"context"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// Provider makes clusters and removes them. It is safe for concurrent use.
type Provider interface {
	// Capabilities says what the clusters will be able to do, before any exists.
	Capabilities(ctx context.Context) (cluster.Capabilities, error)
	// Create makes a cluster and returns once its nodes are registered and have a network; WaitReady waits for the rest.
	// When it fails, or when ctx ends, it has removed what it made.
	Create(ctx context.Context, name string, t cluster.Topology) (cluster.Cluster, error)
	// Delete removes the cluster and all that was made for it, also when it is only half there. It is nil if there is none,
	// and needs no memory of the Create.
	Delete(ctx context.Context, name string) error
}

// Opener is a Provider that can take up a cluster that another process made.
type Opener interface {
	Open(ctx context.Context, name string) (cluster.Cluster, error)
}

// Layer is a Node on which a file that was laid at creation can be replaced. The new content is in effect when Lay returns and
// survives a loss of power; what already runs from the old file goes on doing so until it is restarted.
type Layer interface {
	// Lay puts a copy of source, a file on the host, at path in the node.
	Lay(ctx context.Context, path, source string) error
}

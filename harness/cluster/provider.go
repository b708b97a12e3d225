package cluster

import "context"

// Provider makes clusters and removes them. It is safe for concurrent use.
type Provider interface {
	// Name is what a user calls it: "kind".
	Name() string
	// Capabilities says what the clusters will be able to do, before any exists.
	Capabilities(ctx context.Context) (Capabilities, error)
	// Create makes a cluster and returns once its nodes are registered and have a network; WaitReady waits for the rest.
	// When it fails, or when ctx ends, it has removed what it made.
	Create(ctx context.Context, name string, t Topology) (Cluster, error)
	// Delete removes the cluster and all that was made for it, also when it is only half there. It is nil if there is none,
	// and needs no memory of the Create.
	Delete(ctx context.Context, name string) error
	// KubeconfigPath is where the cluster's kubeconfig stands while it exists, readable by its owner only.
	KubeconfigPath(name string) string
}

// Installer is a Node on which a file that was installed at creation can be replaced. The new content is in effect when Install returns and
// survives a loss of power; what already runs from the old file goes on doing so until it is restarted.
type Installer interface {
	// Install puts a copy of source, a file on the host, at path in the node.
	Install(ctx context.Context, path, source string) error
}

// Package kind makes clusters of containers with kind's library.
//
// Every part of a cluster can be found by the cluster's name alone: the containers have kind's own cluster label, the
// network a label of relapse, and the files are in one folder of the provider's directory. The user's kubeconfig is
// never read or written: the cluster's own is in that folder, and clients are made from its bytes.
package kind

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/internal/docker"
	"github.com/kube-relapse/relapse/internal/host"
)

// Options say where a provider keeps its files and where it reports. Dir is required: an absolute path, private to
// the run, on the engine's host, because nodes mount files from it.
type Options struct {
	Dir    string
	Events *event.Stream // nil drops the progress lines
	Cache  string        // the cache directory for node images; "" means the user's
	Retain bool          // keep what a failed Create left, for a look at it; Delete still removes it
}

// Provider implements cluster.Provider over docker.
type Provider struct {
	dir    string
	cache  string
	events *event.Stream
	retain bool
	docker *docker.Client

	mu     sync.Mutex
	images map[string]host.NodeImage // those prepared, by Kubernetes version

	bounded func() (bool, error) // asked once: the probe runs a container
	single  func() string        // asked once: a registry may be asked
}

// New returns a provider. It fails if Dir is not an absolute path. It doesn't look for the docker client, which is left
// to Check.
func New(o Options) (*Provider, error) {
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf(
			"making a kind provider: its directory %q is not an absolute path",
			o.Dir,
		)
	}
	p := &Provider{dir: o.Dir, cache: o.Cache, events: o.Events, retain: o.Retain,
		docker: &docker.Client{Path: "docker"}}
	p.images = map[string]host.NodeImage{}
	p.bounded = sync.OnceValues(
		func() (bool, error) { return host.Bounded(context.Background(), p.docker) },
	)
	p.single = sync.OnceValue(
		func() string { return oneControlPlane(context.Background(), p.docker) },
	)
	return p, nil
}

// Name returns "kind".
func (p *Provider) Name() string { return "kind" }

// Capabilities returns what the clusters can do. Once per provider, it probes the engine with a privileged container.
func (p *Provider) Capabilities(context.Context) (cluster.Capabilities, error) {
	bounded, err := p.bounded()
	if err != nil {
		return cluster.Capabilities{}, fmt.Errorf("probing what kind's nodes can do: %w", err)
	}
	can := cluster.CapabilitiesOf(p.create)
	can.NodeFiles, can.Kubelets, can.Bounded, can.OneControlPlane = true, true, bounded, p.single
	return can, nil
}

// Retain does nothing: clusters of containers stay until they are deleted.
func (p *Provider) Retain(context.Context, string) error { return nil }

// clusterName matches the names that clusters have; Delete touches no other. kind appends "-control-plane", and a
// host's name ends at 63 characters.
var clusterName = regexp.MustCompile(`^relapse-[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$`)

func checkName(name string) error {
	if !clusterName.MatchString(name) {
		return fmt.Errorf(
			"the name %q is not one of ours: want relapse- and up to 42 of a-z, 0-9 and -",
			name,
		)
	}
	return nil
}

// KubeconfigPath returns the path of the cluster's kubeconfig, which exists as long as the cluster and which only its
// owner can read.
func (p *Provider) KubeconfigPath(name string) string {
	return filepath.Join(p.home(name), "kubeconfig")
}

// home returns the folder with all files of a cluster.
func (p *Provider) home(name string) string { return filepath.Join(p.dir, name) }

// Open opens an existing cluster, even if another process made it. The nodes' arms, which only its topology knew, are
// read from the cluster's folder if that exists.
func (p *Provider) Open(ctx context.Context, name string) (cluster.Cluster, error) {
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("opening a cluster: %w", err)
	}
	rec, err := p.recall(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %q: %w", name, err)
	}
	c := newCluster(p, name, cluster.Topology{Nodes: rec.Nodes})
	c.own = rec.Own
	if err := c.connect(ctx); err != nil {
		return nil, fmt.Errorf("opening cluster %q: %w", name, err)
	}
	return c, nil
}

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
	"github.com/kube-relapse/relapse/harness/cluster/kind/engine"
	"github.com/kube-relapse/relapse/harness/cluster/kind/nodeimage"
	"github.com/kube-relapse/relapse/harness/event"
)

// Options say where a provider keeps its files and where it reports. Dir is required: an absolute path, private to
// the run, on the engine's host, because nodes mount files from it.
type Options struct {
	Dir    string
	Events *event.Stream // nil drops the progress lines
	Cache  string        // the cache directory, of node images; "" is the user's
	Retain bool          // keep what a failed Create left, for a look at it; Delete still removes it
}

// Provider implements cluster.Provider over docker.
type Provider struct {
	dir    string
	cache  string
	events *event.Stream
	retain bool
	docker *engine.Engine

	mu     sync.Mutex
	images map[string]nodeimage.Image // that were prepared, by Kubernetes version

	bounded func() (bool, error) // asked once: the probe runs a container
	single  func() string        // asked once: a registry may be asked
}

// New returns a provider. It fails if Dir is not an absolute path. That there is no docker client is Check's to find.
func New(o Options) (*Provider, error) {
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("making a kind provider: its directory %q is not an absolute path", o.Dir)
	}
	p := &Provider{dir: o.Dir, cache: o.Cache, events: o.Events, retain: o.Retain,
		docker: &engine.Engine{Name: "docker", Path: "docker"}}
	p.images = map[string]nodeimage.Image{}
	p.bounded = sync.OnceValues(func() (bool, error) { return engine.Bounded(context.Background(), p.docker) })
	p.single = sync.OnceValue(func() string { return oneControlPlane(context.Background(), p.docker) })
	return p, nil
}

// Name returns "kind".
func (p *Provider) Name() string { return "kind" }

// Capabilities probes the engine with a privileged container, and looks for the load balancer that several control
// planes take, once for each provider.
func (p *Provider) Capabilities(context.Context) (cluster.Capabilities, error) {
	single := make(chan string, 1)
	go func() { single <- p.single() }() // beside the probe, which takes longer
	bounded, err := p.bounded()
	if err != nil {
		return cluster.Capabilities{}, fmt.Errorf("probing what kind's nodes can do: %w", err)
	}
	return cluster.Capabilities{Exec: true, Power: true, NodeFiles: true, Kubelets: true, Bounded: bounded,
		OneControlPlane: <-single}, nil
}

// clusterName is what names have to look like: Delete touches nothing else. kind appends "-control-plane", and a
// host's name ends at 63 characters.
var clusterName = regexp.MustCompile(`^relapse-[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$`)

func checkName(name string) error {
	if !clusterName.MatchString(name) {
		return fmt.Errorf("the name %q is not one of ours: want relapse- and up to 42 of a-z, 0-9 and -", name)
	}
	return nil
}

// KubeconfigPath is where the cluster's kubeconfig stands while it exists, readable by its owner only.
func (p *Provider) KubeconfigPath(name string) string {
	return filepath.Join(p.home(name), "kubeconfig")
}

// home is the folder of all files of a cluster.
func (p *Provider) home(name string) string { return filepath.Join(p.dir, name) }

// Open opens an existing cluster, also one made by another process. The nodes' arms, which only its topology knew,
// are read from the cluster's folder if that exists.
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

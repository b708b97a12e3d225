// Package kind makes clusters of containers with kind's library.
//
// Every part of a cluster can be found by the cluster's name alone: the containers have kind's own cluster label, the
// network a label of relapse, and the files are in one folder of the provider's directory. The user's kubeconfig is
// never read or written: the cluster's own is in that folder, and clients are made from its bytes.
package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"
	kindexec "sigs.k8s.io/kind/pkg/exec"

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

// Create makes the cluster. It writes a node's CNI configuration and routes as soon as the node has a pod range,
// while kind is still busy with the others. The images must be in the engine already.
func (p *Provider) Create(ctx context.Context, name string, t cluster.Topology) (cluster.Cluster, error) {
	c, err := p.create(ctx, name, t)
	if err == nil {
		return c, nil
	}
	err = fmt.Errorf("creating cluster %q: %w", name, err)
	if checkName(name) != nil || errors.Is(err, errExists) || p.retain {
		return nil, err // not ours to remove, or asked to keep it
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTime)
	defer cancel()
	return nil, errors.Join(err, p.Delete(undo, name))
}

// deleteTime is how long the removal of a cluster may take; it takes a second or two.
const deleteTime = 2 * time.Minute

var errExists = errors.New("there is one of that name already")

func (p *Provider) create(ctx context.Context, name string, t cluster.Topology) (*Cluster, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	t = p.imaged(t)
	if err := p.refuse(ctx, name, t); err != nil {
		return nil, err
	}
	caps, err := p.Capabilities(ctx)
	if err != nil {
		return nil, err
	}
	if n := controlPlanes(t); n > 1 && caps.OneControlPlane != "" {
		return nil, fmt.Errorf("the topology has %d control planes: want one, as %s", n, caps.OneControlPlane)
	}
	if err := os.MkdirAll(p.home(name), 0o700); err != nil {
		return nil, err
	}
	cfg, err := configure(t, filepath.Join(p.home(name), "nodes"), caps.Bounded)
	if err != nil {
		return nil, err
	}
	if err := p.makeNetwork(ctx, name, t.Network); err != nil {
		return nil, err
	}
	c := newCluster(p, name, t)
	c.own = cfg.Networking.DisableDefaultCNI
	if err := p.remember(c, t); err != nil {
		return nil, err
	}
	log := &logger{events: p.events, controlPlane: make(chan struct{})}
	raw, err := encode(cfg)
	if err != nil {
		return nil, err
	}

	work, both := errgroup.WithContext(ctx)
	work.Go(func() error {
		defer log.reached() // when kind fails the network's turn never comes, and ctx ends
		return p.runKind(both, name, t.Network, log, raw)
	})
	if c.own {
		work.Go(func() error {
			select {
			case <-both.Done():
				return both.Err()
			case <-log.controlPlane:
			}
			return c.connectAll(both)
		})
	}
	if err := work.Wait(); err != nil {
		return nil, p.diagnose(name, err)
	}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c, c.leaveOutDNS(ctx)
}

// refuse finds what would fail late, before anything is made.
func (p *Provider) refuse(ctx context.Context, name string, t cluster.Topology) error {
	nodes, err := p.containers(ctx, name)
	if err != nil {
		return err
	}
	if len(nodes) > 0 {
		return fmt.Errorf("%w: containers %s", errExists, strings.Join(nodes, ", "))
	}
	if t.Network == "" {
		return errors.New("the topology names no network")
	}
	seen := map[string]bool{}
	for _, n := range t.Nodes {
		if n.Image == "" {
			return fmt.Errorf("node %q has no image, and none was prepared for %s", n.Name, t.Version)
		}
		if seen[n.Image] {
			continue
		}
		seen[n.Image] = true
		if _, err := p.docker.Output(ctx, "image", "inspect", "--format", "{{.Id}}", n.Image); err != nil {
			return fmt.Errorf("looking for the node image %q: %w", n.Image, err)
		}
	}
	return nil
}

// networkMu guards the process's environment, the only way to tell kind its network's name. A Create holds it until
// kind has read that; the rest of it runs concurrently.
var networkMu sync.Mutex

// networkVar is read by kind's docker provider in Create.
const networkVar = "KIND_EXPERIMENTAL_DOCKER_NETWORK"

// setNetwork names the network in the environment. restore puts back what was there; it may be called more than once.
func setNetwork(network string) (restore func(), err error) {
	networkMu.Lock()
	before, had := os.LookupEnv(networkVar)
	if err := os.Setenv(networkVar, network); err != nil {
		networkMu.Unlock()
		return nil, err
	}
	return sync.OnceFunc(func() {
		defer networkMu.Unlock()
		if had {
			_ = os.Setenv(networkVar, before) // it was valid before
		} else {
			_ = os.Unsetenv(networkVar)
		}
	}), nil
}

// runKind runs kind's Create, which takes no context: when ctx ends, its containers are removed until it gives up.
func (p *Provider) runKind(ctx context.Context, name, network string, log *logger, config []byte) error {
	restore, err := setNetwork(network)
	if err != nil {
		return err
	}
	defer restore()
	log.network = restore

	done := make(chan error, 1)
	go func() {
		done <- kindcluster.NewProvider(kindcluster.ProviderWithDocker(),
			kindcluster.ProviderWithLogger(log)).Create(name,
			kindcluster.CreateWithRawConfig(config),
			kindcluster.CreateWithKubeconfigPath(p.KubeconfigPath(name)),
			kindcluster.CreateWithRetain(true), // the removal is ours, after a look at what went wrong
			kindcluster.CreateWithDisplayUsage(false),
			kindcluster.CreateWithDisplaySalutation(false))
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTime)
	defer cancel()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		_ = p.removeContainers(undo, name) // Delete reports what is left
		select {
		case <-done:
			return ctx.Err()
		case <-undo.Done():
			return fmt.Errorf("%w; kind did not give up within %s", ctx.Err(), deleteTime)
		case <-tick.C:
		}
	}
}

// diagnose adds what kind's error hides: the end of the output of the command that failed.
func (p *Provider) diagnose(name string, err error) error {
	var run *kindexec.RunError
	if !errors.As(err, &run) || len(run.Output) == 0 {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(run.Output)), "\n")
	if len(lines) > 25 {
		lines = lines[len(lines)-25:]
	}
	return fmt.Errorf("%w; the end of its output:\n%s", err, strings.Join(lines, "\n"))
}

// Open opens an existing cluster, also one made by another process. The nodes' cells, which only its topology knew,
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

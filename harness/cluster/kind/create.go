package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"
	kindexec "sigs.k8s.io/kind/pkg/exec"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
)

// Create makes the cluster. It writes a node's CNI configuration and routes as soon as the node has a pod range, while
// kind is still busy with the others. The images must be in the engine already. If the host is so busy that kind gives
// up on nodes that boot too slowly, Create tries once more.
func (p *Provider) Create(
	ctx context.Context,
	name string,
	t cluster.Topology,
) (cluster.Cluster, error) {
	c, err := p.createOnce(ctx, name, t)
	if err != nil && ctx.Err() == nil && !p.retain && strings.Contains(err.Error(), slowBoot) {
		p.events.Say(
			event.Warning,
			fmt.Sprintf("the nodes of %s did not boot within the 30 seconds that kind waits: "+
				"this host is busy; trying once more", name),
		)
		c, err = p.createOnce(ctx, name, t)
	}
	if err != nil { // c, a nil *Cluster, would be no nil interface
		return nil, err
	}
	return c, nil
}

// slowBoot is part of the error that kind returns for a node whose log didn't say in time that it has booted. The error
// has no type.
const slowBoot = "could not find a log line that matches"

// createOnce makes the cluster, and removes what it has made if it fails.
func (p *Provider) createOnce(
	ctx context.Context,
	name string,
	t cluster.Topology,
) (*Cluster, error) {
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

func (p *Provider) create(
	ctx context.Context,
	name string,
	t cluster.Topology,
) (*Cluster, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	t = p.imaged(t)
	t.Nodes = withDaemonPrograms(t.Nodes)
	daemons, err := seamsOfDaemons(t.Nodes)
	if err != nil {
		return nil, err
	}
	t.Nodes = withDaemonSeams(t.Nodes, daemons)
	if err := p.refuse(ctx, name, t); err != nil {
		return nil, err
	}
	caps, err := p.Capabilities(ctx)
	if err != nil {
		return nil, err
	}
	if n := controlPlanes(t); n > 1 {
		if why := p.single(); why != "" {
			return nil, fmt.Errorf("the topology has %d control planes: want one, as %s", n, why)
		}
	}
	// There are no containers of that name. What a cluster without Delete left would be taken for this one's: its kubeconfig.
	if err := errors.Join(os.RemoveAll(p.home(name)), os.MkdirAll(p.home(name), 0o700)); err != nil {
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
		defer log.reached() // if kind fails, the other goroutine ends with its context
		return p.runKind(both, name, t.Network, log, raw)
	})
	work.Go(func() error {
		select {
		case <-both.Done():
			return both.Err()
		case <-log.controlPlane:
		}
		if err := errors.Join(c.changeDaemons(both, t.Nodes, daemons), c.addPods(both, t.Nodes)); err != nil || !c.own {
			return err
		}
		return c.connectAll(both)
	})
	if err := work.Wait(); err != nil {
		return nil, p.diagnose(name, err)
	}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	if err := c.awaitLed(ctx, daemons); err != nil {
		return nil, err
	}
	return c, c.leaveOutDNS(ctx)
}

// refuse returns an error for what would fail late, before anything is made.
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
			return fmt.Errorf(
				"node %q has no image, and none was prepared for %s",
				n.Name,
				t.Version,
			)
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

// networkMu guards the process's environment, the only way to tell kind its network's name. A Create holds the lock
// until kind has read the name. The rest of Create runs concurrently.
var networkMu sync.Mutex

// networkVar is the variable in which kind's docker provider looks for its network's name.
const networkVar = "KIND_EXPERIMENTAL_DOCKER_NETWORK"

// setNetwork sets networkVar, and locks networkMu until restore is called. restore puts back the old value; it may be
// called more than once.
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

// runKind runs kind's Create, which takes no context. When ctx ends, runKind removes the cluster's containers until
// kind gives up.
func (p *Provider) runKind(
	ctx context.Context,
	name, network string,
	log *logger,
	config []byte,
) error {
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

// diagnose adds to kind's error the end of the failed command's output, which the error hides.
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

// Package processes makes clusters of plain processes: etcd, kube-apiserver, kube-controller-manager and kube-scheduler
// on this host's loopback. They run as the user who starts them, without a container engine, root or a network. There
// is no kubelet, so the only Node objects and running pods are those that kwok simulates, where a topology asks for
// them.
//
// A cluster is a folder of the provider's directory and a supervisor. The supervisor is a separate process that starts
// the components, counts their restarts and writes their logs. It ends with the process that made the cluster, however
// that ends, and the components end with it.
//
// The flags and certificates are modelled on controller-runtime's envtest. envtest itself is not used, because it hides
// its processes: nobody can tell which they are, start one again, give them a parent-death signal or leave them
// running. Its certificates are internal, too.
package processes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
)

// Options say where a provider keeps its files and how its supervisors are started. Dir and Supervisor are required.
type Options struct {
	Dir        string        // an absolute path, private to the user
	Supervisor []string      // a command that calls Supervise with the folder that it gets as an argument, and stdin
	Events     *event.Stream // nil drops the progress lines
	// Containers is the folder of the sockets of other containers of this pod, in each of which Contain runs. Components
	// whose memory is limited run there. "" if there are none: their memory is limited by cgroups that are made here.
	Containers string
}

// Provider implements cluster.Provider.
type Provider struct {
	dir        string
	supervisor []string
	events     *event.Stream
	containers string

	mu        sync.Mutex
	lifelines map[string]*lifeline         // of the clusters that this process made
	programs  map[string]map[string]string // by Kubernetes version and component
}

// New returns a provider. It fails if an option is missing or Dir is not an absolute path.
func New(o Options) (*Provider, error) {
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf(
			"making a provider of processes: its directory %q is not an absolute path",
			o.Dir,
		)
	}
	if len(o.Supervisor) == 0 {
		return nil, errors.New("making a provider of processes: there is no command for its supervisors")
	}
	return &Provider{dir: o.Dir, supervisor: o.Supervisor, events: o.Events, containers: o.Containers,
		lifelines: map[string]*lifeline{}, programs: map[string]map[string]string{}}, nil
}

// Name returns "processes".
func (p *Provider) Name() string { return "processes" }

// Capabilities returns what the clusters can do, which is nothing that takes a machine.
func (p *Provider) Capabilities(context.Context) (cluster.Capabilities, error) {
	can := cluster.CapabilitiesOf(p.create)
	can.Seams = slices.Sorted(maps.Keys(seamProcesses))
	can.OneControlPlane = func() string { return "the components of several would have to share this host's loopback" }
	if p.containers == "" {
		can.NoMemoryLimits = noMemoryLimits()
	}
	return can, nil
}

// clusterName matches the names that clusters have; Delete touches no other.
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

// home returns the folder with all files of a cluster.
func (p *Provider) home(name string) string { return filepath.Join(p.dir, name) }

// KubeconfigPath returns the path of the cluster's kubeconfig, which exists as long as the cluster and which only its
// owner can read.
func (p *Provider) KubeconfigPath(name string) string {
	return filepath.Join(p.home(name), adminConfig)
}

var errExists = errors.New("there is one of that name already")

// portTries is how often Create tries to make a cluster. It tries again, with new ports, if somebody took a port before
// its component could.
const portTries = 3

// Create makes the cluster and returns once all its components are ready for work.
func (p *Provider) Create(
	ctx context.Context,
	name string,
	t cluster.Topology,
) (cluster.Cluster, error) {
	var c *Cluster
	var err error
	for range portTries {
		if c, err = p.create(ctx, name, t); err == nil {
			return c, nil
		}
		if checkName(name) != nil || errors.Is(err, errExists) {
			break // nothing was made
		}
		taken := errors.Is(err, errPortTaken)
		err = errors.Join(err, p.Delete(context.WithoutCancel(ctx), name))
		if !taken || ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("creating cluster %q: %w", name, err)
}

func (p *Provider) create(
	ctx context.Context,
	name string,
	t cluster.Topology,
) (*Cluster, error) {
	if err := errors.Join(ctx.Err(), checkName(name)); err != nil {
		return nil, err
	}
	p.mu.Lock()
	programs := p.programs[t.Version]
	p.mu.Unlock()
	spec, err := onlyNode(t, programs)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(p.home(name), 0o700); errors.Is(err, fs.ErrExist) {
		return nil, errExists
	} else if err != nil {
		return nil, err
	}
	l, err := layOut(p.home(name), name, t, spec)
	if err != nil {
		return nil, err
	}
	c, err := p.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	line, err := p.supervise(l.home)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.lifelines[name] = line
	p.mu.Unlock()
	made := c.(*Cluster)
	made.line = line
	if err := made.start(ctx, line, p.events); err != nil {
		return made, err
	}
	return made, made.simulate(ctx, spec.Labels)
}

// Delete ends the cluster's processes and removes its folder.
func (p *Provider) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("deleting a cluster: %w", err)
	}
	err := p.end(ctx, name)
	if err == nil { // else processes may be in them
		err = removeMemoryGroups(ctx, p.home(name), name)
	}
	if err := errors.Join(err, os.RemoveAll(p.home(name))); err != nil {
		return fmt.Errorf("deleting cluster %q: %w", name, err)
	}
	return nil
}

// Retain makes the cluster outlive this process.
func (p *Provider) Retain(_ context.Context, name string) error {
	p.mu.Lock()
	line := p.lifelines[name]
	p.mu.Unlock()
	if line == nil {
		return fmt.Errorf("retaining cluster %q: this process didn't make it", name)
	}
	if err := line.order(orderRetain); err != nil {
		return fmt.Errorf("retaining cluster %q: %w", name, err)
	}
	return nil
}

// endTime is how long killed processes may take to be gone.
const endTime = 20 * time.Second

// end kills the supervisor, with which the components end, and waits until all these processes are gone.
func (p *Provider) end(ctx context.Context, name string) error {
	p.mu.Lock()
	line := p.lifelines[name]
	delete(p.lifelines, name)
	p.mu.Unlock()
	all, err := processesOf(p.home(name))
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.name == supervisorName {
			err = errors.Join(err, one.kill())
		}
	}
	if line != nil {
		err = errors.Join(err, line.close())
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	for _, one := range all {
		err = errors.Join(err, one.awaitExit(ctx))
	}
	return err
}

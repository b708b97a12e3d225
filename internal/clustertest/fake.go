// Package clustertest has a cluster in memory, with the capabilities of a real one, and the conformance suite for
// both.
//
// The fake's nodes have processes that can be identified, signalled and restarted, a power switch, and commands that
// are functions. Its API server is a real HTTP server for client-go's clients and informers. The test scripts what
// components answer and log.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// Cluster is a cluster in memory. It implements cluster.Cluster; Close frees its API server.
type Cluster struct {
	cluster.Machines[*Node] // in the topology's order

	name string
	api  *API
	etcd lazyEtcd
}

// New makes a cluster of the topology with all nodes Ready and a kubelet on each, a kube-apiserver and an etcd on
// each control plane.
func New(name string, t cluster.Topology) *Cluster { return newCluster(name, t, nil) }

func newCluster(name string, t cluster.Topology, p *pipes) *Cluster {
	c := &Cluster{name: name, api: newAPI(p)}
	for i, spec := range t.Nodes {
		n := &Node{
			name:     name + "-" + spec.Name,
			spec:     spec,
			cluster:  c,
			on:       true,
			booted:   time.Now(),
			files:    map[string][]byte{},
			programs: map[string][]byte{},
			handlers: map[string]ExecFunc{},
		}
		for _, f := range spec.Files {
			n.files[f.Path] = f.Content
			if f.Source != "" {
				n.files[f.Path], _ = os.ReadFile(f.Source) // one that isn't there is empty
			}
		}
		for component, path := range spec.Programs {
			n.programs[component], _ = os.ReadFile(path) // one that isn't there is empty
		}
		n.components = append(n.components, newComponent(n, "kubelet", 100))
		if spec.Role == cluster.ControlPlane {
			n.components = append(
				n.components,
				newComponent(n, "kube-apiserver", 200),
				newComponent(n, "etcd", 300),
			)
		}
		c.Machines = append(c.Machines, n)
		c.api.PutNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: spec.Labels},
			Spec:       corev1.NodeSpec{PodCIDR: fmt.Sprintf("10.244.%d.0/24", i)},
			Status: corev1.NodeStatus{
				Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP,
					Address: fmt.Sprintf("192.0.2.%d", i+1)}},
				Conditions: []corev1.NodeCondition{readyNow()},
				Images: []corev1.ContainerImage{{Names: []string{"image.invalid/pause@sha256:0",
					"image.invalid/pause:1"}}},
			},
		})
	}
	c.api.proxy = c.proxy
	c.api.dark = c.dark
	c.api.leases = c.leases
	return c
}

// Close stops the API server and etcd; watches end.
func (c *Cluster) Close() {
	c.api.close()
	c.etcd.close()
}

// Name returns the name that was given.
func (c *Cluster) Name() string { return c.name }

// RESTConfig returns a client configuration for the fake's API server.
func (c *Cluster) RESTConfig() *rest.Config { return c.api.config() }

// CallableAddress returns the loopback address.
func (c *Cluster) CallableAddress(context.Context) (string, error) { return "127.0.0.1", nil }

// API returns the fake's API server, so that a test can script its objects.
func (c *Cluster) API() *API { return c.api }

// Abilities returns that etcd can be asked, and has clients. There are kubelets.
func (c *Cluster) Abilities() cluster.ClusterAbilities {
	return cluster.ClusterAbilities{Etcd: c.askEtcd, EtcdClient: c.etcdClient}
}

// Workload always fails: no pod of a cluster in memory has a process.
func (c *Cluster) Workload(_ context.Context, w cluster.Workload) (cluster.Component, error) {
	return nil, fmt.Errorf(
		"looking for the %s of %s: a cluster in memory runs no workloads",
		w.Name,
		w.Namespace,
	)
}

// Components returns a component's instances; each is a *Component.
func (c *Cluster) Components(name string) []cluster.Component {
	var out []cluster.Component
	for _, n := range c.Machines {
		for _, k := range n.components {
			if k.name == name {
				out = append(out, k)
			}
		}
	}
	return out
}

// Node returns a node by its name in the topology or its full name; nil if there is none.
func (c *Cluster) Node(name string) *Node {
	for _, n := range c.Machines {
		if n.spec.Name == name || n.name == name {
			return n
		}
	}
	return nil
}

// Component returns a component on a node; nil if there is none.
func (c *Cluster) Component(node, name string) *Component {
	n := c.Node(node)
	if n == nil {
		return nil
	}
	i := slices.IndexFunc(n.components, func(k *Component) bool { return k.name == name })
	if i < 0 {
		return nil
	}
	return n.components[i]
}

func (c *Cluster) proxy(node, path string) ([]byte, error) {
	k := c.Component(node, "kubelet")
	if k == nil {
		return nil, fmt.Errorf("no node %q", node)
	}
	return k.answer(path)
}

// Provider makes clusters in memory. It implements cluster.Provider. The zero value is ready to use.
type Provider struct {
	// Made, if set, is called with each new cluster before Create returns it, so that a test can script the cluster. If
	// Made returns an error, Create fails.
	Made func(*Cluster) error
	// InProcess makes clients reach the clusters' API servers through pipes instead of sockets, so that clusters can be
	// in a synctest bubble. The clients work in this process only.
	InProcess bool

	mu       sync.Mutex
	clusters map[string]*Cluster
}

// Name returns "fake".
func (p *Provider) Name() string { return "fake" }

// KubeconfigPath returns "", because clusters in memory have no kubeconfig.
func (p *Provider) KubeconfigPath(string) string { return "" }

// Capabilities returns that nodes run commands, have power switches, networks, files and kubelets, and are not bounded.
func (p *Provider) Capabilities(context.Context) (cluster.Capabilities, error) {
	can := cluster.CapabilitiesOf(p.create)
	can.NodeFiles, can.Kubelets = true, true
	return can, nil
}

// Check finds nothing wrong.
func (p *Provider) Check(context.Context, cluster.Needs) error { return nil }

// Prepare does nothing.
func (p *Provider) Prepare(context.Context, cluster.Needs) (map[string]string, error) {
	return nil, nil
}

// Create makes a cluster, if there is none of that name.
func (p *Provider) Create(
	ctx context.Context,
	name string,
	t cluster.Topology,
) (cluster.Cluster, error) {
	c, err := p.create(ctx, name, t)
	if err != nil {
		return nil, fmt.Errorf("creating cluster %q: %w", name, err)
	}
	return c, nil
}

func (p *Provider) create(
	ctx context.Context,
	name string,
	t cluster.Topology,
) (*Cluster, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clusters[name] != nil {
		return nil, errors.New("there is one of that name already")
	}
	var in *pipes
	if p.InProcess {
		in = newPipes()
	}
	c := newCluster(name, t, in)
	if p.Made != nil {
		if err := p.Made(c); err != nil {
			c.Close()
			return nil, err
		}
	}
	if p.clusters == nil {
		p.clusters = map[string]*Cluster{}
	}
	p.clusters[name] = c
	return c, nil
}

// Open returns a cluster that exists.
func (p *Provider) Open(_ context.Context, name string) (cluster.Cluster, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clusters[name]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("opening cluster %q: %w", name, errNone)
}

var errNone = errors.New("there is none of that name")

// Delete removes a cluster; nil if there is none.
func (p *Provider) Delete(_ context.Context, name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clusters[name]; c != nil {
		c.Close()
		delete(p.clusters, name)
	}
	return nil
}

// Retain does nothing: clusters in memory end with their process.
func (p *Provider) Retain(context.Context, string) error { return nil }

// Clusters returns the names of the clusters that exist, so that a test can check that none was left.
func (p *Provider) Clusters() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for name := range p.clusters {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

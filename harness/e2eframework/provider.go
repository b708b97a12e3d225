// Package e2eframework lets a test written with sigs.k8s.io/e2e-framework run on a relapse cluster with relapse's
// faults. It implements the framework's cluster-provider interfaces over any cluster.Provider, and turns faults into
// environment functions.
package e2eframework

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// Provider implements support.E2EClusterProvider and support.E2EClusterProviderWithLifeCycle. Like the framework's own
// providers, it is for one cluster and not safe for concurrent use.
type Provider struct {
	inner cluster.Provider
	topo  cluster.Topology
	dir   string

	name       string
	cluster    cluster.Cluster
	kubeconfig string
	errs       []error // errors of options; Create returns them
}

// readyTime is how long WaitForControlPlane waits for the nodes.
const readyTime = 3 * time.Minute

// New returns an adapter that creates clusters of the topology with inner. It writes their kubeconfigs to dir, which
// must exist, and leaves the user's kubeconfig alone.
func New(inner cluster.Provider, t cluster.Topology, dir string) *Provider {
	return (&Provider{inner: inner, topo: t, dir: dir}).defaults()
}

func (p *Provider) defaults() *Provider {
	if p.name == "" {
		p.name = "relapse-e2e"
	}
	return p
}

// SetDefaults names the cluster relapse-e2e if it has no name.
func (p *Provider) SetDefaults() support.E2EClusterProvider { return p.defaults() }

// WithName sets the name of the cluster and of its network.
func (p *Provider) WithName(name string) support.E2EClusterProvider {
	p.name, p.topo.Network = name, name
	return p
}

// WithVersion accepts only the topology's own version, which follows from its images. Create refuses any other.
func (p *Provider) WithVersion(version string) support.E2EClusterProvider {
	if version != p.topo.Version {
		p.errs = append(
			p.errs,
			fmt.Errorf("version %q was asked for: the topology's images are of %q", version,
				p.topo.Version),
		)
	}
	return p
}

// WithPath makes Create fail, because a relapse cluster has no provider program.
func (p *Provider) WithPath(path string) support.E2EClusterProvider {
	p.errs = append(p.errs, fmt.Errorf("the program %q was given: relapse runs none", path))
	return p
}

// WithOpts applies the options.
func (p *Provider) WithOpts(opts ...support.ClusterOpts) support.E2EClusterProvider {
	for _, o := range opts {
		o(p)
	}
	return p
}

// Create makes the cluster and returns the path of its kubeconfig. It takes no arguments.
func (p *Provider) Create(ctx context.Context, args ...string) (string, error) {
	errs := p.errs
	if len(args) > 0 {
		errs = append(errs, fmt.Errorf("the arguments %q are not understood", args))
	}
	if p.cluster != nil {
		errs = append(errs, errors.New("it was made already"))
	}
	if err := errors.Join(errs...); err != nil {
		return "", fmt.Errorf("creating cluster %q: %w", p.name, err)
	}
	c, err := p.inner.Create(ctx, p.name, p.topo)
	if err != nil {
		return "", err
	}
	p.cluster = c
	return p.GenerateKubeconfig()
}

// CreateWithConfig is Create with a file as the topology's base, for example a kind config.
func (p *Provider) CreateWithConfig(ctx context.Context, file string) (string, error) {
	base, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("creating cluster %q: %w", p.name, err)
	}
	p.topo.Base = base
	return p.Create(ctx)
}

// GetKubeconfig returns the path of the cluster's kubeconfig, "" if there is none.
func (p *Provider) GetKubeconfig() string { return p.kubeconfig }

// GetKubectlContext returns the name of the kubeconfig's only context.
func (p *Provider) GetKubectlContext() string { return p.name }

// GenerateKubeconfig writes the kubeconfig again, readable only by its owner, and returns its path. It takes no
// arguments.
func (p *Provider) GenerateKubeconfig(args ...string) (string, error) {
	if p.cluster == nil || len(args) > 0 {
		return "", fmt.Errorf(
			"writing the kubeconfig of %q: want a cluster and no arguments, got %q",
			p.name,
			args,
		)
	}
	r := p.cluster.RESTConfig()
	cfg := api.NewConfig()
	cfg.Clusters[p.name] = &api.Cluster{Server: r.Host, CertificateAuthorityData: r.CAData,
		InsecureSkipTLSVerify: r.Insecure}
	cfg.AuthInfos[p.name] = &api.AuthInfo{
		ClientCertificateData: r.CertData,
		ClientKeyData:         r.KeyData,
		Token:                 r.BearerToken,
	}
	cfg.Contexts[p.name] = &api.Context{Cluster: p.name, AuthInfo: p.name}
	cfg.CurrentContext = p.name
	path := filepath.Join(p.dir, p.name+".kubeconfig")
	if err := clientcmd.WriteToFile(*cfg, path); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %q: %w", p.name, err)
	}
	p.kubeconfig = path
	return path, nil
}

// KubernetesRestConfig returns the cluster's client configuration, nil if there is no cluster.
func (p *Provider) KubernetesRestConfig() *rest.Config {
	if p.cluster == nil {
		return nil
	}
	return p.cluster.RESTConfig()
}

// Cluster returns the cluster, nil if there is none.
func (p *Provider) Cluster() cluster.Cluster { return p.cluster }

// WaitForControlPlane waits until all nodes with a kubelet are Ready. Without kubelets there are no Node objects, and it
// only asks the API server, which Create has waited for.
func (p *Provider) WaitForControlPlane(ctx context.Context, client klient.Client) error {
	if p.cluster == nil {
		return fmt.Errorf("waiting for cluster %q: it was not made", p.name)
	}
	if names := p.kubelets(); len(names) > 0 {
		return cluster.WaitReady(ctx, client, names, readyTime)
	}
	if err := client.Resources().List(ctx, &corev1.NamespaceList{}); err != nil {
		return fmt.Errorf("waiting for cluster %q: %w", p.name, err)
	}
	return nil
}

// kubelets returns the names of the nodes that run a kubelet.
func (p *Provider) kubelets() (names []string) {
	for _, c := range p.cluster.Components("kubelet") {
		names = append(names, c.Node().Name())
	}
	return names
}

// ExportLogs writes each node's whole journal to dest, in a file named after the node. For a node without a journal it
// copies the log files of its components to a folder named after it. If a node fails, the others are still exported.
func (p *Provider) ExportLogs(ctx context.Context, dest string) error {
	if p.cluster == nil {
		return fmt.Errorf("exporting the logs of cluster %q: it was not made", p.name)
	}
	errs := []error{os.MkdirAll(dest, 0o755)}
	for _, n := range p.cluster.Nodes() {
		errs = append(errs, exportLogs(ctx, n, dest))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("exporting the logs of cluster %q: %w", p.name, err)
	}
	return nil
}

func exportLogs(ctx context.Context, n cluster.Node, dest string) error {
	if folder := n.Abilities().LogFolder; folder != nil {
		return os.CopyFS(filepath.Join(dest, n.Name()), os.DirFS(folder()))
	}
	x, err := cluster.Commands(n)
	if err != nil {
		return err
	}
	out, err := x.Exec(ctx, nil, "journalctl", "--no-pager", "--output=short-precise")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dest, n.Name()+".journal.log"), out, 0o644)
}

// Destroy deletes the cluster and its kubeconfig. It needs no Create before it, and returns nil if there is no cluster.
func (p *Provider) Destroy(ctx context.Context) error {
	err := p.inner.Delete(ctx, p.name)
	if err != nil {
		return err
	}
	p.cluster, p.kubeconfig = nil, ""
	if err := os.Remove(filepath.Join(p.dir, p.name+".kubeconfig")); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("removing the kubeconfig of %q: %w", p.name, err)
	}
	return nil
}

// AddNode always fails, because a topology is fixed.
func (p *Provider) AddNode(_ context.Context, n *support.Node, _ ...string) error {
	return fmt.Errorf(
		"adding node %s: %w: a cluster's topology is fixed",
		n.Name,
		errors.ErrUnsupported,
	)
}

// RemoveNode always fails, because a topology is fixed.
func (p *Provider) RemoveNode(_ context.Context, n *support.Node, _ ...string) error {
	return fmt.Errorf(
		"removing node %s: %w: a cluster's topology is fixed",
		n.Name,
		errors.ErrUnsupported,
	)
}

// StartNode turns a node's power on again.
func (p *Provider) StartNode(ctx context.Context, n *support.Node, _ ...string) error {
	s, err := p.power(n)
	if err != nil {
		return fmt.Errorf("starting node %s: %w", n.Name, err)
	}
	return s.PowerOn(ctx)
}

// StopNode turns a node's power off, without a shutdown.
func (p *Provider) StopNode(ctx context.Context, n *support.Node, _ ...string) error {
	s, err := p.power(n)
	if err != nil {
		return fmt.Errorf("stopping node %s: %w", n.Name, err)
	}
	return s.PowerOff(ctx)
}

func (p *Provider) power(want *support.Node) (cluster.PowerSwitch, error) {
	if p.cluster == nil {
		return nil, errors.New("there is no cluster")
	}
	for _, n := range p.cluster.Nodes() {
		if n.Name() != want.Name {
			continue
		}
		if s := n.Abilities().Power; s != nil {
			return s, nil
		}
		return nil, fmt.Errorf("%w: it has no power switch", errors.ErrUnsupported)
	}
	return nil, errors.New("there is none of that name")
}

// ListNode returns the nodes with their addresses. State is "Ready", "NotReady" or "Unknown", as the API server reports
// it. A node without a kubelet has no Node object: its state is "Unknown", and it has no address.
func (p *Provider) ListNode(ctx context.Context, _ ...string) ([]support.Node, error) {
	if p.cluster == nil {
		return nil, fmt.Errorf("listing the nodes of %q: there is no cluster", p.name)
	}
	client, err := klient.New(p.cluster.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of %q: %w", p.name, err)
	}
	var out []support.Node
	kubelets := p.kubelets()
	for _, n := range p.cluster.Nodes() {
		if !slices.Contains(kubelets, n.Name()) {
			out = append(
				out,
				support.Node{
					Name:    n.Name(),
					Role:    n.Role(),
					Cluster: p.name,
					State:   state(&corev1.Node{}),
				},
			)
			continue
		}
		var o corev1.Node
		if err := client.Resources().Get(ctx, n.Name(), "", &o); err != nil {
			return nil, fmt.Errorf("listing the nodes of %q: %w", p.name, err)
		}
		out = append(
			out,
			support.Node{Name: n.Name(), Role: n.Role(), Cluster: p.name, State: state(&o),
				IP: address(&o)},
		)
	}
	return out, nil
}

func state(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return map[corev1.ConditionStatus]string{corev1.ConditionTrue: "Ready", corev1.ConditionFalse: "NotReady",
				corev1.ConditionUnknown: "Unknown"}[c.Status]
		}
	}
	return "Unknown"
}

func address(n *corev1.Node) net.IP {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return net.ParseIP(a.Address)
		}
	}
	return nil
}

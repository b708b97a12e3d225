package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// Cluster implements cluster.Cluster.
type Cluster struct {
	cluster.Machines[*Node]

	name string
	p    *Provider
	rest *rest.Config
	http *http.Client // to the API server, with the cluster's credentials and without a rate limit

	netMu sync.Mutex    // one writer of routes at a time
	power chan struct{} // holds one element while a node is being started
	own   bool          // the nodes' CNI configuration and routes are ours

	shells shells
}

func newCluster(p *Provider, name string, t cluster.Topology) *Cluster {
	c := &Cluster{name: name, p: p, power: make(chan struct{}, 1)}
	for _, n := range t.Nodes {
		c.Machines = append(
			c.Machines,
			&Node{
				c:        c,
				name:     name + "-" + n.Name,
				role:     n.Role,
				arm:      n.Arm,
				programs: n.Programs,
				seams:    n.Seams,
				dir:      filepath.Join(p.home(name), "nodes", n.Name),
			},
		)
	}
	return c
}

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.name }

// RESTConfig returns a client configuration that the caller may change. It reaches the API server by its port on this
// host, as cluster admin.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.rest) }

// Abilities returns that etcd can be asked. Kubelets run what there is to run.
func (c *Cluster) Abilities() cluster.ClusterAbilities {
	return cluster.ClusterAbilities{Etcd: c.askEtcd}
}

// Components returns the instances of a component: one on each node for the kubelet or a DaemonSet, one on each control
// plane for a static pod, and one wherever the topology adds the component. Other names have none.
func (c *Cluster) Components(name string) []cluster.Component {
	row, known := component.Of(name)
	if !known {
		return nil
	}
	var out []cluster.Component
	for _, n := range c.Machines {
		switch {
		case !row.OnRole(n.role == cluster.ControlPlane) || !n.has(row):
		case row.Runs == component.AsService || row.Runs == component.AsSeam:
			out = append(out, &service{n, name})
		case row.Runs == component.AsDaemonSet:
			out = append(out, &daemonPod{container{n, name}})
		default:
			out = append(out, &staticPod{container{n, name}})
		}
	}
	return out
}

// record holds what can't be read from the cluster itself.
type record struct {
	Nodes []cluster.NodeSpec `json:"nodes"` // name, role, arm, image, programs and seams
	Own   bool               `json:"ownNetwork"`
}

func (p *Provider) recordPath(name string) string { return filepath.Join(p.home(name), "cluster.json") }

func (p *Provider) remember(c *Cluster, t cluster.Topology) error {
	rec := record{Own: c.own}
	for _, n := range t.Nodes {
		rec.Nodes = append(
			rec.Nodes,
			cluster.NodeSpec{Name: n.Name, Role: n.Role, Arm: n.Arm, Image: n.Image,
				Programs: n.Programs, Seams: n.Seams},
		)
	}
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return os.WriteFile(p.recordPath(c.name), b, 0o600)
}

// recall returns the record from the cluster's folder. If there is none, it makes one up from the containers' labels.
func (p *Provider) recall(ctx context.Context, name string) (record, error) {
	var rec record
	b, err := os.ReadFile(p.recordPath(name))
	if err == nil {
		if err := json.Unmarshal(b, &rec); err != nil {
			return record{}, fmt.Errorf("reading %s: %w", p.recordPath(name), err)
		}
		return rec, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return record{}, err
	}
	out, err := p.docker.Output(ctx, "ps", "-a", "--filter", "label="+kindLabel+"="+name,
		"--format", `{{.Names}} {{.Label "`+kindRole+`"}}`)
	if err != nil {
		return record{}, err
	}
	for line := range strings.Lines(string(out)) {
		container, role, _ := strings.Cut(strings.TrimSpace(line), " ")
		if role != cluster.ControlPlane && role != cluster.Worker {
			continue // the load balancer before several control planes
		}
		rec.Nodes = append(
			rec.Nodes,
			cluster.NodeSpec{Name: strings.TrimPrefix(container, name+"-"), Role: role},
		)
	}
	if len(rec.Nodes) == 0 {
		return record{}, errors.New("there are no containers of that name")
	}
	slices.SortFunc(
		rec.Nodes,
		func(a, b cluster.NodeSpec) int { return strings.Compare(a.Name, b.Name) },
	)
	// An assumption: clusters with our names have kind's own CNI only if the topology's base asked for it.
	rec.Own = true
	return rec, nil
}

// connect makes the clients from the cluster's kubeconfig. If that file is missing, it takes the control plane's.
func (c *Cluster) connect(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	raw, err := os.ReadFile(c.p.KubeconfigPath(c.name))
	if errors.Is(err, fs.ErrNotExist) {
		var text string
		text, err = kindcluster.NewProvider(kindcluster.ProviderWithDocker()).
			KubeConfig(c.name, false)
		raw = []byte(text)
	}
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	// Parsed from bytes, because loading from files would also read the user's kubeconfig.
	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return fmt.Errorf("parsing the kubeconfig: %w", err)
	}
	cfg.QPS, cfg.Burst = 100, 200 // client-go's defaults of 5 and 10 would be the slowest part of a run
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	c.rest, c.http = cfg, client
	return nil
}

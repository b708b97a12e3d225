package processes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/event"
)

// Cluster implements cluster.Cluster and cluster.Runner. It has one node.
type Cluster struct {
	cluster.Machines[*Node]

	name, home string
	ports      map[string]int
	rest       *rest.Config
	http       *http.Client // with the administrator's certificate, without a rate limit
	line       *lifeline    // of the supervisor; nil if another process made the cluster
	containers string       // the folder of the sockets of containers that limit memory; "" if there are none
}

// Open opens an existing cluster, even if another process made it.
func (p *Provider) Open(ctx context.Context, name string) (cluster.Cluster, error) {
	c, err := p.open(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %q: %w", name, err)
	}
	return c, nil
}

func (p *Provider) open(ctx context.Context, name string) (*Cluster, error) {
	if err := errors.Join(ctx.Err(), checkName(name)); err != nil {
		return nil, err
	}
	var rec record
	if err := readJSON(filepath.Join(p.home(name), recordFile), &rec); errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is none of that name")
	} else if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(p.KubeconfigPath(name))
	if err != nil {
		return nil, err
	}
	// Parsed from bytes, because loading from files would also read the user's kubeconfig.
	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, fmt.Errorf("parsing the kubeconfig: %w", err)
	}
	cfg.QPS, cfg.Burst = 100, 200 // client-go's defaults of 5 and 10 would be the slowest part of a run
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	c := &Cluster{name: name, home: p.home(name), ports: rec.Ports, rest: cfg, http: client, containers: p.containers}
	c.Machines = cluster.Machines[*Node]{
		{c: c, name: name + "-" + rec.Node.Name, role: rec.Node.Role, arm: rec.Node.Arm,
			seams: seamsOf(rec.Node), simulated: simulatedNames(name, rec.Simulated)},
	}
	return c, nil
}

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.name }

// RESTConfig returns a client configuration that the caller may change. It reaches the API server on loopback, as
// cluster admin.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.rest) }

// Abilities returns that workloads run as plain processes, and that etcd can be asked.
func (c *Cluster) Abilities() cluster.ClusterAbilities {
	return cluster.ClusterAbilities{Processes: c, Etcd: c.askEtcd, EtcdClient: c.etcdClient}
}

// node returns the one node.
func (c *Cluster) node() *Node { return c.Machines[0] }

// CallableAddress returns the loopback address, which all processes share.
func (c *Cluster) CallableAddress(context.Context) (string, error) { return "127.0.0.1", nil }

// Components returns the one instance of a component of the control plane, or of a seam's program that is asked like
// one. It returns none for other names, and for components that the topology didn't add.
func (c *Cluster) Components(name string) []cluster.Component {
	row, known := component.Of(name)
	if _, runs := c.ports[name]; !known || !runs || !row.OnRole(true) {
		return nil
	}
	return []cluster.Component{c.component(name)}
}

func (c *Cluster) path(file string) string { return filepath.Join(c.home, file) }

func (c *Cluster) component(name string) *Component {
	return &Component{n: c.node(), name: name, process: name, namespace: metav1.NamespaceSystem}
}

// Node stands for the control plane. The components count as running on it, but it has no Node object. It implements
// cluster.Node.
type Node struct {
	c               *Cluster
	name, role, arm string
	seams           map[string]seamProcess // by the names of their processes
	simulated       []string               // the names of the simulated Node objects
}

// Name returns <cluster>-<node>.
func (n *Node) Name() string { return n.name }

// Role returns cluster.ControlPlane.
func (n *Node) Role() string { return n.role }

// Arm returns the arm that the topology gave the node to, or "".
func (n *Node) Arm() string { return n.arm }

// Abilities returns the proxies' programs and the folder of log files, which is all that is possible without a machine.
func (n *Node) Abilities() cluster.NodeAbilities {
	return cluster.NodeAbilities{RunProxy: n.RunProxy, LogFolder: n.LogFolder}
}

// Install replaces the program of a component. A running process keeps the old program until it is restarted.
func (n *Node) Install(_ context.Context, component, source string) error {
	at := programPath(n.c.home, component)
	if _, err := os.Stat(at); err != nil {
		return fmt.Errorf(
			"installing %s as the %s of node %s: it has no such component: %w",
			source,
			component,
			n.name,
			err,
		)
	}
	if err := placeProgram(at, source); err != nil {
		return fmt.Errorf(
			"installing %s as the %s of node %s: %w",
			source,
			component,
			n.name,
			err,
		)
	}
	return nil
}

// LogFolder returns the folder with the log files of all components.
func (n *Node) LogFolder() string { return filepath.Join(n.c.home, logsDir) }

// Folder returns the folder of a component's own files.
func (n *Node) Folder(component string) string { return folder(n.c.home, component) }

// lifeline is our end of a supervisor's standard input.
type lifeline struct {
	w   io.WriteCloser
	cmd *exec.Cmd
	mu  sync.Mutex // a long order takes several writes
}

func (l *lifeline) order(line string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.w, line+"\n")
	return err
}

// close closes the input of a supervisor that is ending, and waits for its process.
func (l *lifeline) close() error {
	err := l.w.Close()
	var ended *exec.ExitError
	if werr := l.cmd.Wait(); werr != nil && !errors.As(werr, &ended) { // how it ended doesn't matter any more
		err = errors.Join(err, werr)
	}
	return err
}

// supervisorLog is the file with what a supervisor says about itself.
const supervisorLog = "supervisor.log"

// supervise starts a cluster's supervisor, in a separate session: a Ctrl-C then reaches this process only, which undoes
// things in their order.
func (p *Provider) supervise(home string) (*lifeline, error) {
	log, err := os.Create(filepath.Join(home, supervisorLog))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	argv := append(p.supervisor[1:len(p.supervisor):len(p.supervisor)], home)
	l := &lifeline{w: write, cmd: exec.Command(p.supervisor[0], argv...)}
	l.cmd.Stdin, l.cmd.Stdout, l.cmd.Stderr = read, log, log
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := l.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the supervisor: %w", err), write.Close())
	}
	return l, nil
}

// startTime is how long a component may take to be ready; it takes one to five seconds on a quiet machine.
const startTime = 2 * time.Minute

// start starts the components and waits until they are ready. Those that others need come first. kube-apiserver is not
// kept waiting until etcd is ready, because it takes long until it asks for etcd.
func (c *Cluster) start(ctx context.Context, l *lifeline, events *event.Stream) error {
	first := slices.Concat(
		[]string{"etcd"},
		slices.Sorted(maps.Keys(c.node().seams)),
		[]string{"kube-apiserver"},
	)
	second := []string{"kube-controller-manager", "kube-scheduler"}
	for _, name := range component.Names(component.AddedPods) {
		if len(c.Components(name)) > 0 {
			second = append(second, name)
		}
	}
	if len(c.node().simulated) > 0 {
		second = append(second, kwok)
	}
	for _, together := range [][]string{first, second} {
		for _, name := range together {
			if err := l.order(orderStart + name); err != nil {
				return c.supervisorFailed(err)
			}
		}
		for _, name := range together {
			if err := c.component(name).answers(ctx, 1); err != nil {
				return err
			}
			events.Say(event.Progress, c.name+": "+name+" is ready")
		}
	}
	return nil
}

func (c *Cluster) supervisorFailed(err error) error {
	said, _ := os.ReadFile(filepath.Join(c.home, supervisorLog)) // the log may be empty
	return fmt.Errorf("the supervisor ended: %w: %s", err, strings.TrimSpace(string(said)))
}

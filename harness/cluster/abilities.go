package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"time"
)

// ClusterAbilities are what some clusters can do and others can't. Nil means that the cluster can't.
type ClusterAbilities struct {
	Processes Runner
	// Etcd posts body to a path of the JSON gateway of the cluster's etcd (/v3/kv/put), past the API server, as a client
	// with kube-apiserver's certificate. It returns the answer's body. The request doesn't pass the seam etcd.
	Etcd func(ctx context.Context, path string, body []byte) ([]byte, error)
	// EtcdClient returns the address (127.0.0.1:2379) of the cluster's etcd for its clients, and how a client with
	// kube-apiserver's certificate connects to it. The connection doesn't pass the seam etcd.
	EtcdClient func() (address string, as *tls.Config, err error)
}

// NodeAbilities are what some nodes can do and others can't. Nil means that the node can't.
type NodeAbilities struct {
	Commands Execer
	Power    PowerSwitch
	Network  Network
	// RunProxy runs the program of a seam's proxy, where the node can't run commands in general. argv is the same as on
	// an Execer.
	RunProxy func(ctx context.Context, stdin []byte, argv ...string) (stdout []byte, err error)
	// LogFolder returns the folder of this host in which the node keeps its components' log files. They are named and
	// written like a kubelet's in /var/log/pods.
	LogFolder func() string
}

// ComponentAbilities are what some components can do and others can't. Nil means that the component can't.
type ComponentAbilities struct {
	Pause Pauser
	// Restart restarts the component on purpose.
	Restart func(ctx context.Context) error
	// Flags is nil only for components without flags: component.TakesFlags tells, for all providers alike.
	Flags Flagger
	// Limit limits the component's memory, as by a container's limit. It restarts the component, and returns once the
	// component runs under the limit and answers again.
	Limit func(ctx context.Context, memory string) error
	// Status returns how the component's processes run and how they ended, where no kubelet reports it.
	Status func(ctx context.Context) (Status, error)
}

// Runner runs workloads as plain processes, in a cluster without kubelets.
type Runner interface {
	// Run starts a workload and returns once it is ready for work.
	Run(ctx context.Context, w Workload, p Process) error
	// Workloads returns the workloads of a name that were started here.
	Workloads(ctx context.Context, name string) ([]Addressed, error)
}

// Addressed is a Component with its own address. This program reaches all ports that the component listens on there.
type Addressed interface {
	Component
	Address() string
}

// Execer runs commands in a node. A command that exits with a code other than 0 is an error, which carries the
// command's output.
type Execer interface {
	// Exec runs a command. Stdin may be nil.
	Exec(ctx context.Context, stdin io.Reader, argv ...string) (stdout []byte, err error)
	// Look runs a command that only reads, which is cheaper: the command changes nothing, ends without help and leaves
	// nothing running. It may run a second time if the connection to the node breaks. stdin is text, or nil.
	Look(ctx context.Context, stdin []byte, argv ...string) (stdout []byte, err error)
}

// PowerSwitch cuts a node's power and gives it back, with the node's disk kept.
type PowerSwitch interface {
	PowerOff(ctx context.Context) error
	PowerOn(ctx context.Context) error
	// Booted returns when the node was last started, by the node's clock. A node that is off is an error.
	Booted(ctx context.Context) (time.Time, error)
}

// Network cuts a node off from others of its cluster, and tells which it reaches.
type Network interface {
	// Cut drops what passes between the node and its peers, in both directions. It returns once the rules for that are
	// in force. After atMost everything passes again, even if this program has ended. Another Cut with the same
	// name replaces the first.
	Cut(ctx context.Context, name string, peers []Peer, atMost time.Duration) error
	// Mend undoes the Cut with that name, even if another process called Cut. It returns no error if there is none.
	Mend(ctx context.Context, name string) error
	// Reaches reports whether the node can open a connection to a TCP port of another node. An error means that nobody
	// knows, but for syscall.ECONNREFUSED: then the other node was reached, and nobody listens there.
	Reaches(ctx context.Context, other Node, port int) (bool, error)
}

// Peer is what a node can be cut off from: another node with its pods or, with a Port, only that TCP port of the other
// node.
type Peer struct {
	Node Node
	Port int
}

// Pauser stops a component's process for a while, as by SIGSTOP. The process keeps everything it has.
type Pauser interface {
	// Pause stops the process for atMost. Then the process goes on, even if this program has ended. Another Pause
	// restarts the time.
	Pause(ctx context.Context, atMost time.Duration) error
	// Resume makes the process go on, even if another process called Pause. It returns no error if the component's
	// process isn't stopped or doesn't exist.
	Resume(ctx context.Context) error
}

// Flagger restarts a component with other flags.
type Flagger interface {
	// RestartWith restarts the component as Restart does, with flags added to its own, those that it was made with. A
	// flag takes the place of the component's own flag of that name. The flags stay until the next RestartWith, whatever
	// starts the component again; none give the component its own flags back.
	RestartWith(ctx context.Context, flags map[string]string) error
	// Added returns the flags of the last RestartWith, even if another process called it.
	Added(ctx context.Context) (map[string]string, error)
	// Arguments returns the arguments that the running process was started with, without the program's name. There are
	// none if there is no process.
	Arguments(ctx context.Context) ([]string, error)
}

// Commands returns what runs commands in n, or an error that says that n can't.
func Commands(n Node) (Execer, error) {
	if x := n.Abilities().Commands; x != nil {
		return x, nil
	}
	return nil, fmt.Errorf("node %s can't run commands", n.Name())
}

// Power returns n's power switch, or an error that says that n has none.
func Power(n Node) (PowerSwitch, error) {
	if p := n.Abilities().Power; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("node %s has no power switch", n.Name())
}

// NetworkOf returns n's network, or an error that says that it can't be cut.
func NetworkOf(n Node) (Network, error) {
	if w := n.Abilities().Network; w != nil {
		return w, nil
	}
	return nil, fmt.Errorf("node %s can't be cut off from others", n.Name())
}

// Package cluster models a cluster: first as a topology, which describes the cluster before it exists, then as nodes
// and components, which answer requests, run commands and receive signals. Providers implement the interfaces;
// internal/clustertest implements them in memory.
package cluster

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// DefaultVersion is the Kubernetes version used where none is named: the newest available here. The clusters of the
// scenarios and the pairs named `modern` use the same version, so that most runs share one build.
const DefaultVersion = component.DefaultVersion

// Topology describes a cluster before it exists.
type Topology struct {
	Version string     `json:"version"` // Kubernetes version, "v1.34.4"
	Nodes   []NodeSpec `json:"nodes"`   // in creation order
	// Simulated is the number of additional Node objects. kwok simulates these nodes and the pods on them.
	Simulated int `json:"simulated,omitempty"`
	// the provider's config file (kind-config.yaml), over which the other fields are merged
	Base    []byte `json:"base,omitempty"`
	Network string `json:"network"` // the engine network's name, made for this cluster and removed with it
}

// The roles of nodes.
const (
	ControlPlane = "control-plane"
	Worker       = "worker"
)

// NodeSpec describes a node. Name is relative to the cluster ("worker", "worker2"): the provider prefixes the
// cluster's name.
type NodeSpec struct {
	Name   string                       `json:"name"`
	Role   string                       `json:"role"`
	Image  string                       `json:"image"`
	Arm    string                       `json:"arm,omitempty"`
	Labels map[string]string            `json:"labels,omitempty"`
	Files  []File                       `json:"files,omitempty"` // installed before any unit starts
	Units  []Unit                       `json:"units,omitempty"` // enabled before any unit starts
	Args   map[string]map[string]string `json:"args,omitempty"`  // component -> flag -> value
	// OwnFiles maps component -> file name -> text. The files lie in a folder that belongs to the component, which may
	// write to it. A file without text is left for the component to create. A flag whose value is one of the names gets
	// the file's path instead, and $(kubeconfig) in a text stands for the path of the component's kubeconfig.
	OwnFiles map[string]map[string]string `json:"ownFiles,omitempty"`
	// component -> an executable on this host, which runs in place of the program in the image
	Programs map[string]string `json:"programs,omitempty"`
	Seams    map[string]string `json:"seams,omitempty"` // seam -> its proxy's executable on this host
}

// ArgsIn returns the flags of component. A flag whose value names one of the component's OwnFiles gets that file's path
// in folder.
func (n NodeSpec) ArgsIn(component, folder string) map[string]string {
	out := maps.Clone(n.Args[component])
	for flag, value := range out {
		if _, ok := n.OwnFiles[component][value]; ok {
			out[flag] = path.Join(folder, value)
		}
	}
	return out
}

// TextsOf returns the texts of a component's OwnFiles, whose kubeconfig has the given path.
func (n NodeSpec) TextsOf(name, kubeconfig string) map[string]string {
	out := maps.Clone(n.OwnFiles[name])
	for file, text := range out {
		out[file] = strings.ReplaceAll(text, component.KubeconfigWord, kubeconfig)
	}
	return out
}

// File describes a file to put at Path in the node. Its text is Content, or a copy of Source, a file on the host.
type File struct {
	Path    string `json:"path"`
	Source  string `json:"source,omitempty"`
	Content []byte `json:"content,omitempty"`
	Mode    uint32 `json:"mode"`
}

// Unit is a systemd unit, or with DropIn set ("10-relapse.conf") a drop-in of the unit Name.
type Unit struct {
	Name    string `json:"name"`
	DropIn  string `json:"dropIn,omitempty"`
	Content string `json:"content"`
}

// Cluster is a running cluster. It is safe for concurrent use. Its type embeds Machines, from which its nodes'
// abilities are known before it exists.
type Cluster interface {
	Name() string
	RESTConfig() *rest.Config
	Nodes() []Node
	// Components returns the instances of a component ("kubelet", "kube-apiserver", …), one for each node that runs it.
	Components(name string) []Component
	// Workload returns a workload's container, or its process, as a component like any other. The component's node is
	// where it runs, and its arm is the workload's. It finds a pod again after it was replaced; a missing pod is an
	// error.
	Workload(ctx context.Context, w Workload) (Component, error)
	// CallableAddress returns an address of this host, without a port. A server that the API servers are to call has to
	// listen on it.
	CallableAddress(ctx context.Context) (string, error)
	// Abilities returns what only some clusters can do. It follows from the cluster's type alone, and works for the zero
	// value.
	Abilities() ClusterAbilities

	nodeAbilities() NodeAbilities
}

// Node is a machine of the cluster, or stands for one. Name is the name of a machine's Node object.
type Node interface {
	Name() string
	Role() string
	Arm() string
	// Objects returns the names of the Node objects that the node stands for: a machine's own, or all that are simulated
	// in its place.
	Objects() []string
	// Folder returns the folder of a component's OwnFiles, a path in the node. Of a node with a LogFolder, which is no
	// machine, it is a path on this host.
	Folder(component string) string
	// Install makes a component to which the topology gave a program run a copy of source, an executable on this host.
	// The new program is in effect when Install returns and survives a loss of power. A running process keeps the old one
	// until it is restarted.
	Install(ctx context.Context, component, source string) error
	// Abilities returns what only some nodes can do. It follows from the node's type alone: it must not look at the node,
	// and works for the zero value, which can be nil. A type that embeds a Node has the Node's abilities, and returns
	// here those that it replaces.
	Abilities() NodeAbilities
}

// ErrNoProcess says that a component runs no process at the moment, or not the one that is meant.
var ErrNoProcess = errors.New("no process")

// Component is one running instance of a component on a node.
type Component interface {
	Name() string
	Node() Node
	// Get requests a path of the component's HTTP endpoint ("/metrics", "/debug/pprof/goroutine?debug=2", "/configz").
	// The caller closes the result.
	Get(ctx context.Context, path string) (io.ReadCloser, error)
	// Logs streams the component's log from its start and follows it until ctx ends.
	// The form depends on the component: the kubelet's is `journalctl -o json` lines, static pods' are CRI log lines.
	Logs(ctx context.Context) (io.ReadCloser, error)
	// Signal sends a signal to the component's process. of limits that to the process with its PID and StartTicks; the
	// zero Identity is whichever process runs. The error is ErrNoProcess if there is no such process.
	Signal(ctx context.Context, sig os.Signal, of Identity) error
	// Identity returns which process the component is, with the hash of its executable if digest is set.
	Identity(ctx context.Context, digest bool) (Identity, error)
	// Abilities returns what only some components can do.
	Abilities() ComponentAbilities
}

// Machines are a cluster's nodes, in the topology's order. They are all of one type, so that what they can do is known
// before there is any.
type Machines[N Node] []N

// Nodes returns the nodes.
func (all Machines[N]) Nodes() []Node {
	out := make([]Node, len(all))
	for i, n := range all {
		out[i] = n
	}
	return out
}

func (Machines[N]) nodeAbilities() NodeAbilities {
	var none N
	return none.Abilities()
}

// Workload names an arm that runs in a pod: the only pod of a namespace with the label app.kubernetes.io/name=Name.
// Its container has the same name and serves HTTP on its port named http.
type Workload struct{ Name, Namespace, Arm string }

// AccessVariable names the kubeconfig of a plain process's service account. A program without one looks for the token
// that a kubelet puts into its pod.
const AccessVariable = "KUBECONFIG"

// Process says how to run a workload where no kubelet starts its pod: as the workload's Deployment says, but without a
// container.
type Process struct {
	Program string            // an executable on this host
	Args    []string          // $(NAME) in them stands for the variable NAME, as in a container's arguments
	Env     map[string]string // added to this program's environment; no value refers to another variable
	Address []string          // the variables to set to the process's address, as a pod's variable can hold its IP
	// ServiceAccount is whom the process is for the API server, in the workload's namespace. AccessVariable names its
	// kubeconfig. "" gives the process no access.
	ServiceAccount string
	Port           int    // where it serves HTTP
	Ready          string // the path that answers 200 once it is ready for work
}

// Identity says which process a component is, so that a restart is noticed. SHA256 is the hash of the running
// executable (/proc/PID/exe) in hex, or "" if it was not asked for. PID 0 means that there is no process.
type Identity struct {
	PID        int    `json:"pid"`
	StartTicks int64  `json:"startTicks"` // field 22 of /proc/PID/stat: clock ticks since boot
	Restarts   int    `json:"restarts"`   // the supervisor's count
	SHA256     string `json:"sha256,omitempty"`
	Stopped    bool   `json:"stopped,omitempty"` // by a signal, and not continued since: state T in /proc/PID/stat
	// fields 14 and 15: time in user and in kernel mode, in ticks of TicksPerSecond; 0 means unknown
	CPUTicks int64 `json:"cpuTicks"`
	// field 48: the address of its arguments, which execve moves while PID and StartTicks stay; 0 means unknown
	ArgStart uint64 `json:"argStart"`
	// its host's setting in RandomizeFile: which addresses are chosen at random; 0 means none, or unknown
	Randomize int `json:"randomize"`
	// fields 16 and 17: CPU time of the children that it has waited for, and of their children
	ChildTicks int64     `json:"childTicks"`
	Limits     CPULimits `json:"limits"`
}

// Same reports whether both are one process, as far as its id and its start tell: after execve they are still the same.
func (id Identity) Same(o Identity) bool { return id.PID == o.PID && id.StartTicks == o.StartTicks }

// Status says which process of a component runs, or ran last, and how the latest process to end did so. Each start has
// its own id. The code of a process that a signal ended is 128 plus the signal's number, as for a container.
type Status struct {
	ID       string
	Running  bool
	Restarts int // restarts that nobody asked for

	LastID          string // "" until one ended
	LastCode        int
	LastFinished    time.Time
	LastOutOfMemory bool // the kernel killed it for exceeding its memory limit
}

// TicksPerSecond is the unit of times in /proc: USER_HZ, which Linux keeps at 100 for all programs.
const TicksPerSecond = 100

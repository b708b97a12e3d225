// Package cluster is the harness's model of a cluster: a topology before it exists, then nodes and components that
// can be asked, run commands and get signals. Providers implement it; clustertest has one in memory.
package cluster

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"path"
	"time"

	"k8s.io/client-go/rest"
)

// DefaultVersion is the Kubernetes version where none is named: the newest that can be had here, which the scenarios' clusters and their
// pairs `modern` are of, too, so that one version is built for most of what is run.
const DefaultVersion = "v1.36.3"

// Topology describes a cluster before it exists.
type Topology struct {
	Version string     `json:"version"` // Kubernetes version, "v1.34.4"
	Nodes   []NodeSpec `json:"nodes"`   // in creation order
	// Simulated is how many Node objects there are beside, of nodes that kwok only simulates, with the pods on them.
	Simulated int `json:"simulated,omitempty"`
	// the provider's own config (kind-config.yaml), which the rest is merged over
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
	// component -> name -> text: files in a folder of the component's own, which it may write to. One without text is
	// the component's to make. A flag whose value is such a name gets the path.
	OwnFiles map[string]map[string]string `json:"ownFiles,omitempty"`
	// component -> an executable on this host, which it runs instead of the image's
	Programs map[string]string `json:"programs,omitempty"`
	Seams    map[string]string `json:"seams,omitempty"` // seam -> its proxy's executable on this host
}

// ArgsIn are a component's flags, those that name one of its own files with its path in folder.
func (n NodeSpec) ArgsIn(component, folder string) map[string]string {
	out := maps.Clone(n.Args[component])
	for flag, value := range out {
		if _, ok := n.OwnFiles[component][value]; ok {
			out[flag] = path.Join(folder, value)
		}
	}
	return out
}

// File is put at Path in the node: either a copy of Source (a file on the host) or Content.
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

// Capabilities says what a provider's clusters can do, before any exists.
type Capabilities struct {
	Exec      bool `json:"exec"`      // nodes are Execers
	Power     bool `json:"power"`     // nodes are PowerSwitches
	NodeFiles bool `json:"nodeFiles"` // NodeSpec.Files and Units are honoured
	Kubelets  bool `json:"kubelets"`  // every node is a machine with a kubelet and a Node object, which gets Ready
	Bounded   bool `json:"bounded"`   // nodes run without CAP_SYS_RESOURCE
	// PlainWorkloads says that a cluster without kubelets is a Runner.
	PlainWorkloads bool `json:"plainWorkloads,omitempty"`
	// Seams are those that can be had where nodes have no files; with NodeFiles all can.
	Seams []string `json:"seams,omitempty"`
	// NoMemoryLimits says why the memory of components can't be limited; "" if it can.
	NoMemoryLimits string `json:"noMemoryLimits,omitempty"`
	// OneControlPlane says why a cluster can't have several control planes; "" if it can.
	OneControlPlane string `json:"oneControlPlane,omitempty"`
}

// Cluster is a running cluster. It is safe for concurrent use.
type Cluster interface {
	Name() string
	RESTConfig() *rest.Config
	Nodes() []Node
	// Components returns the instances of a component ("kubelet", "kube-apiserver", …), one a node that runs it.
	Components(name string) []Component
}

// Node is a machine of the cluster. Name is the name of its Node object.
type Node interface {
	Name() string
	Role() string
	Arm() string
}

// Component is one running instance of a component on a node.
type Component interface {
	Name() string
	Node() Node
	// Get asks the component's own HTTP endpoint ("/metrics", "/debug/pprof/goroutine?debug=2", "/configz"). The
	// caller closes it.
	Get(ctx context.Context, path string) (io.ReadCloser, error)
	// Logs streams the component's log from its start and follows it until ctx ends.
	// The form depends on the component: the kubelet's is `journalctl -o json` lines, static pods' are CRI log lines.
	Logs(ctx context.Context) (io.ReadCloser, error)
	// Signal sends a signal to the component's process.
	Signal(ctx context.Context, sig os.Signal) error
}

// Caller is a Cluster whose API servers can call a server that this process runs.
type Caller interface {
	// CallableAddress is an address of this host, without a port, that the server has to listen on.
	CallableAddress(ctx context.Context) (string, error)
}

// Workload names an arm that runs in a pod: the only pod of a namespace with the label app.kubernetes.io/name=Name.
// Its container has the same name and serves HTTP on its port named http.
type Workload struct{ Name, Namespace, Arm string }

// Host is a Cluster that can address such a container like any other component. The component's node is the pod's,
// its arm the workload's. A pod that was replaced is found again; a missing one is an error.
type Host interface {
	Workload(ctx context.Context, w Workload) (Component, error)
}

// Process is how a workload runs where there is no kubelet to start its pod: as its Deployment says, without a
// container.
type Process struct {
	Program string            // an executable on this host
	Args    []string          // in which $(NAME) stands for the variable NAME, as in those of a container
	Env     map[string]string // beside what this program has itself; no value refers to another variable
	Address []string          // the variables that hold the process's address, as one of a pod can hold its IP
	Port    int               // where it serves HTTP
	Ready   string            // the path that answers 200 once it is ready for work
}

// Runner is a Host without kubelets, which runs workloads as plain processes.
type Runner interface {
	Host
	// Run starts a workload and returns once it is ready for work.
	Run(ctx context.Context, w Workload, p Process) error
	// Workloads are those of a name that were started here. Each is Addressed.
	Workloads(ctx context.Context, name string) ([]Component, error)
}

// Addressed is a Component with an address of its own, where this program reaches all ports that it listens on.
type Addressed interface {
	Address() string
}

// Execer is a Node that can run a command in itself. A command that exits with a code other than 0 is an error that
// carries its output. Stdin may be nil.
type Execer interface {
	Exec(ctx context.Context, stdin io.Reader, argv ...string) (stdout []byte, err error)
}

// Looker is an Execer that makes repeated looks cheap.
type Looker interface {
	// Look is Exec for a command that only reads: it changes nothing, ends by itself and leaves nothing running. It
	// may be run a second time if the connection to the node broke off. stdin is text, or nil.
	Look(ctx context.Context, stdin []byte, argv ...string) (stdout []byte, err error)
}

// Look runs a command that only reads, the cheap way if the node has one.
func Look(ctx context.Context, n Execer, stdin []byte, argv ...string) ([]byte, error) {
	if l, ok := n.(Looker); ok {
		return l.Look(ctx, stdin, argv...)
	}
	if stdin == nil {
		return n.Exec(ctx, nil, argv...)
	}
	return n.Exec(ctx, bytes.NewReader(stdin), argv...)
}

// ProxyRunner is a Node that is no Execer and runs the programs of its seams' proxies all the same. argv is what it
// would be on an Execer.
type ProxyRunner interface {
	RunProxy(ctx context.Context, stdin []byte, argv ...string) (stdout []byte, err error)
}

// LogHolder is a Node whose components' log files lie in a folder of this host, arranged and written as a kubelet's
// are in /var/log/pods.
type LogHolder interface {
	LogFolder() string
}

// Simulator is a Node that is no Node object, in a cluster whose Node objects are simulated.
type Simulator interface {
	// Simulated are the names of the Node objects.
	Simulated() []string
}

// FileHolder is a Node that knows the folder of a component's own files. The path is one in the node; of a LogHolder,
// which is no machine, it is one of this host.
type FileHolder interface {
	Folder(component string) string
}

// PowerSwitch is a Node whose power can be cut and given back, with its disk kept.
type PowerSwitch interface {
	PowerOff(ctx context.Context) error
	PowerOn(ctx context.Context) error
}

// Restarter is a Component that can be restarted on purpose.
type Restarter interface {
	Restart(ctx context.Context) error
}

// Limiter is a Component whose memory can be limited, as a container's limit does. It restarts for that. Limit
// returns once it runs under the limit and answers again.
type Limiter interface {
	Limit(ctx context.Context, memory string) error
}

// Identifier is a Component that knows which process it is.
type Identifier interface {
	Identity(ctx context.Context, digest bool) (Identity, error)
}

// Pauser is a Component whose process can be stopped for a while, as by SIGSTOP, with all that it has.
type Pauser interface {
	// Pause stops the process. It goes on after atMost, whatever becomes of this program. Asked again, the time begins
	// anew.
	Pause(ctx context.Context, atMost time.Duration) error
	// Resume has the process go on, from any process of ours. It is no error if it isn't stopped, or isn't there.
	Resume(ctx context.Context) error
}

// Identity says which process a component is, so that a restart is noticed. SHA256 is that of the running executable
// (/proc/PID/exe) in hex, or "" if it was not asked for. PID 0 means that there is no process.
type Identity struct {
	PID        int    `json:"pid"`
	StartTicks int64  `json:"startTicks"` // field 22 of /proc/PID/stat: clock ticks since boot
	Restarts   int    `json:"restarts"`   // the supervisor's count
	SHA256     string `json:"sha256,omitempty"`
	Stopped    bool   `json:"stopped,omitempty"` // by a signal, until another has it go on: the state T in /proc/PID/stat
	// fields 14 and 15: time in user and in kernel mode, in ticks of TicksPerSecond; 0 is not known
	CPUTicks int64 `json:"cpuTicks"`
	// field 48: the address of its arguments, which execve moves while PID and StartTicks stay; 0 is not known
	ArgStart uint64 `json:"argStart"`
	// what its host chooses addresses at random for, as RandomizeFile says; 0 is nothing, or not known
	Randomize int `json:"randomize"`
	// fields 16 and 17: what its children had used, and theirs, of those that it has waited for
	ChildTicks int64     `json:"childTicks"`
	Limits     CPULimits `json:"limits"`
}

// Reporter is a Component that says how its processes are and how they ended, where no kubelet does.
type Reporter interface {
	Status(ctx context.Context) (Status, error)
}

// Status says of a component which of its processes runs, or ran last, and how the one before it ended. An id is that
// of one start. A process that a signal ended has 128 and the signal's number as its code, as a container has.
type Status struct {
	ID       string
	Running  bool
	Restarts int // those that nobody asked for

	LastID          string // "" until one ended
	LastCode        int
	LastFinished    time.Time
	LastOutOfMemory bool // the kernel killed it for its limit
}

// TicksPerSecond is the unit of times in /proc: USER_HZ, which Linux keeps at 100 for all programs.
const TicksPerSecond = 100

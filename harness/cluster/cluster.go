// Package cluster models a cluster: first as a topology, which describes the cluster before it exists, then as nodes
// and components, which answer requests, run commands and receive signals. Providers implement the interfaces;
// internal/clustertest implements them in memory.
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

// DefaultVersion is the Kubernetes version used where none is named: the newest available here. The clusters of the
// scenarios and the pairs named `modern` use the same version, so that most runs share one build.
const DefaultVersion = "v1.36.3"

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
	// the file's path instead.
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

// Capabilities says what a provider's clusters can do. It is known before any cluster exists.
type Capabilities struct {
	Exec      bool `json:"exec"`      // nodes are Execers
	Power     bool `json:"power"`     // nodes are PowerSwitches
	NodeFiles bool `json:"nodeFiles"` // NodeSpec.Files and Units are honoured
	Kubelets  bool `json:"kubelets"`  // every node is a machine with a kubelet and a Node object, which becomes Ready
	Bounded   bool `json:"bounded"`   // nodes run without CAP_SYS_RESOURCE
	// PlainWorkloads says that the clusters have no kubelets and implement Runner.
	PlainWorkloads bool `json:"plainWorkloads,omitempty"`
	// Seams lists the seams available where NodeFiles is false. With NodeFiles all seams are available.
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
	// Components returns the instances of a component ("kubelet", "kube-apiserver", …), one for each node that runs it.
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
	// Get requests a path of the component's HTTP endpoint ("/metrics", "/debug/pprof/goroutine?debug=2", "/configz").
	// The caller closes the result.
	Get(ctx context.Context, path string) (io.ReadCloser, error)
	// Logs streams the component's log from its start and follows it until ctx ends.
	// The form depends on the component: the kubelet's is `journalctl -o json` lines, static pods' are CRI log lines.
	Logs(ctx context.Context) (io.ReadCloser, error)
	// Signal sends a signal to the component's process.
	Signal(ctx context.Context, sig os.Signal) error
}

// Caller is a Cluster whose API servers can call a server that this process runs.
type Caller interface {
	// CallableAddress returns an address of this host, without a port. A server that the API servers are to call has to
	// listen on it.
	CallableAddress(ctx context.Context) (string, error)
}

// Workload names an arm that runs in a pod: the only pod of a namespace with the label app.kubernetes.io/name=Name.
// Its container has the same name and serves HTTP on its port named http.
type Workload struct{ Name, Namespace, Arm string }

// Host is a Cluster that can address a workload's container like any other component. The component's node is the pod's
// node, and its arm is the workload's. Host finds a pod again after it was replaced; a missing pod is an error.
type Host interface {
	Workload(ctx context.Context, w Workload) (Component, error)
}

// Process says how to run a workload where no kubelet starts its pod: as the workload's Deployment says, but without a
// container.
type Process struct {
	Program string            // an executable on this host
	Args    []string          // $(NAME) in them stands for the variable NAME, as in a container's arguments
	Env     map[string]string // added to this program's environment; no value refers to another variable
	Address []string          // the variables to set to the process's address, as a pod's variable can hold its IP
	Port    int               // where it serves HTTP
	Ready   string            // the path that answers 200 once it is ready for work
}

// Runner is a Host without kubelets, which runs workloads as plain processes.
type Runner interface {
	Host
	// Run starts a workload and returns once it is ready for work.
	Run(ctx context.Context, w Workload, p Process) error
	// Workloads returns the workloads of a name that were started here. Each implements Addressed.
	Workloads(ctx context.Context, name string) ([]Component, error)
}

// Addressed is a Component with its own address. This program reaches all ports that the component listens on there.
type Addressed interface {
	Address() string
}

// Execer is a Node that can run commands. A command that exits with a code other than 0 is an error, which carries the
// command's output. Stdin may be nil.
type Execer interface {
	Exec(ctx context.Context, stdin io.Reader, argv ...string) (stdout []byte, err error)
}

// Looker is an Execer with a cheaper way to run commands that only read.
type Looker interface {
	// Look runs a command like Exec. The command must only read: it changes nothing, ends without help and leaves
	// nothing running. It may run a second time if the connection to the node breaks. stdin is text, or nil.
	Look(ctx context.Context, stdin []byte, argv ...string) (stdout []byte, err error)
}

// Look runs a command that only reads on n: through n's method Look if n is a Looker, which is cheaper, else through
// Exec.
func Look(ctx context.Context, n Execer, stdin []byte, argv ...string) ([]byte, error) {
	if l, ok := n.(Looker); ok {
		return l.Look(ctx, stdin, argv...)
	}
	if stdin == nil {
		return n.Exec(ctx, nil, argv...)
	}
	return n.Exec(ctx, bytes.NewReader(stdin), argv...)
}

// ProxyRunner is a Node that can't run commands in general, but runs the programs of its seams' proxies. argv is the
// same as on an Execer.
type ProxyRunner interface {
	RunProxy(ctx context.Context, stdin []byte, argv ...string) (stdout []byte, err error)
}

// LogHolder is a Node that keeps its components' log files in a folder of this host. The files are named and written
// like a kubelet's in /var/log/pods.
type LogHolder interface {
	LogFolder() string
}

// Simulator is a Node without a Node object, in a cluster whose Node objects are all simulated.
type Simulator interface {
	// Simulated returns the names of the Node objects.
	Simulated() []string
}

// FileHolder is a Node that knows the folder of a component's OwnFiles. The folder is a path in the node. Of a
// LogHolder, which is no machine, it is a path on this host.
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

// Limiter is a Component whose memory can be limited, as by a container's limit. Limit restarts the component, and
// returns once the component runs under the limit and answers again.
type Limiter interface {
	Limit(ctx context.Context, memory string) error
}

// Identifier is a Component that knows which process it is.
type Identifier interface {
	Identity(ctx context.Context, digest bool) (Identity, error)
}

// Pauser is a Component whose process can be stopped for a while, as by SIGSTOP. The process keeps everything it has.
type Pauser interface {
	// Pause stops the process for atMost. Then the process goes on, even if this program has ended. Another Pause
	// restarts the time.
	Pause(ctx context.Context, atMost time.Duration) error
	// Resume makes the process go on, even if another process called Pause. It returns no error if the component's
	// process isn't stopped or doesn't exist.
	Resume(ctx context.Context) error
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

// Reporter is a Component that reports how its processes run and how they ended, where no kubelet does.
type Reporter interface {
	Status(ctx context.Context) (Status, error)
}

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

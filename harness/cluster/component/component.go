// Package component is the table of what relapse knows about each component of Kubernetes, with any provider. A new
// component is a new row.
package component

import (
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/fixtures/control"
)

// Where components are built from. Etcd's version goes with every version of Kubernetes that can be built.
const (
	KubernetesModule = "k8s.io/kubernetes"
	EtcdModule       = "go.etcd.io/etcd/server/v3"
	EtcdVersion      = "v3.6.5"
)

// Component is a row of the table.
type Component struct {
	Name string

	// Runs is how a cluster that kubeadm made runs it, and who starts it again when it ends.
	Runs Runs
	// Executable is where the node, or its container, has the program.
	Executable string
	Kubeadm    Kubeadm
	Endpoint   Endpoint
	// Ready is the path that answers 200 once it is ready for work.
	Ready string
	// Older is by how many minor versions it may be older than the API servers of its cluster, by Kubernetes' version
	// skew policy; -1 where that says nothing. OlderUntil has another number for clusters below a minor version.
	Older      int
	OlderUntil *OlderUntil
	// Kubernetes says that it is a program of k8s.io/kubernetes, which answers --version with Kubernetes' own.
	Kubernetes bool
	// Limited says that its memory can be limited: it is known to run under its limit once it is ready again.
	Limited bool
	// Elects says that its instances elect a leader, by the Lease of its name in the namespace kube-system.
	Elects bool
}

// Runs is how a component runs.
type Runs int

const (
	// Nowhere is a workload, which is no component.
	Nowhere Runs = iota
	// AsService is from each node's own file system, under its service manager, which starts it again.
	AsService
	// AsStaticPod is in a pod of each control plane's own, on the node's network, whose container its kubelet starts
	// again.
	AsStaticPod
	// AsDaemonSet is in a pod on each node, on the node's network, whose container its kubelet starts again. Its
	// pod's label k8s-app is its name.
	AsDaemonSet
	// AsAddedPod is like AsStaticPod, on the control planes that the topology gives a program for it. kubeadm starts
	// none.
	AsAddedPod
	// AsSeam is from the control plane's file system, under its service manager, where the scenario has the seam that
	// installs it: no component of Kubernetes, but something that one talks to.
	AsSeam
)

// OnRole says whether a node of a role runs the component; controlPlane says whether the role is a control plane's.
func (c Component) OnRole(controlPlane bool) bool {
	switch c.Runs {
	case AsService, AsDaemonSet:
		return true
	case AsStaticPod, AsAddedPod, AsSeam:
		return controlPlane
	}
	return false
}

// OlderUntil is the number of minor versions that a component might be older by, in clusters of a minor version of 1
// below Minor.
type OlderUntil struct {
	Minor uint64
	Older int
}

// Kubeadm is where kubeadm's configuration keeps a component's flags.
type Kubeadm struct {
	Documents []string // their kinds
	Path      []string // to the flags within them
	Listed    bool     // kind's v1beta4 document has a list there already
	// Config is the API version of the only document, where that is the component's own configuration, one for the
	// whole cluster: its flags are then the fields of it, by dotted names, with values as YAML has them.
	Config string
}

// Endpoint is how a component's HTTP endpoint is reached.
type Endpoint struct {
	// Proxied says that it is asked through the API server, by its node's proxy. The API server itself has neither
	// this nor a URL.
	Proxied bool
	// URL is where it listens on its node's loopback.
	URL string
	// Authenticated says that the URL wants a client certificate of the cluster's authority, with the rights to read
	// what is asked for.
	Authenticated bool
}

var table = []Component{
	{
		Name: "kubelet", Runs: AsService, Executable: "/usr/bin/kubelet", Kubernetes: true,
		Kubeadm: Kubeadm{[]string{"InitConfiguration", "JoinConfiguration"},
			[]string{"nodeRegistration", "kubeletExtraArgs"}, true, ""},
		Endpoint: Endpoint{Proxied: true}, Ready: "/healthz", Older: 3, OlderUntil: &OlderUntil{28, 2},
	},
	{
		Name: "kube-apiserver", Runs: AsStaticPod, Executable: "/usr/local/bin/kube-apiserver", Kubernetes: true,
		Kubeadm: Kubeadm{[]string{"ClusterConfiguration"}, []string{"apiServer", "extraArgs"}, true, ""},
		Ready:   "/readyz", Limited: true,
	},
	{
		Name: "kube-controller-manager", Runs: AsStaticPod, Executable: "/usr/local/bin/kube-controller-manager",
		Kubernetes: true,
		Kubeadm:    Kubeadm{[]string{"ClusterConfiguration"}, []string{"controllerManager", "extraArgs"}, true, ""},
		Endpoint:   Endpoint{URL: "https://127.0.0.1:10257", Authenticated: true}, Ready: "/healthz", Older: 1,
		Limited: true, Elects: true,
	},
	{
		Name: "kube-scheduler", Runs: AsStaticPod, Executable: "/usr/local/bin/kube-scheduler", Kubernetes: true,
		Kubeadm:  Kubeadm{[]string{"ClusterConfiguration"}, []string{"scheduler", "extraArgs"}, false, ""},
		Endpoint: Endpoint{URL: "https://127.0.0.1:10259", Authenticated: true}, Ready: "/healthz", Older: 1,
		Limited: true, Elects: true,
	},
	{
		Name: "etcd", Runs: AsStaticPod, Executable: "/usr/local/bin/etcd",
		Kubeadm:  Kubeadm{[]string{"ClusterConfiguration"}, []string{"etcd", "local", "extraArgs"}, false, ""},
		Endpoint: Endpoint{URL: "http://127.0.0.1:2381"}, Ready: "/health", Older: -1,
	},
	{
		Name: "kube-proxy", Runs: AsDaemonSet, Executable: "/usr/local/bin/kube-proxy", Kubernetes: true,
		Kubeadm:  Kubeadm{Documents: []string{"KubeProxyConfiguration"}, Config: "kubeproxy.config.k8s.io/v1alpha1"},
		Endpoint: Endpoint{URL: "http://127.0.0.1:10249"}, Ready: "/healthz", Older: 3, OlderUntil: &OlderUntil{28, 2},
	},
	{
		// Each cloud has one of its own, which says its own version.
		Name: "cloud-controller-manager", Runs: AsAddedPod, Executable: "/usr/local/bin/cloud-controller-manager",
		Endpoint: Endpoint{URL: "https://127.0.0.1:10258", Authenticated: true}, Ready: "/healthz", Older: 1,
		Elects: true,
	},
	{
		Name: "relapse-lbaas", Runs: AsSeam, Executable: control.LBaaSBinaryPath,
		Endpoint: Endpoint{URL: "http://" + control.LBaaSListen}, Ready: "/healthz", Older: -1,
	},
}

// Of is what is known of a component; false for a workload, which is no component of Kubernetes.
func Of(name string) (Component, bool) {
	i := slices.IndexFunc(table, func(c Component) bool { return c.Name == name })
	if i < 0 {
		return Component{}, false
	}
	return table[i], true
}

// Names are those of all components that hold, in alphabetical order.
func Names(hold func(Component) bool) []string {
	var out []string
	for _, c := range table {
		if hold(c) {
			out = append(out, c.Name)
		}
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

// Flagged, Limited, Electing, ControlPlane, StaticPods and AddedPods are what Names can be asked for.
func Flagged(c Component) bool      { return len(c.Kubeadm.Documents) > 0 || AddedPods(c) }
func Limited(c Component) bool      { return c.Limited }
func Electing(c Component) bool     { return c.Elects }
func ControlPlane(c Component) bool { return StaticPods(c) || AddedPods(c) }
func StaticPods(c Component) bool   { return c.Runs == AsStaticPod }
func AddedPods(c Component) bool    { return c.Runs == AsAddedPod }

// Replaceable components can be given a program of the topology's in each provider that runs them.
func Replaceable(c Component) bool {
	return AddedPods(c) || c.Kubernetes && (c.Runs == AsService || c.Runs == AsStaticPod || c.Runs == AsDaemonSet)
}

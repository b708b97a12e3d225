// Package component is the one table of what relapse knows of each component of Kubernetes, whoever runs it. A further component is a row of it.
package component

import (
	"slices"
	"strings"
)

// Component is a row of the table.
type Component struct {
	Name string

	// Node says that it runs on every node, from the node's own file system, under its service manager. The others are static pods of control planes.
	Node bool
	// Executable is where the node, or the container of its static pod, has the program.
	Executable string
	Kubeadm    Kubeadm
	Endpoint   Endpoint
	// Ready is the path that answers 200 once it is ready for work.
	Ready string
	// Older is by how many minor versions it may be older than the API servers of its cluster, by Kubernetes' version skew policy; -1 where that says
	// nothing. OlderUntil has another number for clusters below a minor version.
	Older      int
	OlderUntil *OlderUntil
	// Kubernetes says that it is a program of k8s.io/kubernetes, which answers --version with Kubernetes' own.
	Kubernetes bool
	// Limited says that its memory can be limited: it is known to run under its limit once it is ready again.
	Limited bool
}

// OlderUntil is the number of minor versions that a component might be older by, in clusters of a minor version of 1 below Minor.
type OlderUntil struct {
	Minor uint64
	Older int
}

// Kubeadm is where kubeadm's configuration keeps a component's flags.
type Kubeadm struct {
	Documents []string // their kinds
	Path      []string // to the flags within them
	Listed    bool     // kind's v1beta4 document has a list there already
}

// Endpoint is how a component's HTTP endpoint is reached.
type Endpoint struct {
	// Proxied says that it is asked through the API server, by its node's proxy. The API server itself has neither this nor a URL.
	Proxied bool
	// URL is where it listens on its node's loopback.
	URL string
	// Authenticated says that the URL wants a client certificate of the cluster's authority, with the rights to read what is asked for.
	Authenticated bool
}

var table = []Component{
	{
		Name: "kubelet", Node: true, Executable: "/usr/bin/kubelet", Kubernetes: true,
		Kubeadm:  Kubeadm{[]string{"InitConfiguration", "JoinConfiguration"}, []string{"nodeRegistration", "kubeletExtraArgs"}, true},
		Endpoint: Endpoint{Proxied: true}, Ready: "/healthz", Older: 3, OlderUntil: &OlderUntil{28, 2},
	},
	{
		Name: "kube-apiserver", Executable: "/usr/local/bin/kube-apiserver", Kubernetes: true,
		Kubeadm: Kubeadm{[]string{"ClusterConfiguration"}, []string{"apiServer", "extraArgs"}, true},
		Ready:   "/readyz", Limited: true,
	},
	{
		Name: "kube-controller-manager", Executable: "/usr/local/bin/kube-controller-manager", Kubernetes: true,
		Kubeadm:  Kubeadm{[]string{"ClusterConfiguration"}, []string{"controllerManager", "extraArgs"}, true},
		Endpoint: Endpoint{URL: "https://127.0.0.1:10257", Authenticated: true}, Ready: "/healthz", Older: 1, Limited: true,
	},
	{
		Name: "kube-scheduler", Executable: "/usr/local/bin/kube-scheduler", Kubernetes: true,
		Kubeadm:  Kubeadm{[]string{"ClusterConfiguration"}, []string{"scheduler", "extraArgs"}, false},
		Endpoint: Endpoint{URL: "https://127.0.0.1:10259", Authenticated: true}, Ready: "/healthz", Older: 1, Limited: true,
	},
	{
		Name: "etcd", Executable: "/usr/local/bin/etcd",
		Kubeadm:  Kubeadm{[]string{"ClusterConfiguration"}, []string{"etcd", "local", "extraArgs"}, false},
		Endpoint: Endpoint{URL: "http://127.0.0.1:2381"}, Ready: "/health", Older: -1,
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

// Flagged, Limited and StaticPods are what Names can be asked for.
func Flagged(c Component) bool    { return len(c.Kubeadm.Documents) > 0 }
func Limited(c Component) bool    { return c.Limited }
func StaticPods(c Component) bool { return !c.Node }

// Package component has the table of what relapse knows about each component of Kubernetes, whatever the provider. A
// new component is a new row.
package component

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// The modules that components are built from. EtcdVersion works with every version of Kubernetes that can be built.
const (
	KubernetesModule = "k8s.io/kubernetes"
	EtcdModule       = "go.etcd.io/etcd/server/v3"
	EtcdVersion      = "v3.6.5"
)

// DefaultVersion is the version of Kubernetes that clusters have where none is named.
const DefaultVersion = "v1.36.3"

// Commands is what the import paths of Kubernetes' programs begin with.
const Commands = KubernetesModule + "/cmd/"

// KubeconfigWord stands in a component's own files for the path of its kubeconfig, which a configuration file has to name.
const KubeconfigWord = "$(kubeconfig)"

// Component is a row of the table.
type Component struct {
	Name string

	// Runs says how a kubeadm cluster runs the component, and who restarts it when it ends.
	Runs Runs
	// Executable is the program's path in the node, or in the component's container.
	Executable string
	// Kubeconfig is the path of the kubeconfig that kubeadm writes for a static pod; "" if it writes none.
	Kubeconfig string
	Kubeadm    Kubeadm
	Endpoint   Endpoint
	// Port is the TCP port of its node that programs on other nodes connect to; 0 if none do, or if no kubeadm cluster
	// says which port it is.
	Port int
	// Ready is the path that answers 200 once it is ready for work. Live is the path that answers 200 for as long as it
	// needs no restart, if that is another path.
	Ready, Live string
	// Metrics are the families that say how the component's main work goes, and what the process takes for it.
	Metrics []string
	// Older is how many minor versions the component may be behind its cluster's API servers, by Kubernetes' version
	// skew policy, or -1 where the policy says nothing. OlderUntil gives another number for clusters below a minor
	// version.
	Older      int
	OlderUntil *OlderUntil
	// Kubernetes says that the program comes from k8s.io/kubernetes, and so answers --version with the version of
	// Kubernetes.
	Kubernetes bool
	// OwnModule is the module of a program that doesn't come from k8s.io/kubernetes, which is its package as well, and
	// OwnVersion the version that runs in every cluster; "" for others.
	OwnModule, OwnVersion string
	// Limited says that the component's memory can be limited: once it is ready again after a restart, it is known to
	// run under its limit.
	Limited bool
	// Insecure is the port that old versions open to everybody on their host; nil if none does.
	Insecure *Insecure
	// Elects says that the component's instances elect a leader, by a Lease of the component's name in the namespace
	// kube-system.
	Elects bool
}

// Runs is how a component runs.
type Runs int

const (
	// Nowhere stands for a workload, which is no component.
	Nowhere Runs = iota
	// AsService means that each node's service manager runs the program from the node's file system, and restarts it.
	AsService
	// AsStaticPod means that each control plane has a static pod for the component, on the node's network. Its kubelet
	// restarts the container.
	AsStaticPod
	// AsDaemonSet means that each node has a pod of a DaemonSet, on the node's network. Its kubelet restarts the
	// container. The pod's label k8s-app is the component's name.
	AsDaemonSet
	// AsAddedPod is like AsStaticPod, but only on control planes to which the topology gives a program for the
	// component. kubeadm starts no such pod.
	AsAddedPod
	// AsSeam means that the control plane's service manager runs the program from the node's file system, where the
	// scenario has the seam that installs it. The program is no component of Kubernetes, but a component talks to it.
	AsSeam
)

// OnRole reports whether nodes of a role run the component. controlPlane says whether the role is the control plane's.
func (c Component) OnRole(controlPlane bool) bool {
	switch c.Runs {
	case AsService, AsDaemonSet:
		return true
	case AsStaticPod, AsAddedPod, AsSeam:
		return controlPlane
	}
	return false
}

// OlderUntil replaces Component.Older in clusters of Kubernetes 1.x with x below Minor.
type OlderUntil struct {
	Minor uint64
	Older int
}

// Insecure is a port without TLS, at a fixed number. Programs of Kubernetes 1.x with x below Minor open it unless Flag
// is 0. Later programs never open it, and may not know the flag.
type Insecure struct {
	Flag  string
	Minor uint64
}

// Closing returns the flags that keep the component's program of a version of Kubernetes, such as v1.22.17, from opening
// the insecure port. Two programs on one host can't both have that port. The result is empty for a program that doesn't
// open it, and for a version that can't be read.
func (c Component) Closing(version string) map[string]string {
	v, err := semver.ParseTolerant(version)
	if err != nil || c.Insecure == nil || v.Major != 1 || v.Minor >= c.Insecure.Minor {
		return nil
	}
	return map[string]string{c.Insecure.Flag: "0"}
}

// Kubeadm says where kubeadm's configuration keeps a component's flags.
type Kubeadm struct {
	Documents []string // the kinds of the documents
	Path      []string // to the flags within a document
	Listed    bool     // kind's v1beta4 document already has a list at Path
	// Config is set where the only document is the component's own configuration, one for the whole cluster: it is the
	// document's API version. The component's flags are then fields of the document, given by dotted names and YAML
	// values.
	Config string
}

// Endpoint says how to reach a component's HTTP endpoint.
type Endpoint struct {
	// Proxied says that requests go through the API server, by its proxy to the component's node. The API server itself
	// has neither Proxied nor URL.
	Proxied bool
	// URL is the address that the component listens on, on its node's loopback.
	URL string
	// Authenticated says that requests to URL need a client certificate of the cluster's authority, whose user may read
	// the path.
	Authenticated bool
}

// Of returns the row of a component, or false for a workload, which is no component of Kubernetes.
func Of(name string) (Component, bool) {
	i := slices.IndexFunc(table, func(c Component) bool { return c.Name == name })
	if i < 0 {
		return Component{}, false
	}
	return table[i], true
}

// Names returns the names of all components for which hold is true, or of all if it is nil, in alphabetical order.
func Names(hold func(Component) bool) []string {
	var out []string
	for _, c := range table {
		if hold == nil || hold(c) {
			out = append(out, c.Name)
		}
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

// Flagged, TakesFlags, Limited, Electing, ControlPlane, StaticPods, AddedPods and Remote are conditions to give to Names.
func Flagged(c Component) bool      { return len(c.Kubeadm.Documents) > 0 || AddedPods(c) }
func TakesFlags(c Component) bool   { return Flagged(c) && c.Kubeadm.Config == "" }
func Limited(c Component) bool      { return c.Limited }
func Electing(c Component) bool     { return c.Elects }
func ControlPlane(c Component) bool { return StaticPods(c) || AddedPods(c) }
func StaticPods(c Component) bool   { return c.Runs == AsStaticPod }
func AddedPods(c Component) bool    { return c.Runs == AsAddedPod }
func Remote(c Component) bool       { return c.Port > 0 }

// Builds reports whether a package's program is the component. Each cloud has its own cloud-controller-manager.
func (c Component) Builds(pkg string) bool {
	if c.Kubernetes || c.Runs == AsStaticPod {
		return pkg == c.Package()
	}
	return strings.HasSuffix(path.Base(pkg), c.Name)
}

// Module returns the module that the component's program is built from, or "" if there are several.
func (c Component) Module() string {
	if c.Kubernetes {
		return KubernetesModule
	}
	return c.OwnModule
}

// Version returns the version of the component's module in a cluster of a version of Kubernetes.
func (c Component) Version(kubernetes string) string {
	return cmp.Or(c.OwnVersion, kubernetes)
}

// Package returns the import path of the component's program, or a description of such paths if there are several.
func (c Component) Package() string {
	switch {
	case c.Kubernetes:
		return Commands + c.Name
	case c.OwnModule != "":
		return c.OwnModule
	}
	return "a package whose name ends in " + c.Name
}

// Image returns the image, without its registry, that has the program as the component's project published it at a
// version: at /usr/local/bin/NAME. It returns "" if no image has it.
func (c Component) Image(version string) string {
	switch {
	case c.Name == "etcd": // the number at the end counts the images of a version
		return "etcd:" + strings.TrimPrefix(version, "v") + "-0"
	case c.Kubernetes && c.Runs != AsService:
		return c.Name + ":" + version
	}
	return ""
}

// File returns the path, without its host, of the program as a file that the component's project published at a version.
// It returns "" if there is none.
func (c Component) File(version, arch string) string {
	if !c.Kubernetes {
		return ""
	}
	return path.Join("release", version, "bin/linux", arch, c.Name)
}

// Replaceable reports whether a program of the topology can run in the component's place: with every provider, or, where
// Mountable doesn't hold, with the provider processes.
func Replaceable(c Component) bool { return Mountable(c) || c.OwnModule != "" }

// Mountable reports whether kubeadm's configuration has a place for a program to run in place of the component's own: that
// of etcd has none for a mount.
func Mountable(c Component) bool {
	return AddedPods(c) ||
		c.Kubernetes && (c.Runs == AsService || c.Runs == AsStaticPod || c.Runs == AsDaemonSet)
}

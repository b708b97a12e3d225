package match

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// linked maps packages to programs that are linked with a component's packages and are not the component. A panic prints
// one goroutine, which seldom is the main one.
var linked = map[string]string{
	"k8s.io/autoscaler/cluster-autoscaler/": "cluster-autoscaler", "sigs.k8s.io/karpenter/": "karpenter", "sigs.k8s.io/kueue/": "kueue",
	"sigs.k8s.io/descheduler/": "descheduler", "volcano.sh/volcano/": "volcano", "sigs.k8s.io/metrics-server/": "metrics-server",
	"sigs.k8s.io/prometheus-adapter/": "prometheus-adapter", "k8s.io/sample-apiserver/": "sample-apiserver",
	"github.com/openshift/openshift-apiserver/": "openshift-apiserver", "github.com/kcp-dev/kcp/": "kcp",
	"testing.tRunner": "a test", "testing.(*M).Run": "a test", "testing.(*T).Run": "a test",
}

// linkedIn returns the program that is linked with components' packages and left a dump, as one of its own functions
// shows.
func linkedIn(d *goroutine.Dump) owner {
	for _, g := range d.Groups {
		for i := range len(g.Frames) + 1 {
			function := g.CreatedBy
			if i < len(g.Frames) {
				function = g.Frames[i].Func
			}
			for prefix, name := range linked {
				if strings.HasPrefix(function, prefix) {
					return owner{name, "the function " + function}
				}
			}
		}
	}
	return owner{}
}

// hosts are programs that run Kubernetes' components in their own process.
var hosts = []string{"k3s", "rke2", "k0s", "kubelite", "hyperkube", "microk8s.daemon-kubelite", "hypershift", "openshift"}

// hosted matches functions and files of the programs that are hosts, in their own repositories.
var hosted = regexp.MustCompile(`(?:^|/)(?:github\.com/(?:k3s-io|rancher|k0sproject)/(k3s|rke2|k0s)[./@]|(?:k8s\.io/kubernetes|openshift/[a-z-]+)/cmd/(hyperkube|kubelite|hypershift|openshift)[./])`)

// mayHost reports whether a dump may be of a component although it is said to be of another program: that is one that
// runs components in its own process, and none of its functions shows which.
func mayHost(d *goroutine.Dump, who owner, component string) bool {
	_, host := hostOf(d)
	return host && slices.Contains(kubernetes, component) && !slices.Contains(kubernetes, who.program)
}

// hostOf returns the program that runs several components in its process, and left this dump: the main goroutine has its
// functions or files.
func hostOf(d *goroutine.Dump) (owner, bool) {
	for _, g := range d.Groups {
		main := slices.ContainsFunc(g.Frames, func(f goroutine.Frame) bool { return f.Func == "main.main" })
		if !main {
			continue
		}
		for _, f := range g.Frames {
			for _, at := range []string{f.Func, f.File} {
				if m := hosted.FindStringSubmatch(at); m != nil {
					return owner{m[1] + m[2], at}, true
				}
			}
		}
	}
	return owner{}, false
}

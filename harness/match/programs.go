package match

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/evidence/pasted"
)

// linked maps packages to programs that are linked with a component's packages and are not the component. A panic prints
// one goroutine, which seldom is the main one.
var linked = map[string]string{
	"k8s.io/autoscaler/cluster-autoscaler/":     "cluster-autoscaler",
	"sigs.k8s.io/karpenter/":                    "karpenter",
	"sigs.k8s.io/kueue/":                        "kueue",
	"sigs.k8s.io/descheduler/":                  "descheduler",
	"volcano.sh/volcano/":                       "volcano",
	"sigs.k8s.io/metrics-server/":               "metrics-server",
	"sigs.k8s.io/prometheus-adapter/":           "prometheus-adapter",
	"k8s.io/sample-apiserver/":                  "sample-apiserver",
	"github.com/openshift/openshift-apiserver/": "openshift-apiserver",
	"github.com/kcp-dev/kcp/":                   "kcp",
	"k8s.io/kubernetes/pkg/kubemark.":           "kubemark",
	"k8s.io/kubernetes/test/":                   aTest,
	"github.com/onsi/ginkgo":                    aTest,
	"testing.tRunner":                           aTest,
	"testing.(*B).":                             aTest,
	"testing.(*F).":                             aTest,
	"testing.(*M).Run":                          aTest,
	"testing.(*T).Run":                          aTest,
}

// linkedIn returns the program that is linked with components' packages and left a dump, as one of its own functions
// shows.
func linkedIn(d *goroutine.Dump) owner {
	for _, g := range d.Groups {
		for i := range len(g.Frames) + 1 {
			function, file := g.CreatedBy, g.CreatedAt.File
			if i < len(g.Frames) {
				function, file = g.Frames[i].Func, g.Frames[i].File
			}
			if strings.HasSuffix(file, "_test.go") {
				return owner{aTest, "the file of the function " + function + ", " + file}
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

func isHost(program string) bool { return slices.Contains(hosts, program) }

// distribution is the module from which k3s and RKE2 build Kubernetes.
const distribution = "github.com/k3s-io/kubernetes@"

// distributions matches the modules of those who run the components in programs of their own.
var distributions = regexp.MustCompile(`^github\.com/(?:k3s-io/(?:k3s|kubernetes|etcd)$|k0sproject/|rancher/(?:k3s|rke2)$|openshift/(?:origin|hypershift)$)`)

// hosted matches functions and files of the programs that are hosts, in their own repositories.
var hosted = regexp.MustCompile(
	`(?:^|/)(?:github\.com/(?:k3s-io|rancher|k0sproject)/(k3s|rke2|k0s)[./@]|(?:k8s\.io/kubernetes|openshift/[a-z-]+)/cmd/(hyperkube|kubelite|hypershift|openshift)[./])`,
)

// mayHost reports whether a dump may be of a component although it is said to be of another program: that is one that
// runs components in its own process, and none of its functions shows which.
func mayHost(d *goroutine.Dump, who owner, component string) bool {
	_, host := hostOf(d)
	return host && slices.Contains(kubernetes, component) &&
		!slices.Contains(kubernetes, who.program)
}

// hostOf returns the program that runs several components in its process, and left this dump: the main goroutine has its
// functions or files.
func hostOf(d *goroutine.Dump) (owner, bool) {
	for _, g := range d.Groups {
		main := slices.ContainsFunc(
			g.Frames,
			func(f goroutine.Frame) bool { return f.Func == "main.main" },
		)
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

// imaged matches a text that names an image by a path with a tag or a digest.
var imaged = regexp.MustCompile(
	`(?i)\bimages?(?: id| name)?"?(?:\s*[:=]\s*|\s+(?:is\s+|was\s+)?)["'` + "`" + `]?(?:docker-pullable://)?((?:[a-z0-9.-]+(?::[0-9]+)?/)+[a-z0-9._-]+)(?::[a-z0-9][\w.-]*|@sha256:[0-9a-f]+)`,
)

// maxImages bounds the images that are kept of a text.
const maxImages = 16

// images returns the images that a text names.
func images(lines []pasted.Line) (out []string) {
	for _, l := range lines {
		if len(l.Text) > maxStated || len(out) >= maxImages || !bytes.Contains(l.Text, []byte("mage")) && !bytes.Contains(l.Text, []byte("MAGE")) {
			continue
		}
		for _, m := range imaged.FindAllSubmatch(l.Text, -1) {
			out = union(out, string(m[1]))
		}
	}
	return out
}

// ofKubernetes matches names of images that have a component of Kubernetes, or a program that runs them.
var ofKubernetes = regexp.MustCompile(`^(?:.*(?:kube-apiserver|kube-controller-manager|kube-scheduler|kube-proxy|kubelet|cloud-controller-manager|hyperkube|hardened-kubernetes|k3s|rke2|k0s|microk8s|hypershift).*|kubernetes|node|pause|etcd|coredns)$`)

// imageOfAnother returns an image that a text names and that is another program's, "" if it names none, or one with a
// component of Kubernetes beside it.
func (s *source) imageOfAnother() string {
	another := ""
	for _, i := range s.images {
		name := path.Base(i)
		if words := strings.Split(name, "-"); ofKubernetes.MatchString(name) && !slices.Contains(companions, words[len(words)-1]) || isComponent(name) {
			return ""
		}
		another = i
	}
	return another
}

// isComponent reports whether a name is a component's, which may end in a word that makes other names those of other
// programs.
func isComponent(name string) bool { return slices.Contains(known, name) }

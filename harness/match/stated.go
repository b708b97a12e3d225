package match

import (
	"bytes"
	"regexp"
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/pasted"
)

const (
	release    = `(v[0-9]+\.[0-9]+\.[0-9]+[-+.\w]*)`
	components = `(kube-apiserver|kube-controller-manager|kube-scheduler|kube-proxy|kubelet|cloud-controller-manager)`
)

// controlPlane has the version of the API server, as far as people keep to what is supported.
var controlPlane = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// kubernetes are the components of Kubernetes' own repository.
var kubernetes = append([]string{"kubelet", "kube-proxy"}, controlPlane...)

// statement is a form in which a text states a version: of the component that the pattern's first group names, or of
// these. The last group is the version.
type statement struct {
	re *regexp.Regexp
	of []string
}

var statements = []statement{
	// A user agent, and an image with its tag.
	{regexp.MustCompile(`\b` + components + `/` + release + ` \(`), nil},
	{regexp.MustCompile(`(?:^|[/"' ])` + components + `(?:-[a-z0-9]+)?:` + release), nil},
	{regexp.MustCompile(`(?:^|[/"' ])hyperkube(?:-[a-z0-9]+)?:` + release), kubernetes},
	// kubectl version, describe node and get nodes.
	{regexp.MustCompile(`^\s*Server Version: (?:version\.Info\{.*GitVersion:")?` + release), controlPlane},
	{regexp.MustCompile(`(?i)^\s*"?kubelet ?version"?: *"?` + release), []string{"kubelet"}},
	{regexp.MustCompile(`(?i)^\s*"?kube-?proxy ?version"?: *"?` + release), []string{"kube-proxy"}},
	{regexp.MustCompile(`^\S+ +(?:Not)?Ready\S* +\S+ +[0-9][0-9a-z]* +` + release + `(?: |$)`), []string{"kubelet"}},
	// The path of a file of a program that was built from the module, and start lines of what runs the components.
	{regexp.MustCompile(`(?:^|/)k8s\.io/kubernetes@` + release + `/`), kubernetes},
	{regexp.MustCompile(`k3s-io/kubernetes(?:/staging/src/k8s\.io/[a-z-]+)?@` + release + `/`), kubernetes},
	{regexp.MustCompile(`(?i)starting (?:k3s|rke2) ` + release), kubernetes},
}

// anyRelease matches what every statement has.
var anyRelease = regexp.MustCompile(`v[0-9]+\.[0-9]+\.[0-9]`)

// stated returns the versions that lines state of components.
func stated(lines []pasted.Line) (out []announcement) {
	for _, l := range lines {
		if len(l.Text) > maxStated || !anyRelease.Match(l.Text) || bytes.Contains(l.Text, []byte("Client Version")) {
			continue
		}
		for _, s := range statements {
			for _, m := range s.re.FindAllSubmatch(l.Text, -1) {
				of := s.of
				if of == nil {
					of = []string{string(m[1])}
				}
				for _, component := range of {
					if v := (announcement{string(m[len(m)-1]), component}); !slices.Contains(out, v) && len(out) < 64 {
						out = append(out, v)
					}
				}
			}
		}
	}
	return out
}

// maxStated is the longest line, in bytes, in which versions are looked for.
const maxStated = 16 << 10

// prompt matches a command after a shell's prompt that prints what follows.
var prompt = regexp.MustCompile(`^\S{0,60}(?: [~/]\S{0,60})?[$#] (.*\b(?:logs?|journalctl|cat|zcat|tail|head|less|grep|curl|kubectl get --raw|crictl|docker)\b.*)$`)

// commands returns the commands in a text that printed what is in it.
func commands(lines []pasted.Line) (out []string) {
	for _, l := range lines {
		if m := prompt.FindSubmatch(l.Text); m != nil && len(m[1]) < 200 && len(out) < 8 {
			out = append(out, string(m[1]))
		}
	}
	return out
}

package match

import (
	"bytes"
	"regexp"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
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
	// prints are the components that print the form themselves: only what their program prints rules anything out. Of
	// all others the version is only said.
	prints []string
	// loose says that people write the form in sentences, too. In prose it doesn't count at all.
	loose bool
}

var statements = []statement{
	// A user agent: another component's stands in the API server's log, which may be of any node.
	{re: regexp.MustCompile(`\b` + components + `/` + release + ` \([a-z0-9]+/[a-z0-9]+\) kubernetes/`), prints: []string{"kube-apiserver"}},
	{re: regexp.MustCompile(`\b` + components + `/` + release + ` \(`), loose: true},
	// An image with its tag, in a manifest and elsewhere.
	{re: regexp.MustCompile(`^\s*(?:- )?"?[Ii]mage"?: +"?(?:[^\s"]*/)?` + components + `(?:-[a-z0-9]+)?:` + release + `(?:@\S*)?"?,?\s*$`), prints: known},
	{re: regexp.MustCompile(`(?:^|[/"' ])` + components + `(?:-[a-z0-9]+)?:` + release), loose: true},
	{re: regexp.MustCompile(`(?:^|[/"' ])hyperkube(?:-[a-z0-9]+)?:` + release), of: kubernetes, loose: true},
	// kubectl version, describe node and get nodes.
	{re: regexp.MustCompile(`^\s*Server Version: (?:version\.Info\{.*GitVersion:")?` + release), of: controlPlane, prints: []string{"kube-apiserver"}},
	{re: regexp.MustCompile(`(?i)^\s*"?kubelet ?version"?: *"?` + release), of: []string{"kubelet"}, prints: known},
	{re: regexp.MustCompile(`(?i)^\s*"?kube-?proxy ?version"?: *"?` + release), of: []string{"kube-proxy"}, prints: known},
	{re: regexp.MustCompile(`^\S+ +(?:Not)?Ready\S* +\S+ +[0-9][0-9a-z]* +` + release + `(?: |$)`), of: []string{"kubelet"}, prints: known},
	// The path of a file of a program that was built from the module, and start lines of what runs the components.
	{re: regexp.MustCompile(`(?:^|/)k8s\.io/kubernetes@` + release + `/`), of: kubernetes, loose: true},
	{re: regexp.MustCompile(`k3s-io/kubernetes(?:/staging/src/k8s\.io/[a-z-]+)?@` + release + `/`), of: kubernetes, loose: true},
	{re: regexp.MustCompile(`(?i)starting (?:k3s|rke2) ` + release), of: kubernetes, loose: true},
	{re: regexp.MustCompile(`(?i)^(?:k3s|rke2) version ` + release), of: kubernetes, loose: true},
	{re: regexp.MustCompile(`\bkubernetes_build_info\{[^}]*(?:git_v|gitV)ersion="` + release), of: kubernetes, loose: true},
	// kubectl version -o json or yaml, and the API server's /version.
	{re: regexp.MustCompile(`^\s*"?gitVersion"?: *"?` + release), of: controlPlane, prints: []string{"kube-apiserver"}},
	{re: regexp.MustCompile(`"serverVersion": *\{[^}]*"gitVersion": *"` + release), of: controlPlane, prints: []string{"kube-apiserver"}},
	// What a program prints for --version.
	{re: regexp.MustCompile(`^Kubernetes ` + release + `\s*$`), of: kubernetes},
}

// known are the components that a statement may name.
var known = append([]string{"cloud-controller-manager"}, kubernetes...)

// side matches where the client's or the server's part of kubectl version -o json or yaml begins, on a line of its own.
var side = regexp.MustCompile(`^\s*"?(client|server)Version"?: *\{?\s*$`)

// anyRelease matches what every statement has.
var anyRelease = regexp.MustCompile(`v[0-9]+\.[0-9]+\.[0-9]`)

// stated returns the versions that lines state of components. In a text of which a person chose what is in it, all of
// them are only said.
func stated(lines []pasted.Line, chosen bool) (out []announcement) {
	ofClient := false // the lines are kubectl's own part of kubectl version -o yaml
	var above []byte
	for _, l := range lines {
		if m := side.FindSubmatch(l.Text); m != nil {
			ofClient = string(m[1]) == "client"
		}
		for _, v := range sayings(above, l.Text) {
			if !slices.Contains(out, v) && len(out) < maxStatements {
				out = append(out, v)
			}
		}
		above = l.Text
		if len(l.Text) > maxStated || !anyRelease.Match(l.Text) || ofClient || bytes.Contains(l.Text, []byte("Client Version")) {
			continue
		}
		for _, s := range statements {
			if s.loose && l.Prose {
				continue
			}
			for _, m := range s.re.FindAllSubmatch(l.Text, -1) {
				of := s.of
				if of == nil {
					of = []string{string(m[1])}
				}
				for _, component := range of {
					v := announcement{version: string(m[len(m)-1]), by: component}
					if chosen || !slices.Contains(s.prints, component) {
						v.unsure = asTextSays
					}
					if !slices.Contains(out, v) && len(out) < maxStatements {
						out = append(out, v)
					}
				}
			}
		}
	}
	return out
}

// maxStatements bounds the versions that are kept of a text.
const maxStatements = 64

// loggedLine reports whether klog wrote a line, or a program that logs in JSON.
func loggedLine(line []byte) bool {
	text, p := goroutine.Plain(line, time.UTC)
	_, ok := klog.Parse(text, time.Unix(0, 0))
	return ok || p.From != "" || !p.Time.IsZero()
}

// asTextSays is why a version that a text only says may not be that of its evidence.
const asTextSays = "which the text only says"

// maxStated is the longest line, in bytes, in which versions are looked for.
const maxStated = 16 << 10

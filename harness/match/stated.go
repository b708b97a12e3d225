package match

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"

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

// said are forms in which people write a version, with a v or without. It is of Kubernetes unless the first group names
// a component.
var said = regexp.MustCompile(
	`(?i)(?:\b(kubelet|kube-proxy|kube-apiserver|kube-controller-manager|kube-scheduler|cloud-controller-manager|etcd)|\b(?:kubernetes|k8s|cluster|control plane|api ?server|server|node|we(?:'re)?|i(?:'m)?))(?:s|'s)?` +
		`(?:\W{1,4}(?:version|release|server|cluster|control plane|kubectl version|use|is|are|am|was|were|have|at|on|of|running|runs|run|using|still|all|now|to)){0,5}\W{1,6}v?((?:1\.[0-9]{1,2}|3\.[456])\.[0-9]{1,2}(?:[-+][\w.+-]*\w)?)`,
)

// ofAFix matches what people write before the version of a fix, or of what they did before or after.
var ofAFix = regexp.MustCompile(
	`(?i)\b(?:fix\w*|solved|gone|upgrade|upgrading|update|updating|backport\w*|cherry\w*)\b[^.;]{0,30}$|\b(?:since|until|before|from)\s+(?:the\s+)?$`,
)

// sayings returns the versions that a line of a text says of Kubernetes, or of one of its components.
func sayings(line []byte) (out []announcement) {
	if len(line) > maxSaid || !dotted.Match(line) || bytes.Contains(line, []byte(".go:")) || !said.Match(line) || loggedLine(line) {
		return nil
	}
	for _, at := range said.FindAllSubmatchIndex(line, -1) {
		if rest := line[at[5]:]; len(rest) > 0 && '0' <= rest[0] && rest[0] <= '9' || len(rest) > 1 && rest[0] == '.' && '0' <= rest[1] && rest[1] <= '9' {
			continue // an address
		}
		version := "v" + string(line[at[4]:at[5]])
		parsed, err := semver.ParseTolerant(version)
		of := kubernetes
		if at[2] >= 0 {
			of = []string{strings.ToLower(string(line[at[2]:at[3]]))}
		}
		if etcds := slices.Contains(of, "etcd"); err != nil || ofAFix.Match(line[:at[0]]) || etcds != (parsed.Major == 3) || !etcds && parsed.Minor < 5 {
			continue
		}
		for _, component := range of {
			out = append(out, announcement{version: version, by: component, unsure: asTextSays})
		}
	}
	return out
}

var dotted = regexp.MustCompile(`[13]\.[0-9]{1,2}\.[0-9]`)

// maxSaid is the longest line, in bytes, in which people say a version.
const maxSaid = 2 << 10

// anyRelease matches what every statement has.
var anyRelease = regexp.MustCompile(`v[0-9]+\.[0-9]+\.[0-9]`)

// stated returns the versions that lines state of components. In a text of which a person chose what is in it, all of
// them are only said.
func stated(lines []pasted.Line, chosen bool) (out []announcement) {
	ofClient := false // the lines are kubectl's own part of kubectl version -o yaml
	for _, l := range lines {
		if m := side.FindSubmatch(l.Text); m != nil {
			ofClient = string(m[1]) == "client"
		}
		for _, v := range sayings(l.Text) {
			if !slices.Contains(out, v) && len(out) < maxStatements {
				out = append(out, v)
			}
		}
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

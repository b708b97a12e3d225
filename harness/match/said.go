package match

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// said are forms in which people write a version, with a v or without. It is of Kubernetes unless the first group names
// a component.
var said = regexp.MustCompile(
	`(?i)(?:\b(kubelet|kube-proxy|kube-apiserver|kube-controller-manager|kube-scheduler|cloud-controller-manager|etcd)|` +
		`\b(kubernetes|k8s|cluster|control plane|scheduler|controller[- ]manager|api ?server|server|node|we(?:'re)?|i(?:'m)?))(?:s|'s)?` +
		`(?:\W{1,4}(?:version|release|server|cluster|control plane|kubectl version|use|is|are|am|was|were|have|at|on|of|running|runs|run|using|still|all|now|to)){0,5}\W{1,6}v?((?:1\.[0-9]{1,2}|3\.[456])\.[0-9]{1,2}(?:[-+][\w.+-]*\w)?)`,
)

// ofAFix matches what people write before the version of a fix, or of what they did before or after.
var ofAFix = regexp.MustCompile(
	`(?i)\b(?:fix\w*|solved|gone|upgrade|upgrading|update|updating|backport\w*|cherry\w*)\b[^.;]{0,30}$|\b(?:since|until|before|from)\s+(?:the\s+)?$`,
)

// sayings returns the versions that a line of a text says of Kubernetes, or of one of its components. above is the line
// above, whose last sentence may go on in it.
func sayings(above, line []byte) (out []announcement) {
	if len(line) > maxSaid || !dotted.Match(line) {
		return nil
	}
	if m := ofMember.FindSubmatch(line); m != nil {
		return []announcement{{version: "v" + string(m[1]), by: "etcd", unsure: asTextSays}}
	}
	if bytes.Contains(line, []byte(".go:")) || !said.Match(line) || loggedLine(line) {
		return nil
	}
	for _, at := range said.FindAllSubmatchIndex(line, -1) {
		if rest := line[at[7]:]; len(rest) > 0 && '0' <= rest[0] && rest[0] <= '9' || len(rest) > 1 && rest[0] == '.' && '0' <= rest[1] && rest[1] <= '9' {
			continue // an address
		}
		if at[4] >= 0 && ofAnother(above, line, at) {
			continue
		}
		version := "v" + string(line[at[6]:at[7]])
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

// ofMember matches a row of what etcdctl endpoint status prints: a member's address, its ID and its version.
var ofMember = regexp.MustCompile(
	`^\|?\s*(?:https?://)?[\w.\[\]:-]+:[0-9]+\s*[|,]\s*[0-9a-f]{8,16}\s*[|,]\s*(3\.[0-9]+\.[0-9]+)\s*[|,]`,
)

var dotted = regexp.MustCompile(`[13]\.[0-9]{1,2}\.[0-9]`)

// maxSaid is the longest line, in bytes, in which people say a version.
const maxSaid = 2 << 10

const (
	// others are names of what runs beside Kubernetes, or on it, and has versions of the same form.
	others = `argo ?cd|argo|antrea|calico|cassandra|ceph|cert-manager|chart|cilium|cluster-autoscaler|consul|containerd|contour|coredns|cri-?o|csi|cni|dapr|dashboard|docker|` +
		`elastic(?:search)?|envoy|external-dns|falco|flannel|fluent-?bit|fluentd|flux|gatekeeper|gitlab|golang|grafana|haproxy|harbor|helm|ingress-nginx|istio|istiod|jaeger|jenkins|` +
		`kafka|karpenter|keda|knative|kubevirt|kuma|kyverno|linkerd|loki|longhorn|metallb|metrics-server|minikube|minio|mongo(?:db)?|multus|mysql|nats|nginx|nomad|openebs|opensearch|` +
		`operator|podman|postgres(?:ql)?|prometheus|rabbitmq|redis|rook|runc|rust|spark|strimzi|talos|tekton|terraform|thanos|traefik|vault|vector|velero|volcano|weave|yunikorn|zookeeper`
	// ofOurs are words for Kubernetes, in a sentence that may name what runs on it, too.
	ofOurs = `kubernetes|k8s|kube-[a-z-]+|kubelets?|kubeadm|k3s|rke2?|k0s|microk8s|eks|gke|aks|openshift|clusters?|control plane|scheduler|controller[- ]manager|api ?server`
)

var (
	another      = regexp.MustCompile(`(?i)\b(?:` + others + `)\b|\bGo\b`)
	ours         = regexp.MustCompile(`(?i)\b(?:` + ofOurs + `)\b`)
	anotherAbove = regexp.MustCompile(`(?i)\b(?:` + others + `)(?:'s)?\s+$`) // as in "the Istio control plane"
	ofAnotherOne = regexp.MustCompile(`(?i)^\W{1,3}(?:(?:of|for) )?(?:the )?(?:` + others + `)\b`)
	sentenceEnds = regexp.MustCompile(`[.!?](?:\s|$)`)
)

// ofAnother reports whether a version is said of something else than Kubernetes: a word that may mean anybody's, such as
// "we" or "server", stands in a sentence that names another program, and nothing of Kubernetes; or the other one stands
// right beside. at are the positions of said in the line.
func ofAnother(above, line []byte, at []int) bool {
	word := strings.ToLower(string(line[at[4]:at[5]]))
	if word == "kubernetes" || word == "k8s" {
		return false
	}
	if ofAnotherOne.Match(line[at[1]:]) || anotherAbove.Match(line[:at[0]]) {
		return true
	}
	if word != "server" && word[0] != 'w' && word[0] != 'i' {
		return false
	}
	before := sentence(append(append(bytes.Clone(sentence(above)), ' '), line[:at[0]]...))
	return another.Match(before) && !ours.Match(before)
}

// sentence returns what a text has of its last sentence, if that has no end; none of a line without text.
func sentence(text []byte) []byte {
	if len(text) > maxSaid || len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	if all := sentenceEnds.FindAllIndex(text, -1); len(all) > 0 {
		text = text[all[len(all)-1][1]:]
	}
	return text
}

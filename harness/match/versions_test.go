package match_test

import (
	"fmt"
	"strings"
	"testing"
)

// A version rules an incident out only if the program itself has printed it, for the very process that the evidence is
// of. One that is only said is said on.
func TestVersionsThatRuleNothingOut(t *testing.T) {
	const pleg, leak, filter = "pleg-deadlock", "apiserver-goroutine-leak", "scheduler-nil-pointer"
	one := strings.SplitAfter(apiserver(""), "\n\n")[0]
	relist := strings.SplitAfter(kubelet("select", ""), "\n\n")[1]
	fixed := `I0301 10:%02d:00.000000       1 server.go:152] "Starting Kubernetes Scheduler" version="v1.27.3"` + "\n"
	fine := func(minute int) string {
		return strings.Replace(fineLine, "10:00", fmt.Sprintf("10:%02d", minute), 1) + "\n"
	}
	for _, c := range []struct {
		name, incident string
		files          map[string]string
		want, why      string
	}{
		{"a sentence", leak, map[string]string{"x": "upgrading to kube-apiserver:v1.23.17 should fix it\n\n" + one}, "unknown", "this is v1.23.17, which the text only says"},
		{"a sentence that is told from logs", leak, map[string]string{"x": "You should see if kube-apiserver:v1.23.17 fixes this.\n\n" + one}, "unknown", "may be a part of a dump"},
		{"a user agent in a sentence", leak, map[string]string{"x": "wait for kube-apiserver/v1.23.17 (it has the fix)\n\n" + one}, "unknown", "which the text only says"},
		{"another tool's output among sentences", leak, map[string]string{"x": "This is what you see when it hangs:\n\n" + one + "\nIf we upgrade, these are gone:\n\nServer Version: v1.23.17\n"}, "unknown", "which the text only says"},
		{"a start among sentences", filter, map[string]string{"kube-scheduler.md": "If you upgrade, you see this message:\n\n```\n" + fmt.Sprintf(fixed, 0) + "```\n"}, "unknown", "which the text only says"},
		{"a version that somebody wrote down", filter, map[string]string{"kube-scheduler.log": "Version: v1.27.3\n" + fine(0)}, "unknown", "which the text only says"},
		{"a kubelet's user agent", pleg, map[string]string{"kubelet.txt": `I0301 10:00:00.000000 1 http.go:1] "HTTP" userAgent="kubelet/v1.34.2 (linux/amd64) kubernetes/abc"` + "\n" + relist}, "unknown", "which the text only says"},
		{"a server's version beside another component's", filter, map[string]string{"kube-scheduler.log": "Server Version: v1.27.3\n" + fine(0)}, "unknown", "which the text only says"},
		{"a process that began in mid-log", filter, map[string]string{"kube-scheduler.log": fine(0) + fine(5) + fmt.Sprintf(fixed, 6)}, "unknown", "which began later than what is above it"},
		{"one below a dump", pleg, map[string]string{"kubelet.log": relist + `I0301 10:00:00.000000 1 s.go:1] "Kubelet version" kubeletVersion="v1.27.3"` + "\n"}, "unknown", "which began later than what is above it"},
		{"another log's start", filter, map[string]string{"kube-scheduler/0.log": fmt.Sprintf(fixed, 0) + fine(0), "kube-scheduler/1.log": fine(9)}, "unknown", "as not all files say"},
		{"another node's process", pleg, map[string]string{"n1/kubelet/metrics": "# TYPE kubernetes_build_info gauge\nkubernetes_build_info{git_version=\"v1.34.4\"} 1\n", "n2/kubelet/dump": relist}, "unknown", "as another process of it says"},

		{"its start", filter, map[string]string{"kube-scheduler.log": fine(0) + fmt.Sprintf(fixed, 0) + fine(9)}, "not met", "this is v1.27.3"},
		{"two of its starts", filter, map[string]string{"kube-scheduler.log": fmt.Sprintf(fixed, 0) + fine(9) + strings.Replace(fmt.Sprintf(fixed, 9), "v1.27.3", "v1.28.1", 1)}, "not met", "this is v1.27.3, v1.28.1"},
		{"its start in a journal", filter, map[string]string{"j": each("Mar  1 09:00:00 n1 kernel: ", "x") + each("Mar  1 10:00:00 n1 kube-scheduler[7]: ", fmt.Sprintf(fixed, 0)+fine(0))}, "not met", "this is v1.27.3"},
		{"the API server's user agent", leak, map[string]string{"kube-apiserver.log": `I0301 10:00:00.000000 1 http.go:1] "HTTP" userAgent="kube-apiserver/v1.34.2 (linux/amd64) kubernetes/abc"` + "\n"}, "not met", "this is v1.34.2"},
		{"its image", leak, map[string]string{"kube-apiserver.txt": "    image: registry.k8s.io/kube-apiserver:v1.34.2\n" + one}, "not met", "this is v1.34.2"},
		{"what it answers", leak, map[string]string{"kube-apiserver.txt": "Server Version: v1.34.2\n" + one}, "not met", "this is v1.34.2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answered(t, run(t, nil, files(t, c.files)), c.incident, c.want, c.why)
		})
	}
}

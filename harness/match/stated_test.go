package match_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/match"
)

// A version counts wherever the evidence states it: what has the fix is suspected at most.
func TestVersionsThatAreStated(t *testing.T) {
	for _, c := range []struct{ name, above, want, why string }{
		{"a user agent", `I0301 10:00:00.000000 1 http.go:1] "HTTP" verb="GET" userAgent="kube-apiserver/v1.34.2 (linux/amd64) kubernetes/abc"`, "suspected", "this is v1.34.2"},
		{"another program's user agent", `I0301 10:00:00.000000 1 http.go:1] "HTTP" verb="GET" userAgent="kubelet/v1.34.2 (linux/amd64) kubernetes/abc"`, "met", "the version isn't known"},
		{"an image", "    image: registry.k8s.io/kube-apiserver:v1.34.2", "suspected", "this is v1.34.2"},
		{"another image", "    image: registry.k8s.io/kube-proxy:v1.34.2", "met", "the version isn't known"},
		{"kubectl version", "Client Version: v1.36.0\nServer Version: v1.34.2", "suspected", "this is v1.34.2"},
		{"that of an affected release", "Client Version: v1.36.0\nServer Version: v1.30.1", "met", "v1.30.1 has no fix"},
		{"kubectl version of old", `Server Version: version.Info{Major:"1", Minor:"34", GitVersion:"v1.34.2", GitCommit:"x"}`, "suspected", "this is v1.34.2"},
		{"kubectl version as YAML", "clientVersion:\n  gitVersion: v1.30.1\n  platform: linux/amd64\nserverVersion:\n  gitVersion: v1.34.2\n", "suspected", "this is v1.34.2"},
		{"kubectl version as JSON", `{"clientVersion": {"gitVersion": "v1.30.1"}, "serverVersion": {"major": "1", "gitVersion": "v1.34.2"}}`, "suspected", "this is v1.34.2"},
		{"the API server's own", "{\n  \"major\": \"1\",\n  \"gitVersion\": \"v1.34.2\"\n}", "suspected", "this is v1.34.2"},
		{"a client's version as YAML", "clientVersion:\n  gitVersion: v1.34.2\n", "met", "the version isn't known"},
		{"a client's version", "Client Version: v1.34.2", "met", "the version isn't known"},
		{"a fork", "time=\"2026-03-01T10:00:00Z\" level=info msg=\"Starting k3s v1.34.2+k3s1 (abc)\"", "suspected", "v1.34.2+k3s1 is a version of its own, of which it isn't known, and v1.34.2 has the fix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answered(t, run(t, nil, files(t, map[string]string{"x": c.above + "\n" + crash(fineLine, vendored)})), "concurrent-map-crash", c.want, c.why)
		})
	}
}

// What a log tool or a command names counts: another program's crash is suspected at most.
func TestProgramsThatToolsName(t *testing.T) {
	inRepository := "k8s.io/kubernetes/vendor/k8s.io/apiserver/pkg/endpoints/filters.processAuditEvent(0x1)\n\t/go/a.go:170 +0x1\n"
	for _, c := range []struct{ name, text, want, why string }{
		{"stern", each("kube-apiserver-n1 kube-apiserver ", crash(fineLine, "")), "met", "it is of kube-apiserver, by the program that its lines name"},
		{"stern, another program", each("metrics-n1 example-metrics ", crash(fineLine, inRepository)), "suspected", "nothing shows that it is of kube-apiserver"},
		{"k3s runs it itself", each("Mar  1 10:00:00 n1 k3s[7]: ", crash(fineLine, "")), "met", "by k3s, which runs it in its own process and is the program that lines name"},
		{"the command above it", "[root@m1 ~]# kubectl -n kube-system logs --previous kube-apiserver-m1\n" + crash(fineLine, ""), "met", "by the command above it, kubectl -n kube-system logs --previous kube-apiserver-m1"},
		{"another command", "$ kubectl logs kube-apiserver-operator-1\n" + crash(fineLine, ""), "suspected", "nothing shows that it is of kube-apiserver"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answered(t, run(t, nil, files(t, map[string]string{"x": c.text})), "concurrent-map-crash", c.want, c.why)
		})
	}
}

// A program that runs the components in its own process is them, and is named as what it is. One that is linked with
// their packages is not.
func TestHosts(t *testing.T) {
	leaking := "goroutine 9 [chan send, 300 minutes]:\nk8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection.func1(0x1)\n\t/go/store.go:1101 +0x1\n\n"
	for _, c := range []struct{ name, main, want, why string }{
		{"k3s", "github.com/k3s-io/k3s/pkg/cli/server.run(0x1)\n\t/go/server.go:1 +0x1\nmain.main()\n\t/go/main.go:1 +0x1\n\n", "met", "by k3s, which runs it in its own process, as github.com/k3s-io/k3s/pkg/cli/server.run shows"},
		{"hyperkube", "main.main()\n\t/go/src/k8s.io/kubernetes/cmd/hyperkube/main.go:1 +0x1\n\n", "met", "by hyperkube, which runs it"},
		{"an aggregated API server", "sigs.k8s.io/metrics-server/cmd/metrics-server/app.run(0x1)\n\t/go/x.go:1 +0x1\nmain.main()\n\t/go/main.go:1 +0x1\n\n", "suspected", "it is of metrics-server"},
		{"one that only uses a package of k3s", "example.com/x/core.Run(0x1)\n\t/go/x.go:1 +0x1\nmain.main()\n\t/go/main.go:1 +0x1\n\n" +
			"goroutine 7 [select]:\ngithub.com/k3s-io/k3s/pkg/util.F(0x1)\n\t/go/f.go:1 +0x1\n\n", "suspected", "it is of example.com/x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, nil, files(t, map[string]string{"x": "goroutine 1 [select]:\n" + c.main + leaking}))
			answered(t, r, "apiserver-goroutine-leak", c.want, c.why)
			if i := of(t, r, "pleg-deadlock"); i.Word() != "unknown" {
				t.Errorf("kubelet's incident is %s: %s", i.Word(), i.Why)
			}
		})
	}
}

// One answer for all: met outranks suspected, and not met needs evidence that was recognised.
func TestAnswerOfAll(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       match.Answer
	}{
		{"met", kubelet("chan send, 1140 minutes", "sleep"), match.Met},
		{"suspected", overdue, match.Suspected},
		{"a component that has nothing that is known", kubelet("select", "select"), match.NotMet},
		{"a component of which something is unknown", kubelet("select", "select") + "goroutine 7 [sel", match.Unknown},
		{"nobody's", "just text\n", match.Unknown},
	} {
		r := run(t, strings.NewReader(c.text), "-")
		if r.Answer != c.want {
			t.Errorf("%s: it is %s, want %s", c.name, r.Answer, c.want)
		}
	}
	if !run(t, strings.NewReader(""), "-").Nothing() || run(t, strings.NewReader("x\n"), "-").Nothing() {
		t.Error("nothing to read is not told from a text")
	}
}

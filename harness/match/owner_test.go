package match_test

import (
	"fmt"
	"strings"
	"testing"
)

// crash is the last words of a program that died while it encoded an audit event, below a line that it began with.
func crash(first, below string) string {
	return first + "\nfatal error: concurrent map iteration and map write\n\ngoroutine 3120 [running]:\n" +
		"encoding/json.mapEncoder.encode({0x1}, 0x1)\n\tencoding/json/encode.go:783 +0x1\n" +
		"k8s.io/apiserver/plugin/pkg/audit/log.(*backend).logEvent(0x1)\n\tk8s.io/apiserver/plugin/pkg/audit/log/backend.go:76 +0x1\n" + below
}

const (
	saysFixed    = `I0301 10:00:00.000000       1 server.go:149] "Version info" version="v1.34.2"`
	saysAffected = `I0301 10:00:00.000000       1 server.go:147] Version: v1.33.4`
	fineLine     = `I0301 10:00:00.000000       1 a.go:1] "fine"`
	vendored     = "k8s.io/kubernetes/vendor/k8s.io/apiserver/pkg/endpoints/filters.processAuditEvent(0x1)\n\t/go/a.go:170 +0x1\n"
)

// A version that the text states counts, whatever its file is called: what has the fix is suspected at most.
func TestStatedVersion(t *testing.T) {
	for _, name := range []string{"kube-apiserver.log", "kube-apiserver-master1.log", "master1_kube-apiserver.log", "apiserver.log", "log.txt",
		"kube-system_kube-apiserver-n1_kube-apiserver.txt", "kube-apiserver-previous.log.1", "n1/kube-apiserver-0a1b/previous", "crash"} {
		t.Run(name, func(t *testing.T) {
			fixed := run(t, nil, files(t, map[string]string{name: crash(saysFixed, "")}))
			answered(t, fixed, "concurrent-map-crash", "suspected", "the fix is in v1.34.0 and later; there is no backport; this is v1.34.2: a regression")
			affected := run(t, nil, files(t, map[string]string{name: crash(saysAffected, "")}))
			answered(t, affected, "concurrent-map-crash", "met", "v1.33.4 has no fix; it is of kube-apiserver, by the ")
		})
	}
	const incident = "scheduler-nil-pointer"
	for _, c := range []struct{ name, file, text, want, why string }{
		{"a line that names its program", "x", fmt.Sprintf(panicText, "v1.27.3", "CSILimits"), "suspected", "this is v1.27.3: a regression"},
		{"two versions with the fix", "x", strings.SplitAfter(fmt.Sprintf(panicText, "v1.26.2", ""), "\n")[0] + fmt.Sprintf(panicText, "v1.27.3", "CSILimits"), "suspected", "this is v1.26.2, v1.27.3"},
		{"another program's", "j", each("Mar  1 10:00:00 n1 kubelet[7]: ", `I0301 10:00:00.000000 7 s.go:1] "Kubelet version" kubeletVersion="v1.27.3"`) +
			each("Mar  1 10:00:01 n1 kube-scheduler[9]: ", fmt.Sprintf(panicText, "v1.26.1", "CSILimits")), "met", "v1.26.1 has no fix"},
		{"a healthy log that nobody names", "x", strings.SplitAfter(fmt.Sprintf(panicText, "v1.27.3", ""), "\n")[0] + fineLine + "\n", "not met", "this is v1.27.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answered(t, run(t, nil, files(t, map[string]string{c.file: c.text})), incident, c.want, c.why)
		})
	}
	// It is nobody's version that is known: it rules nothing out.
	unnamed := run(t, nil, files(t, map[string]string{"x": saysFixed + "\n" + fineLine + "\n"}))
	answered(t, unnamed, "concurrent-map-crash", "unknown", "nothing here is known to be of kube-apiserver")
}

// A process is a component's where something shows it. What is shown is said, and another program is suspected at most.
func TestWhose(t *testing.T) {
	const map_, filter = "concurrent-map-crash", "scheduler-nil-pointer"
	own := "\ngoroutine 1 [select]:\nexample.com/scaler/core.(*Scaler).Run(0x1)\n\ts.go:1 +0x1\ngithub.com/spf13/cobra.(*Command).Execute(0x1)\n\tc.go:1 +0x1\n" +
		"main.main()\n\tmain.go:1 +0x1\n"
	aggregated := "example.com/metrics/cmd/example-metrics/app.Run(0x1)\n\tm.go:1 +0x1\n"
	panicked := strings.SplitN(fmt.Sprintf(panicText, "", "CSILimits"), "\n", 2)[1]
	distributor := strings.SplitAfter(apiserver("chan send, 30 minutes"), "\n\n")[1]
	for _, c := range []struct{ name, incident, file, text, want, why string }{
		{"nothing shows it", map_, "x", crash(fineLine, ""), "suspected", "which is decisive, but nothing shows that it is of kube-apiserver"},
		{"the file's name", map_, "n1/kube-apiserver/0.log", crash(fineLine, ""), "met", "it is of kube-apiserver, by the name of "},
		{"a node's name beside it", map_, "kube-apiserver-n1.log", crash(fineLine, ""), "met", "it is of kube-apiserver, by the name of "},
		{"a program beside it", map_, "kube-apiserver-operator.log", crash(fineLine, ""), "suspected", "nothing shows"},
		{"a package of Kubernetes' own build", map_, "x", crash(fineLine, vendored), "met", "by a function as Kubernetes' own builds have it, k8s.io/kubernetes/vendor/"},
		{"another command on the stack", map_, "x", crash(fineLine, aggregated), "suspected", "it is of example-metrics, by the function example.com/metrics/cmd/example-metrics/app.Run, and not of kube-apiserver"},
		{"that, in a file of the component's name", map_, "kube-apiserver.log", crash(fineLine, aggregated), "suspected", "it is of example-metrics"},
		{"that, with a version without the fix", map_, "x", crash(saysAffected, aggregated), "suspected", "it is of example-metrics"},
		{"another main function", filter, "x", panicked + own, "suspected", "it is of example.com/scaler, by what its main function has called, example.com/scaler/core.(*Scaler).Run, and not of kube-scheduler"},
		{"the file of the main function", filter, "x", panicked + "\ngoroutine 1 [select]:\nmain.main()\n\tcmd/kube-scheduler/scheduler.go:29 +0x1\n", "met",
			"it is of kube-scheduler, by the file of its main function, cmd/kube-scheduler/scheduler.go"},
		{"the line with the version", filter, "x", fmt.Sprintf(panicText, "v1.26.1", "CSILimits"), "met", "it is of kube-scheduler, by the line in which it says its version"},
		{"a dump of goroutines without their main one", "apiserver-goroutine-leak", "x", distributor, "suspected", "nothing shows that it is of kube-apiserver"},
		{"a dump of another API server", "apiserver-goroutine-leak", "x", "goroutine 1 [select]:\nexample.com/a/b.Run()\n\tb.go:1 +0x1\nmain.main()\n\tmain.go:1 +0x1\n\n" + distributor,
			"suspected", "it is of example.com/a, by what its main function has called"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, nil, files(t, map[string]string{c.file: c.text}))
			answered(t, r, c.incident, c.want, c.why)
			if worst := of(t, r, c.incident).Subjects[0]; (worst.Whose == "") != strings.Contains(c.why, "nothing shows") {
				t.Errorf("it is said to be of %q", worst.Whose)
			}
		})
	}
}

// A dump that isn't known to be whole shows what is in it, and rules nothing out.
func TestPartOfADump(t *testing.T) {
	const leak, pleg, workers = "apiserver-goroutine-leak", "pleg-deadlock", "service-workers-stuck"
	first, second := strings.SplitAfter(apiserver("select"), "\n\n")[0], strings.SplitAfter(kubelet("", "select"), "\n\n")[2]
	for _, c := range []struct{ name, incident, text, want, why string }{
		{"what a panic prints", leak, "panic: boom\n\n" + first, "unknown", "x:3 may be a part of a dump: it is one goroutine, as of a panic"},
		{"all that a panic prints on demand", leak, "panic: boom\n\n" + strings.Replace(apiserver("select"), "DeleteCollection", "Watch", 1), "not met", "distributor-in-send"},
		{"one that was pasted", pleg, second, "unknown", "x:1 may be a part of a dump: goroutine 1, which a whole one has, isn't there"},
		{"one that shows it", leak, strings.Replace(apiserver("chan send, 9 minutes"), "goroutine 1 ", "goroutine 2 ", 1), "met", "1 of 1 dumps show it"},
		{"a whole one", pleg, kubelet("select", "select"), "not met", "0 of 1 dumps show it"},
		{"no worker that is known by name", workers, manager("select")[:strings.Index(manager(""), "goroutine 88")] + second, "unknown", "nothing that is here could rule it out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, nil, files(t, map[string]string{"x": c.text}))
			answered(t, r, c.incident, c.want, c.why)
			if part := strings.Contains(r.Inputs[0].As, "perhaps not all"); part != (strings.Contains(c.why, "may be") || c.want == "met") {
				t.Errorf("it was read as %q", r.Inputs[0].As)
			}
		})
	}
}

// A worker of the service controller is known by the names that its releases gave it, over HTTP/1 and HTTP/2, and not
// while it waits for the API server.
func TestServiceWorkers(t *testing.T) {
	const http1, http2 = "net/http.(*persistConn).roundTrip(0x1)\n\tt.go:1 +0x1\n", "net/http.(*http2ClientConn).RoundTrip(0x1)\n\th.go:1 +0x1\n" +
		"net/http.(*http2Transport).RoundTripOpt(0x1)\n\th.go:1 +0x1\n"
	const client, request = "net/http.(*Client).Do(0x1)\n\tc.go:1 +0x1\n", "k8s.io/client-go/rest.(*Request).Do(0x1)\n\tr.go:1 +0x1\n"
	const app, tree = "k8s.io/cloud-provider/app", "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	stuck := func(app, worker, call string) string {
		out := "goroutine 1 [select]:\n" + app + ".Run(0x1)\n\ta.go:1 +0x1\nmain.main()\n\tmain.go:1 +0x1\n"
		for id := range 3 {
			out += fmt.Sprintf("\ngoroutine %d [select, 145 minutes]:\n%s%s(0x1)\n\tcontroller.go:1 +0x1\n", 70+id, call, worker)
		}
		return out
	}
	const at = "k8s.io/cloud-provider/controllers/service."
	for _, c := range []struct{ name, app, worker, call, want string }{
		{"the names of today", app, at + "(*Controller).serviceWorker", http1 + client, "met"},
		{"over HTTP/2", app, at + "(*Controller).serviceWorker", http2 + client, "met"},
		{"up to v0.25", app, at + "(*Controller).worker", http1 + client, "met"},
		{"in the controller manager", tree, "k8s.io/kubernetes/vendor/" + at + "(*Controller).worker", http1 + client, "met"},
		{"before cloud-provider", tree, "k8s.io/kubernetes/pkg/controller/service.(*ServiceController).worker", http2 + client, "met"},
		{"a call to the API server", app, at + "(*Controller).serviceWorker", http2 + client + request, "unknown"},
		{"a name that nobody knows", app, at + "(*Controller).runWorker", http1 + client, "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answered(t, run(t, nil, files(t, map[string]string{"x": stuck(c.app, c.worker, c.call)})), "service-workers-stuck", c.want, map[string]string{"met": "worker-waits-for-minutes"}[c.want])
		})
	}
}

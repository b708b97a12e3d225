package match_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// attack is evidence that looks like that of an incident.
type attack struct {
	name, incident string
	files          map[string]string
	most           string                   // "met" where it does show the incident
	age            map[string]time.Duration // of files, if they were not just written
}

// stamp returns a time stamp of so many seconds after the first.
func stamp(seconds int) string {
	return time.Date(2026, 2, 11, 8, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second).Format("2006-01-02T15:04:05Z")
}

// rowsOf returns n rows, whose stamps are so many seconds apart.
func rowsOf(n, apart int, row func(i int, at string) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(row(i, stamp(i*apart)) + "\n")
	}
	return b.String()
}

// cpuProfile returns ten seconds of CPU time, nearly all of which is the first function's.
func cpuProfile(functions ...string) string {
	p := &profile.Profile{TimeNanos: 1, DurationNanos: 10e9, SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 1e7}
	for i, name := range functions {
		f := &profile.Function{ID: uint64(i + 1), Name: name}
		l := &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l}, Value: []int64{[]int64{9e9, 1e7}[min(i, 1)]}})
		p.Location, p.Function = append(p.Location, l), append(p.Function, f)
	}
	var b strings.Builder
	p.Write(&b)
	return b.String()
}

// filterFrames is the stack of the scheduler where it panics.
const filterFrames = "k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits.(*CSILimits).checkAttachableInlineVolume(0x1)\n\t/csi.go:235 +0x1\nk8s.io/kubernetes/pkg/scheduler.(*Scheduler).scheduleOne(0x1)\n\t/s.go:1 +0x1\n"

// grepped is a text as grep -A prints it of one of several files.
func grepped(file, text string) string {
	return file + ":" + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+file+"-") + "\n"
}

func attacks() []attack {
	const fleet, pleg, leak, maps, sched, ep, workers, listener = "fleet-status-churn", "pleg-deadlock", "apiserver-goroutine-leak", "concurrent-map-crash", "scheduler-nil-pointer", "service-without-families", "service-workers-stuck", "listener-busy-wait"
	one := func(name, text string) map[string]string { return map[string]string{name: text} }
	const refused = `stateful_set.go:509] "Error syncing StatefulSet, requeuing" err="object is being deleted: pods \"web-0\" already exists" logger="UnhandledError" key="a/web"`
	twice := "E1129 04:38:16.595431   17720 " + refused + "\nE1129 04:38:17.109113   17720 " + refused + "\n"
	bare := func(n, apart int) string {
		return rowsOf(n, apart, func(_ int, at string) string { return "bundle-a " + at })
	}
	relist := "goroutine 386 [chan send, 217 minutes]:\nk8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).relist(0xc42069ea20)\n\t/generic.go:261 +0x74e\n"
	sleeps := "goroutine 400 [sleep]:\ntime.Sleep(0x1)\n\t/time.go:1 +0x1\nk8s.io/kubernetes/pkg/kubelet.(*Kubelet).syncLoop(0x1)\n\t/kubelet.go:1 +0x1\n"
	main := "goroutine 1 [select, 40 minutes]:\nk8s.io/kubernetes/cmd/kubelet/app.Run(0x1)\n\t/server.go:1 +0x1\n"
	selects := strings.Replace(sleeps, "[sleep]:\ntime.Sleep(0x1)\n\t/time.go:1 +0x1\n", "[select]:\n", 1)
	relistOK := strings.Replace(relist, "chan send, 217 minutes", "select", 1)
	many := func(from int) (out string) {
		for i := range 12 {
			out += fmt.Sprintf("goroutine %d [chan receive, 40 minutes]:\nk8s.io/x/y.f%d(0xc000%06x)\n\t/y.go:%d +0x1\ncreated by k8s.io/x/y.start\n\t/y.go:1 +0x1\n\n", from+i, i, from, i+1)
		}
		return out
	}
	yields := "goroutine 61 [runnable]:\nruntime.Gosched(...)\n\t/usr/local/go/src/runtime/proc.go:317\nexample.com/app/vendor/github.com/rancher/dynamiclistener.(*listener).WrapExpiration.func1()\n\t/src/vendor/github.com/rancher/dynamiclistener/listener.go:168 +0x59\n"
	mainFor := func(min string) string {
		return "goroutine 1 [chan receive" + min + "]:\nmain.main()\n\t/src/main.go:9 +0x1\n\n"
	}
	loop := "goroutine 61 [runnable]:\nexample.com/app/vendor/github.com/rancher/dynamiclistener.(*listener).WrapExpiration.func1()\n\t/src/vendor/github.com/rancher/dynamiclistener/listener.go:168 +0x59\n"
	ccm := "goroutine 1 [select, 300 minutes]:\nk8s.io/cloud-provider/app.Run(0x1)\n\t/go/app.go:1 +0x372\nmain.main()\n\tmain.go:1 +0x2a0\n\n"
	httpWait := func(worker, more string) string {
		return "goroutine 70 [select, 145 minutes]:\nnet/http.(*http2ClientConn).RoundTrip(0x1)\n\th2.go:9000 +0x22b\nnet/http.(*Client).Do(0x1)\n\tclient.go:580 +0x34d\n" + more + worker + "(0x1)\n\tcontroller.go:279 +0x352\n"
	}
	leakG := "goroutine 9 [chan send, 30 minutes]:\n%sk8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection.func1(0x1)\n\t/store.go:1132 +0x1\n"
	schedCrash := strings.SplitN(fmt.Sprintf(panicText, "", "CSILimits"), "\n", 2)[1]
	scaler := schedCrash + "k8s.io/autoscaler/cluster-autoscaler/simulator/predicatechecker.(*SchedulerBasedPredicateChecker).CheckPredicates(0x1)\n\t/gopath/src/k8s.io/autoscaler/cluster-autoscaler/simulator/p.go:1 +0x1\n"
	epCrash := "panic: runtime error: index out of range [0] with length 0\n\ngoroutine 233 [running]:\nk8s.io/kubernetes/pkg/controller/endpoint.podToEndpointAddressForService(0x1)\n\tpkg/controller/endpoint/endpoints_controller.go:235 +0x1\nk8s.io/kubernetes/pkg/controller/endpoint.(*Controller).syncService(0x1)\n\tpkg/x.go:1 +0x1\n"
	testMain := "goroutine 1 [chan receive, 9 minutes]:\ntesting.(*T).Run(0x1)\n\t/usr/local/go/src/testing/testing.go:1 +0x1\ntesting.(*M).Run(0x1)\n\t/usr/local/go/src/testing/testing.go:1 +0x1\nmain.main()\n\t_testmain.go:99 +0x1\n\n"
	return []attack{
		{name: "list of same names, ascending, nobody says of what", incident: fleet, files: one("paste.txt", bare(200, 2))},
		{name: "list by command without -w", incident: fleet, files: one("fleet.txt", "$ kubectl get bundledeployments.fleet.cattle.io -A -o jsonpath='{x}'\n"+bare(200, 2))},
		{name: "leases every 2 s", incident: fleet, files: one("leases.txt", rowsOf(200, 2, func(_ int, at string) string { return "kube-scheduler " + at }))},
		{name: "node heartbeats every 10 s", incident: fleet, files: one("nodes.txt", rowsOf(90, 10, func(_ int, at string) string { return "node-1 " + at }))},
		{name: "bare names, stamps backwards", incident: fleet, files: one("fleet-watch.txt", rowsOf(200, 2, func(i int, at string) string { return "bundle-a " + stamp((i*7919%200)*2) }))},
		{name: "namespaces, each once", incident: fleet, files: one("fleet-watch.txt", rowsOf(200, 2, func(i int, at string) string { return fmt.Sprintf("cluster-fleet-%d bundle-a %s", i, at) }))},
		{name: "namespaces by slash, each once", incident: fleet, files: one("fleet-watch.txt", rowsOf(200, 2, func(i int, at string) string { return fmt.Sprintf("cluster-fleet-%d/bundle-a %s", i, at) }))},
		{name: "events by command", incident: fleet, files: one("x.txt", "$ kubectl get events -A -w -o jsonpath='{x}'\n"+bare(200, 2))},
		{name: "leases by command in a file named fleet", incident: fleet, files: one("fleet-watch.txt", "$ kubectl get leases -n cattle-fleet-system -w -o jsonpath='{x}'\n"+bare(200, 2))},
		{name: "two clusters, 40 moves each", incident: fleet, files: map[string]string{"fleet-watch-1.txt": rowsOf(41, 4, func(i int, at string) string { return "bundle-a " + stamp(i*4) }), "fleet-watch-2.txt": rowsOf(41, 4, func(i int, at string) string { return "bundle-a " + stamp(i*4+2) })}},
		{name: "each row twice", incident: fleet, files: one("fleet-watch.txt", rowsOf(120, 2, func(i int, at string) string { return "bundle-a " + stamp(i/2*2) }))},
		{name: "the header says none, many objects", incident: fleet, files: one("x.txt", "NAME UPDATED\n"+bare(200, 2))},
		{name: "names and a generation", incident: fleet, files: one("fleet.txt", rowsOf(200, 2, func(i int, at string) string { return "bundle-a 3 " + at }))},
		{name: "gitjobs of another operator", incident: fleet, files: one("widgets-watch.txt", rowsOf(200, 2, func(_ int, at string) string { return "app " + at }))},
		{name: "a rollout: ends after 40 moves", incident: fleet, files: one("fleet-watch.txt", bare(40, 2))},
		{name: "ns/name of one object all the time", incident: fleet, most: "met", files: one("fleet-watch.txt", rowsOf(200, 2, func(i int, at string) string { return "cluster-fleet-1/bundle-a " + at }))},
		{name: "the command with -w", incident: fleet, most: "met", files: one("x.txt", "$ kubectl get bundledeployments.fleet.cattle.io -A -w -o jsonpath='{x}'\n"+bare(200, 2))},
		{name: "loop of lists of three objects", incident: fleet, files: one("fleet-watch.txt", rowsOf(300, 1, func(i int, at string) string { return "bundle-a " + stamp(i%3*500) }))},

		{name: "messages of a day, without their times", incident: "pod-recreated-in-vain", files: one("kube-controller-manager.log", strings.Repeat(refused+"\n", 6))},
		{name: "the same, below the only line with a time", incident: "pod-recreated-in-vain", files: one("kube-controller-manager.log", "E1129 04:38:16.595431   17720 "+strings.Repeat(refused+"\n", 6))},
		{name: "two refusals, in three copies of a log", incident: "pod-recreated-in-vain", files: map[string]string{"kube-controller-manager.log": twice, "kube-controller-manager/0.log": twice, "kube-controller-manager.md": "The controller manager says this:\n\n```\n" + twice + "```\n"}},
		{name: "six refusals within a minute", incident: "pod-recreated-in-vain", most: "met", files: one("kube-controller-manager.log", twice+strings.ReplaceAll(twice, "04:38:", "04:39:")+strings.ReplaceAll(twice, "04:38:1", "04:38:5"))},

		{name: "fixed version in a file beside it", incident: sched, files: map[string]string{"kube-scheduler.log": schedCrash, "version.txt": "Client Version: v1.30.0\nServer Version: v1.27.3\n"}},
		{name: "fixed version by a pod elsewhere", incident: sched, files: map[string]string{"a/kube-scheduler.log": schedCrash, "b/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-scheduler-n1, namespace: kube-system}\nspec:\n  containers:\n  - {name: kube-scheduler, image: 'registry.k8s.io/kube-scheduler:v1.27.3'}\n"}},
		{name: "fork of a fixed version", incident: sched, files: one("kube-scheduler.log", fmt.Sprintf(panicText, "v1.27.3+rke2r1", "CSILimits"))},
		{name: "fork of a fixed version, map", incident: maps, files: one("kube-apiserver.log", crash(strings.Replace(saysFixed, "v1.34.2", "v1.34.2-eks-abc", 1), ""))},
		{name: "two nodes' logs, the fixed one crashed", incident: sched, files: map[string]string{"kube-scheduler-n1.log": strings.SplitAfter(fmt.Sprintf(panicText, "v1.26.1", ""), "\n")[0] + fineLine + "\n", "kube-scheduler-n2.log": fmt.Sprintf(panicText, "v1.27.3", "CSILimits")}},
		{name: "upgrade in one log, the fixed one crashed", incident: sched, files: one("kube-scheduler.log", strings.SplitAfter(fmt.Sprintf(panicText, "v1.26.1", ""), "\n")[0]+strings.Repeat(fineLine+"\n", 30)+fmt.Sprintf(panicText, "v1.27.3", "CSILimits"))},
		{name: "autoscaler, in a file with the scheduler's start", incident: sched, files: one("all.txt", strings.SplitAfter(fmt.Sprintf(panicText, "v1.26.1", ""), "\n")[0]+scaler)},
		{name: "autoscaler in kube-scheduler.log", incident: sched, files: one("kube-scheduler.log", scaler)},
		{name: "a unit test that panicked", incident: sched, files: one("kube-scheduler-test.log", "--- FAIL: TestCSILimits (0.00s)\n"+schedCrash+"testing.tRunner(0x1)\n\t/usr/local/go/src/testing/testing.go:1 +0x1\ncreated by testing.(*T).Run\n\t/usr/local/go/src/testing/testing.go:1 +0x1\nFAIL k8s.io/kubernetes/pkg/scheduler 0.1s\n")},
		{name: "kube-scheduler --version", incident: sched, files: one("kube-scheduler.txt", "$ kube-scheduler --version\nKubernetes v1.27.3\n$ kubectl logs kube-scheduler-n1\n"+schedCrash)},
		{name: "the frames in another goroutine", incident: sched, files: one("kube-scheduler.log", "panic: runtime error: invalid memory address or nil pointer dereference\n\ngoroutine 7 [running]:\nk8s.io/other.f(0x1)\n\t/o.go:1 +0x1\n\ngoroutine 233 [runnable]:\nk8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits.(*CSILimits).checkAttachableInlineVolume(0x1)\n\t/csi.go:235 +0x1\n")},
		{name: "endpoint crash of a fixed patch", incident: ep, files: one("kube-controller-manager.log", `I0301 10:00:00.000000 1 a.go:1] "Starting" version="v1.34.9"`+"\n"+epCrash)},
		{name: "endpoint crash before the line was there", incident: ep, files: one("kube-controller-manager.log", `I0301 10:00:00.000000 1 a.go:1] "Starting" version="v1.32.4"`+"\n"+epCrash)},
		{name: "map of the audit webhook in kube-apiserver.log", incident: maps, files: one("kube-apiserver.log", strings.Replace(crash(fineLine, ""), "audit/log.(*backend)", "audit/webhook.(*backend)", -1))},
		{name: "a Go test file with the text", incident: maps, files: one("kube-apiserver_test.go", "package x\n\nconst crash = `"+crash("", "")+"`\n")},
		{name: "map crash, fixed version by kubectl version beside", incident: maps, files: map[string]string{"kube-apiserver.log": crash(fineLine, ""), "kubectl-version.txt": "Server Version: v1.34.2\n"}},
		{name: "metrics-server's frames", incident: maps, files: one("kube-apiserver.log", crash(fineLine, "sigs.k8s.io/metrics-server/pkg/server.(*server).Run(0x1)\n\t/go/s.go:1 +0x1\n"))},
		{name: "two pods of stern", incident: sched, files: one("kube-scheduler.txt", "kube-scheduler-a kube-scheduler panic: runtime error: invalid memory address or nil pointer dereference\nkube-scheduler-a kube-scheduler \nkube-scheduler-b kube-scheduler goroutine 233 [running]:\nkube-scheduler-b kube-scheduler k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits.(*CSILimits).checkAttachableInlineVolume(0x1)\nkube-scheduler-b kube-scheduler \t/csi.go:235 +0x1\n")},
		{name: "two pods by kubectl --prefix", incident: sched, files: one("kube-scheduler.txt", "[pod/kube-scheduler-a/kube-scheduler] panic: runtime error: invalid memory address or nil pointer dereference\n[pod/kube-scheduler-a/kube-scheduler] \n[pod/kube-scheduler-b/kube-scheduler] goroutine 233 [running]:\n[pod/kube-scheduler-b/kube-scheduler] k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits.(*CSILimits).checkAttachableInlineVolume(0x1)\n[pod/kube-scheduler-b/kube-scheduler] \t/csi.go:235 +0x1\n")},

		{name: "two processes' dumps in two files", incident: pleg, files: map[string]string{"n1-kubelet.txt": main + "\n" + relist + "\n" + selects, "n2-kubelet.txt": main + "\n" + relistOK + "\n" + sleeps}},
		{name: "one process, two dumps", incident: pleg, files: map[string]string{"1.txt": main + "\n" + relist + "\n" + selects + "\n" + many(500), "2.txt": main + "\n" + relistOK + "\n" + sleeps + "\n" + many(500)}},
		{name: "two parts in two fences", incident: pleg, files: one("kubelet.md", "Node A:\n\n```\n"+relist+"```\n\nNode B:\n\n```\n"+sleeps+"```\n")},
		{name: "head's marks", incident: pleg, files: one("kubelet.txt", "==> n1.txt <==\n"+relist+"\n==> n2.txt <==\n"+sleeps)},
		{name: "headings", incident: pleg, files: one("kubelet.txt", "=== node n1 ===\n"+relist+"\n=== node n2 ===\n"+sleeps)},
		{name: "a healthy kubelet's dump of two minutes' select", incident: pleg, files: one("kubelet.txt", kubelet("select, 2 minutes", "sleep"))},
		{name: "in send without minutes", incident: pleg, files: one("kubelet.txt", kubelet("chan send", "sleep"))},
		{name: "the same dump copied, with another time", incident: pleg, age: map[string]time.Duration{"1.txt": 10 * time.Minute}, files: map[string]string{"1.txt": kubelet("chan send", "sleep") + many(500), "2.txt": kubelet("chan send", "sleep") + many(500)}},
		{name: "dumps a second apart, saved minutes apart", incident: pleg, age: map[string]time.Duration{"1.txt": 10 * time.Minute}, files: map[string]string{"1.txt": kubelet("chan send", "sleep") + many(500), "2.txt": kubelet("chan send", "sleep") + many(500) + "goroutine 999 [select]:\nmain.x()\n\t/x.go:1 +0x1\n"}},
		{name: "kubelet test", incident: pleg, files: one("kubelet.txt", "panic: test timed out after 10m0s\n\n"+testMain+relist+"\n"+sleeps)},
		{name: "registry test", incident: leak, files: one("x.txt", "panic: test timed out after 10m0s\n\n"+testMain+strings.Replace(fmt.Sprintf(leakG, ""), "k8s.io/apiserver", "k8s.io/kubernetes/vendor/k8s.io/apiserver", 1))},
		{name: "integration test", incident: leak, files: one("x.txt", "panic: test timed out after 10m0s\n\n"+testMain+fmt.Sprintf(leakG, "")+"\ngoroutine 44 [select]:\nk8s.io/kubernetes/cmd/kube-apiserver/app/testing.StartTestServer.func1(0x1)\n\t/x.go:1 +0x1\n")},
		{name: "kubelet of v1.34 beside: get nodes", incident: pleg, files: map[string]string{"kubelet.txt": kubelet("chan send, 200 minutes", "sleep"), "nodes.txt": "NAME STATUS ROLES AGE VERSION\nn1   Ready    worker   10d   v1.34.4\n"}},
		{name: "two nodes, the fixed one's dump", incident: pleg, files: map[string]string{"n1-kubelet.log": `I0301 10:00:00.000000 1 s.go:1] "Kubelet version" kubeletVersion="v1.13.5"` + "\n", "n2-kubelet.log": `I0301 10:00:00.000000 1 s.go:1] "Kubelet version" kubeletVersion="v1.34.4"` + "\nSIGQUIT: quit\n\n" + kubelet("chan send, 200 minutes", "sleep")}},
		{name: "leak of a fixed API server beside its metrics", incident: leak, files: map[string]string{"a.txt": apiserver("chan send, 9 minutes"), "kube-apiserver.metrics": "# TYPE kubernetes_build_info gauge\nkubernetes_build_info{git_version=\"v1.30.1\"} 1\n"}},
		{name: "leak of a fork of a fixed version", incident: leak, files: map[string]string{"a.txt": apiserver("chan send, 9 minutes"), "kube-apiserver.metrics": "# TYPE kubernetes_build_info gauge\nkubernetes_build_info{git_version=\"v1.30.1-gke.100\"} 1\n"}},
		{name: "leak in a program that embeds the API server", incident: leak, files: one("kube-apiserver.txt", "goroutine 1 [select]:\ngithub.com/kcp-dev/kcp/pkg/server.(*Server).Run(0x1)\n\t/s.go:1 +0x1\nmain.main()\n\t/main.go:1 +0x1\n\n"+fmt.Sprintf(leakG, ""))},

		{name: "a handler that recovered printed it by debug.Stack", incident: sched, files: one("kube-scheduler.log", "2026/02/11 08:00:00 panic: runtime error: invalid memory address or nil pointer dereference\ngoroutine 233 [running]:\nruntime/debug.Stack()\n\t/usr/local/go/src/runtime/debug/stack.go:26 +0x5e\nmain.recovers.func1()\n\t/m.go:9 +0x1\npanic({0x1, 0x2})\n\t/usr/local/go/src/runtime/panic.go:785 +0x132\n"+filterFrames+"\n"+strings.Repeat(fineLine+"\n", 60))},
		{name: "a handler printed it by runtime.Stack", incident: sched, files: one("kube-scheduler.log", "panic: runtime error: invalid memory address or nil pointer dereference\n\ngoroutine 233 [running]:\nmain.recovers.func1()\n\t/m.go:9 +0x1\npanic({0x1, 0x2})\n\t/usr/local/go/src/runtime/panic.go:785 +0x132\n"+filterFrames)},
		{name: "net/http's handler recovered", incident: sched, files: one("kube-scheduler.log", "I0211 08:00:00.000000       1 log.go:172] http: panic serving 10.0.0.1:4321: runtime error: invalid memory address or nil pointer dereference\ngoroutine 233 [running]:\nnet/http.(*conn).serve.func1(0x1)\n\t/usr/local/go/src/net/http/server.go:1767 +0x139\npanic(0x1, 0x2)\n\t/usr/local/go/src/runtime/panic.go:679 +0x1b2\n"+filterFrames+strings.Repeat(fineLine+"\n", 60))},
		{name: "HandleCrash observed it", incident: sched, files: one("kube-scheduler.log", "E0211 08:00:00.000000       1 runtime.go:79] Observed a panic: \"invalid memory address or nil pointer dereference\" (runtime error: invalid memory address or nil pointer dereference)\ngoroutine 233 [running]:\nk8s.io/apimachinery/pkg/util/runtime.logPanic({0x1, 0x2})\n\tr.go:75 +0x1\nk8s.io/apimachinery/pkg/util/runtime.HandleCrash({0x0, 0x0, 0x1?})\n\tr.go:49 +0x1\npanic({0x1, 0x2})\n\tpanic.go:884 +0x1\n"+filterFrames+strings.Repeat(fineLine+"\n", 60))},
		{name: "the log goes on for 60 lines", incident: sched, files: one("kube-scheduler.log", schedCrash+strings.Repeat(fineLine+"\n", 60))},
		{name: "the log goes on, and the next process begins", incident: sched, most: "met", files: one("kube-scheduler.log", schedCrash+strings.SplitAfter(fmt.Sprintf(panicText, "v1.26.1", ""), "\n")[0]+strings.Repeat(fineLine+"\n", 60))},
		{name: "an aggregated API server, named by its image", incident: maps, files: one("crash.txt", "    Image:         ghcr.io/acme/widgets-apiserver:v1.9.2\n    Last State:    Terminated\n\n"+crash(`I0301 10:00:00.000000       1 server.go:147] Version: v1.9.2`, ""))},
		{name: "in a sentence", incident: maps, files: one("crash.md", "The pod runs the image `quay.io/acme/inventory:1.4.0` and it died when we made a widget:\n\n```\n"+crash(`I0301 10:00:00.000000       1 server.go:147] Version: v1.9.2`, "")+"```\n")},
		{name: "in docker's words", incident: maps, files: one("kube-apiserver-crash.txt", "image=registry.example.com:5000/team/metrics@sha256:0123456789abcdef\n"+crash(fineLine, ""))},
		{name: "two nodes' dumps joined by grep", incident: pleg, files: one("out.txt", grepped("n1.txt", relist)+"--\n"+grepped("n2.txt", sleeps))},
		{name: "of names that differ by a letter", incident: pleg, files: one("out.txt", grepped("dumps/node-a.txt", relist)+grepped("dumps/node-b.txt", sleeps))},
		{name: "with numbers of lines", incident: pleg, files: one("out.txt", "n1.txt:1:"+strings.ReplaceAll(strings.TrimSpace(relist), "\n", "\nn1.txt-2-")+"\n--\nn2.txt:7:"+strings.ReplaceAll(strings.TrimSpace(sleeps), "\n", "\nn2.txt-8-")+"\n")},
		{name: "joined by grep -h", incident: pleg, files: one("kubelet.txt", relist+"--\n"+sleeps)},
		{name: "a whole dump in a manual", incident: pleg, files: one("kubelet.md", "# How to recognise a deadlocked PLEG\n\nIf you see that your node is NotReady, take a dump. When the kubelet is stuck you will see something like this:\n\n```\n"+kubelet("chan send, 217 minutes", "sleep")+"```\n\nThen you should restart the kubelet.\n")},
		{name: "in a blog", incident: pleg, files: one("post.html", "<!DOCTYPE html><html><body><h1>A kubelet story</h1><p>In this post we look at a deadlock that we had in our clusters, and this is what the dump showed.</p><pre>"+kubelet("chan send, 217 minutes", "sleep")+"</pre></body></html>")},
		{name: "in a talk's notes", incident: pleg, files: one("notes.txt", "For example, this is what it looks like when the relist is stuck:\n\n"+kubelet("chan send, 217 minutes", "sleep"))},
		{name: "in a guide that only commands", incident: pleg, files: one("x.md", "# PLEG deadlock\n\nSymptoms: the node is NotReady. Run curl and look for goroutines in chan send.\n\n"+kubelet("chan send, 217 minutes", "sleep")+"Restart the kubelet.\n")},
		{name: "of one's own, which asks for help", incident: pleg, most: "met", files: one("issue.md", "Our nodes go NotReady and we see this in the dump, what should we check?\n\n```\n"+kubelet("chan send, 217 minutes", "sleep")+"```\n")},
		{name: "CPU profile of another program in a folder of the name", incident: listener, files: map[string]string{"listener/cpu.pb.gz": cpuProfile("runtime.gosched_m", "example.com/miner.work"), "listener/dump.txt": mainFor("") + loop}},
		{name: "a version without v in a sentence", incident: sched, files: one("x.md", "We have seen this on Kubernetes 1.27.3 when the node lost its CSINode, and it should not happen:\n\n```\n"+schedCrash+"```\n")},
		{name: "by the component", incident: sched, files: one("kube-scheduler.md", "kube-scheduler 1.27.3 dies when you see this, we think:\n\n```\n"+schedCrash+"```\n")},
		{name: "in a form", incident: sched, files: one("kube-scheduler.md", "- Kubernetes version (use `kubectl version`): 1.27.3\n- Cloud provider: none\n\n"+schedCrash)},
		{name: "in a line like a metric", incident: sched, files: one("kube-scheduler.txt", "kubernetes: 1.27.3\n\n"+schedCrash)},
		{name: "of a minor version, like a metric", incident: sched, most: "met", files: one("kube-scheduler.txt", "k8s 1.26\n\n"+schedCrash)},
		{name: "of what it was upgraded to", incident: sched, files: one("kube-scheduler.md", "It dies since we upgraded the cluster to 1.27.3, see the message below.\n\n```\n"+schedCrash+"```\n")},
		{name: "a version of something else", incident: sched, most: "met", files: one("kube-scheduler.md", "We use containerd 1.7.3 and go 1.22.5 on this node with 10.1.27.3, see the message below.\n\n```\n"+schedCrash+"```\n")},
		{name: "the version of a fix", incident: sched, most: "met", files: one("kube-scheduler.md", "I read that this is fixed in Kubernetes 1.26.2, so we should upgrade, see the message below.\n\n```\n"+schedCrash+"```\n")},

		{name: "vendored client-go", incident: workers, files: one("ccm.txt", ccm+httpWait("k8s.io/cloud-provider/controllers/service.(*Controller).serviceWorker", "example.com/ccm/vendor/k8s.io/client-go/rest.(*Request).Do(0x1)\n\tr.go:1 +0x1\n"))},
		{name: "another service controller", incident: workers, files: one("ccm.txt", ccm+httpWait("example.com/cloud/pkg/service.(*Controller).worker", ""))},
		{name: "another service controller's serviceWorker", incident: workers, files: one("ccm.txt", ccm+httpWait("example.com/cloud/controllers/service.(*Controller).serviceWorker", ""))},
		{name: "a worker of a program of another name", incident: workers, files: one("x.txt", "goroutine 1 [select]:\nmain.main()\n\t/m.go:1 +0x1\n\n"+httpWait("example.com/cloud/service.(*Controller).worker", ""))},
		{name: "client-go's transport alone", incident: workers, files: one("ccm.txt", ccm+"goroutine 70 [select, 145 minutes]:\nnet/http.(*http2ClientConn).RoundTrip(0x1)\n\th2.go:9000 +0x22b\nk8s.io/client-go/transport.(*userAgentRoundTripper).RoundTrip(0x1)\n\tr.go:1 +0x1\nnet/http.(*Client).Do(0x1)\n\tclient.go:580 +0x34d\nexample.com/ccm/kube.(*Client).Watch(0x1)\n\tr.go:1 +0x1\nk8s.io/cloud-provider/controllers/service.(*Controller).serviceWorker(0x1)\n\tcontroller.go:279 +0x352\n")},

		{name: "loop in one process, age of another", incident: listener, files: map[string]string{"pod-a.txt": mainFor("") + yields, "pod-b.txt": mainFor(", 40 minutes") + strings.Replace(loop, "runnable", "sleep", 1)}},
		{name: "CPU of one pod, dump of another", incident: listener, files: map[string]string{"listener/pod-a.cpu.pb.gz": cpuProfile("runtime.gosched_m", "github.com/rancher/dynamiclistener.(*listener).Accept"), "listener/pod-b.txt": mainFor(", 40 minutes") + loop}},
		{name: "fixed version by its path", incident: listener, files: one("l.txt", mainFor(", 40 minutes")+strings.Replace(yields, "/src/vendor/github.com/rancher/dynamiclistener/", "/go/pkg/mod/github.com/rancher/dynamiclistener@v0.3.5/", 1))},
		{name: "always ready by copies", incident: listener, age: map[string]time.Duration{"1.txt": 10 * time.Minute}, files: map[string]string{"1.txt": mainFor(", 40 minutes") + loop + "\n" + many(500), "2.txt": mainFor(", 40 minutes") + loop + "\n" + many(500)}},
	}
}

// No evidence that only looks like an incident's is met, neither for that incident nor for another.
func TestNoFalseMet(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			dir := files(t, a.files)
			for name, age := range a.age {
				at := time.Now().Add(-age)
				if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
					t.Fatal(err)
				}
			}
			r := run(t, nil, dir)
			for _, i := range r.Incidents {
				if right := a.most == "met" && i.Name == a.incident; i.Word() == "met" != right {
					if i.Word() == "met" || i.Name == a.incident {
						t.Errorf("%s is %s: %s", i.Name, i.Word(), i.Why)
					}
				}
			}
			for _, p := range r.Problems {
				t.Errorf("problem: %s: %s", p.Path, p.Message)
			}
		})
	}
}

// Memory that one kube-proxy allocated is not that of another, whose metrics lie beside it.
func TestHeapsOfTwoNodes(t *testing.T) {
	dir := files(t, map[string]string{
		"n1-kube-proxy.0.before": proxyMetrics("v1.18.4", 1, 100, 0.01), "n1-kube-proxy.1.pb": stackProfile(t, "alloc_space", "bytes", time.Second, 100*2e6, 1),
		"n1-kube-proxy.2.after": proxyMetrics("v1.18.4", 1, 100, 0.01), "n1-kube-proxy.60.before": proxyMetrics("v1.18.4", 1, 130, 0.01),
		"n2-kube-proxy.61.pb": stackProfile(t, "alloc_space", "bytes", 61*time.Second, 130*220e6, 1), "n1-kube-proxy.62.after": proxyMetrics("v1.18.4", 1, 130, 0.01),
	})
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		var node, second int
		if _, err := fmt.Sscanf(f.Name(), "n%d-kube-proxy.%d.", &node, &second); err != nil {
			t.Fatal(err)
		}
		at := proxyBegan.Add(time.Duration(second) * time.Second)
		if err := os.Chtimes(filepath.Join(dir, f.Name()), at, at); err != nil {
			t.Fatal(err)
		}
	}
	answered(t, run(t, nil, dir), "kube-proxy-node-addresses", "suspected", "memory-goes-into-addresses")
}

// A test that quotes a crash is source code, whatever the file is called that it was pasted into.
func TestSourceCodeIsNoEvidence(t *testing.T) {
	crash := fmt.Sprintf(mapPanic, "v1.33.13", "log")
	answered(t, run(t, nil, files(t, map[string]string{"kube-apiserver/0.log": crash})), "concurrent-map-crash", "met", "")
	for name, text := range map[string]string{
		"Go":     "// Package x parses.\npackage x_test\n\nimport \"testing\"\n\nconst crash = `" + crash + "`\n",
		"Python": "# -*- coding: utf-8 -*-\nimport re\n\nCRASH = \"\"\"" + crash + "\"\"\"\n",
	} {
		if i := of(t, run(t, nil, files(t, map[string]string{"kube-apiserver/0.log": text})), "concurrent-map-crash"); i.Word() != "unknown" {
			t.Errorf("%s: it is %s: %s", name, i.Word(), i.Why)
		}
	}
}

package match_test

import (
	"strings"
	"testing"
)

// What is written otherwise, is a part, or is said of something else rules no incident out.
func TestNoFalseNotMet(t *testing.T) {
	const pleg, leak, sched, maps = "pleg-deadlock", "apiserver-goroutine-leak", "scheduler-nil-pointer", "concurrent-map-crash"
	one := func(name, text string) map[string]string { return map[string]string{name: text} }
	stuck := strings.Replace(kubelet("chan send, 217 minutes", "sleep"), "generic.go:261 +0x74e\n", "generic.go:261 +0x74e\ncreated by k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Start\n\t/generic.go:130 +0x88\n", 1)
	startLine := `I0301 10:00:00.000000       1 server.go:152] "Starting Kubernetes Scheduler" version="v1.27.3"` + "\n"
	for _, c := range []struct {
		name, incident string
		files          map[string]string
		want           string // the answer, "" if any but not met is right
	}{
		{"a closure of relist", pleg, one("kubelet.txt", strings.ReplaceAll(stuck, "(*GenericPLEG).relist(", "(*GenericPLEG).relist.func2(")), "suspected"},
		{"a renamed relist", pleg, one("kubelet.txt", strings.ReplaceAll(stuck, "(*GenericPLEG).relist(", "(*GenericPLEG).relistAllPods(")), "suspected"},
		{"another type of PLEG", pleg, one("kubelet.txt", strings.ReplaceAll(stuck, "(*GenericPLEG).relist(", "(*EventedPLEG).send(")), "suspected"},
		{"a method of its own within relist", pleg, one("kubelet.txt", strings.ReplaceAll(stuck, "k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).relist(", "k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).publish(0x1)\n\t/generic.go:1 +0x1\nk8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).relist(")), ""},
		{"a distributor in select for minutes", leak, one("kube-apiserver.txt", apiserver("select, 40 minutes")), "suspected"},
		{"a distributor in select", leak, one("kube-apiserver.txt", apiserver("select")), "unknown"},
		{"a distributor that waits for a lock", leak, one("kube-apiserver.txt", apiserver("sync.Mutex.Lock, 40 minutes")), "suspected"},
		{"no distributor", leak, one("kube-apiserver.txt", strings.ReplaceAll(apiserver("select"), "registry.(*Store).DeleteCollection", "registry.(*Store).Watch")), "not met"},
		{"a start line that grep took out of a file", sched, one("out.txt", "logs/kube-scheduler-n1.log:"+startLine), ""},
		{"with its number", sched, one("kube-scheduler.txt", "kube-scheduler-n1.log:12:"+startLine), ""},
		{"of two files", sched, one("kube-scheduler.txt", "n1.log:"+startLine+"n2.log:"+startLine), ""},
		{"a start line alone", sched, one("kube-scheduler.log", startLine), ""},
		{"several start lines", sched, one("kube-scheduler.log", startLine+startLine+startLine), ""},
		{"a start line with what follows it", sched, one("kube-scheduler.log", startLine+strings.Repeat(fineLine+"\n", 8)), "not met"},
		{"an affected version in JSON, a fixed one beside it", sched, map[string]string{"kube-scheduler.log": `{"ts":1761998400000.1,"caller":"app/server.go:152","msg":"Starting Kubernetes Scheduler","v":0,"version":"v1.26.1"}` + "\n" +
			strings.Repeat(`{"ts":1761998400001.1,"caller":"a/b.go:1","msg":"fine","v":2}`+"\n", 8), "version.txt": "Server Version: v1.27.3\n"}, "unknown"},
		{"a fixed version in JSON", sched, one("kube-scheduler.log", `{"ts":1761998400000.1,"caller":"app/server.go:152","msg":"Starting Kubernetes Scheduler","v":0,"version":"v1.27.3"}`+"\n"+
			strings.Repeat(`{"ts":1761998400001.1,"caller":"a/b.go:1","msg":"fine","v":2}`+"\n", 8)), "not met"},
		{"spaces in JSON", sched, one("kube-scheduler.log", `{"ts": 1761998400000.1, "caller": "app/server.go:152", "msg": "Starting Kubernetes Scheduler", "v": 0, "version": "v1.26.1"}`+"\n"+
			strings.Repeat(`{"ts": 1761998400001.1, "caller": "a/b.go:1", "msg": "fine", "v": 2, "version": "v1.27.3"}`+"\n", 8)), "unknown"},
		{"a version of another thing in JSON", maps, one("kube-apiserver.log", `{"ts":1761998400000.1,"caller":"server/options.go:1","msg":"external host was not specified","v":0}`+"\n"+
			`{"ts":1761998400000.1,"caller":"a/b.go:1","msg":"node has changed","v":2,"version":"v1.34.2","kubeletVersion":"v1.34.2"}`+"\n"), "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := of(t, run(t, nil, files(t, c.files)), c.incident)
			if i.Word() == "not met" && c.want != "not met" || c.want != "" && i.Word() != c.want {
				t.Errorf("it is %s: %s; want %s\n%+v", i.Word(), i.Why, c.want, i.Subjects)
			}
		})
	}
}

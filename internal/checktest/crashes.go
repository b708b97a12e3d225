package checktest

import (
	"fmt"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Statuses records what was reported of kube-apiserver, watched through from..to.
func (tr *Trial) Statuses(
	arm string,
	from, to float64,
	list ...bundle.ContainerStatus,
) *bundle.Stream {
	tr.T.Helper()
	st := tr.Stream(bundle.Statuses, arm)
	for _, s := range list {
		tr.Must(st.JSON(s))
	}
	st.Alive(tr.At(from))
	st.Alive(tr.At(to))
	return st
}

// Ran is a container that was seen to run at a second.
func (tr *Trial) Ran(second float64, id string, restarts int32) bundle.ContainerStatus {
	return bundle.ContainerStatus{
		Time:         tr.At(second),
		Pod:          "kube-apiserver-a",
		Container:    "kube-apiserver",
		ID:           "containerd://" + id,
		State:        "running",
		Ready:        true,
		RestartCount: restarts,
	}
}

// After is a container that was seen to run at a second, after another one that ended.
func (tr *Trial) After(
	second float64,
	id, last string,
	finished float64,
	reason string,
	code int32,
) bundle.ContainerStatus {
	s := tr.Ran(second, id, 1)
	s.LastID, s.LastReason, s.LastExitCode, s.LastFinished = "containerd://"+last, reason, code, tr.At(finished)
	return s
}

// Grow records snapshots with a heap profile each: a second, leaked goroutines, mebibytes.
func (tr *Trial) Grow(arm string, list ...int) {
	tr.T.Helper()
	for i := 0; i < len(list); i += 3 {
		tr.Shoot(arm, Leaks(float64(list[i]), list[i+1]))
		tr.Heap(arm, float64(list[i]+1), int64(list[i+2]))
	}
}

// Panicked is what a program that panicked leaves in its log, after what its own handler logs about it.
func Panicked(fn string) string {
	return "I0301 10:00:00.000000       1 csi.go:1] \"Could not get a CSINode object for the node\"\n" +
		"E0301 10:00:00.000000       1 panic.go:115] \"Observed a panic\" panic=\"runtime error: invalid memory address or nil pointer dereference\" stacktrace=<\n" +
		"\tgoroutine 7 [running]:\n\tk8s.io/x.handle()\n\t\t/src/x.go:1 +0x1\n >\n" +
		"panic: runtime error: invalid memory address or nil pointer dereference [recovered]\n" +
		"\tpanic: runtime error: invalid memory address or nil pointer dereference\n" +
		"[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]\n\n" +
		"goroutine 7 [running]:\nk8s.io/apimachinery/pkg/util/runtime.HandleCrash({0x0, 0x0, 0x0})\n\t/src/runtime.go:1 +0x1\n" +
		"panic({0x1, 0x2})\n\t/usr/local/go/src/runtime/panic.go:1 +0x1\n" + fn + "(0x1)\n\t/src/csi.go:235 +0x1\n\n" +
		"goroutine 8 [select]:\nk8s.io/x.wait()\n\t/src/x.go:9 +0x1\n"
}

// Fatal is what kube-apiserver leaves where its runtime found a map written to while it was read. Another thread may
// still log.
const Fatal = `W1122 16:40:00.000000       1 dispatcher.go:205] Failed calling webhook, failing open hangs.webhooks.relapse.dev: context deadline exceeded
fatal error: concurrent map iteration and map write

goroutine 5121 [running]:
internal/runtime/maps.fatal({0x3a1f2b0?, 0x0?})
	/usr/local/go/src/runtime/panic.go:1195 +0x18
internal/runtime/maps.(*Iter).Next(0xc00a1b2c30)
	/usr/local/go/src/internal/runtime/maps/table.go:792 +0x86
W1122 16:40:00.000001       1 dispatcher.go:205] Failed calling webhook, failing open hangs.webhooks.relapse.dev: context deadline exceeded
reflect.mapIterNext(0x4d?)
	/usr/local/go/src/runtime/map.go:337 +0x13
encoding/json.mapEncoder.encode({0x1}, 0xc00b, {0x2, 0x3, 0x15}, {0x0, 0x1})
	/usr/local/go/src/encoding/json/encode.go:774 +0x2ff
k8s.io/apiserver/plugin/pkg/audit/log.(*backend).logEvent(0xc000, 0xc001)
	/go/pkg/mod/k8s.io/apiserver@v0.34.4/plugin/pkg/audit/log/backend.go:76 +0x65
k8s.io/apiserver/pkg/audit.(*AuditContext).visitEvent(...)
	/src/pkg/audit/context.go:109
k8s.io/apiserver/pkg/server.DefaultBuildHandlerChain.WithAudit.func9.1()
	/go/pkg/mod/k8s.io/apiserver@v0.34.4/pkg/endpoints/filters/audit.go:110 +0x1c5
k8s.io/apiserver/pkg/endpoints/filters.WithAudit.func1({0x1, 0x2}, 0xc002)
	/go/pkg/mod/k8s.io/apiserver@v0.34.4/pkg/endpoints/filters/audit.go:115 +0x2f0
net/http.HandlerFunc.ServeHTTP(0x1?, {0x2?, 0x3?}, 0x4?)
	/usr/local/go/src/net/http/server.go:2322 +0x29
created by k8s.io/apiserver/pkg/server/filters.(*timeoutHandler).ServeHTTP in goroutine 5100
	/src/pkg/server/filters/timeout.go:101 +0x1f0
`

// Culprit is the function in which a scheduler's panic of the incident is.
const Culprit = "k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits.(*CSILimits).checkAttachableInlineVolume"

// Crash is an end of the subject at a second, and what its log had then.
type Crash struct {
	Second float64
	Code   int32
	Log    string
}

// Crashes records containers that end one after the other, named a, b, c and so on, and their logs.
func (tr *Trial) Crashes(list ...Crash) (st, logs *bundle.Stream) {
	tr.T.Helper()
	tr.Phases()
	all := []bundle.ContainerStatus{tr.Ran(1, "a", 0)}
	logs = tr.Log(Arm, "kube-apiserver", 0, 0)
	for i, c := range list {
		next := tr.After(
			c.Second+2,
			string(rune('b'+i)),
			string(rune('a'+i)),
			c.Second,
			"Error",
			c.Code,
		)
		next.RestartCount = int32(i + 1)
		all = append(all, next)
		for _, line := range strings.Split(c.Log, "\n") {
			if c.Log != "" {
				tr.Must(
					logs.JSON(bundle.LogLine{
						Time: tr.At(c.Second - 0.3),
						File: fmt.Sprintf("kube-system_a/kube-apiserver/%d.log", i),
						Text: line,
					}),
				)
			}
		}
	}
	logs.Alive(tr.At(394))
	return tr.Statuses(Arm, 0, 394, all...), logs
}

package logs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/checktest"
)

const crashSpec = `{"container":"kube-apiserver","times":2,"exitCode":2,"message":"nil pointer dereference","frames":["nodevolumelimits.(*CSILimits).checkAttachableInlineVolume"]}`

// handled is what a handler prints in the runtime's words.
const handled = "panic: in a plug-in, recovered: no such key\ngoroutine 5 [running]:\nk8s.io/x.plug(0x1)\n\t/src/x.go:1 +0x1\n\nI1125 10:00:00.000000 1 x.go:1] goes on\n"

// jumped is a container whose count of restarts goes from 0 to n between two looks, where the second shows the last of
// the ends. Its logs end at 59.7 s, 60.7 s and 61.7 s; "" is none.
func jumped(n int32, texts ...string) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		jumpedAfter(tr, []bundle.ContainerStatus{tr.Ran(1, "a", 0)}, n, texts...)
	}
}

// jumpedAfter does what jumped does, after the statuses before.
func jumpedAfter(tr *checktest.Trial, before []bundle.ContainerStatus, n int32, texts ...string) {
	tr.Phases()
	logs := tr.Log(checktest.Arm, "kube-apiserver", 0, 0)
	for i, text := range texts {
		for line := range strings.Lines(text) {
			tr.Must(logs.JSON(bundle.LogLine{Time: tr.At(59.7 + float64(i)), File: fmt.Sprintf("kube-system_a/kube-apiserver/%d.log", i), Text: strings.TrimSuffix(line, "\n")}))
		}
	}
	logs.Alive(tr.At(394))
	last := tr.After(63, "d", "c", 62, "Error", 2)
	last.RestartCount = n
	tr.Statuses(checktest.Arm, 0, 394, append(before, last)...)
}

// ended is an end of the subject at a second of the trial, and what its log had then.
func ended(second float64, code int32, log string) checktest.Crash {
	return checktest.Crash{Second: second, Code: code, Log: log}
}

func TestCrashed(t *testing.T) {
	both := []bundle.Kind{bundle.Statuses, bundle.Logs}
	of := func(list ...checktest.Crash) func(*checktest.Trial) {
		return func(tr *checktest.Trial) { tr.Crashes(list...) }
	}
	once := func(code int32, log string) func(*checktest.Trial) { return of(ended(60, code, log)) }
	twice := func(code int32, log string) func(*checktest.Trial) {
		return of(ended(60, code, log), ended(90, code, log))
	}
	earlier := "panic: in a plug-in, recovered from: no such key\ngoroutine 5 [running]:\nk8s.io/x.plug(0x1)\n\t/src/x.go:1 +0x1\n\nI0301 10:00:00.000000       1 x.go:1] goes on\n"
	own, foreign := checktest.Panicked(checktest.Culprit), checktest.Panicked("k8s.io/kubernetes/pkg/other.(*Cache).Get")
	qs := []checktest.Question{
		{
			Name: "twice, with the stack", Fill: twice(2, own), Met: check.True, Evidence: both, Seen: "2 such ends among 2, at 10:01:00, 10:01:30, the first 20s after fault began",
			Wanted: `at least 2 ends of kube-apiserver with exit code 2, each with a panic like "nil pointer dereference" in nodevolumelimits.(*CSILimits).checkAttachableInlineVolume`,
			Detail: "invalid memory address or nil pointer dereference",
		},
		{
			Name: "after it lived through another panic, in the runtime's words", Met: check.True, Evidence: both, Seen: "2 such ends among 2",
			Fill: twice(2, earlier+own),
		},
		{
			Name: "a fatal error, of which the runtime prints one goroutine", Fill: twice(2, checktest.Fatal), Met: check.True, Evidence: both,
			Seen: "2 such ends among 2", Detail: "fatal error: concurrent map iteration and map write",
			Spec: strings.Replace(strings.Replace(crashSpec, "nil pointer dereference", "^fatal error: concurrent map (iteration|read) and map write", 1),
				"nodevolumelimits.(*CSILimits).checkAttachableInlineVolume", `log.(*backend).logEvent","filters.WithAudit`, 1),
		},
		{
			Name: "another fatal error", Fill: once(2, strings.Replace(checktest.Fatal, "iteration and map write", "writes", 1)), Met: check.False, Evidence: both,
			Seen: "0 such ends among 1", Differs: []string{`it says "fatal error: concurrent map writes`},
			Spec: strings.Replace(crashSpec, "nil pointer dereference", "concurrent map iteration and map write", 1),
		},
		{
			Name: "a fatal error with another stack", Fill: once(2, checktest.Fatal), Met: check.False, Evidence: both,
			Seen: "0 such ends among 1", Differs: []string{"the goroutine that panicked has no nodevolumelimits"},
			Spec: strings.Replace(crashSpec, "nil pointer dereference", "concurrent map iteration and map write", 1),
		},
		{
			Name: "the next container begins in the second of the end", Met: check.True, Evidence: both, Seen: "2 such ends among 2",
			Fill: func(tr *checktest.Trial) {
				_, logs := tr.Crashes(ended(60, 2, own), ended(90, 2, own))
				for _, s := range []float64{60.4, 60.9, 63.5} { // it has a file of its own; the one that crashed at 90 has another
					tr.Must(logs.JSON(bundle.LogLine{Time: tr.At(s), File: "kube-system_a/kube-apiserver/next.log", Text: "I1123 a new one"}))
				}
			},
		},
		{
			Name: "the container before ends shortly before it", Met: check.True, Evidence: both, Seen: "2 such ends among 3",
			Fill: of(ended(56, 1, "I1123 no panic"), ended(60, 2, own), ended(90, 2, own)), Differs: []string{"want exit code 2"},
		},
		{Name: "once", Fill: once(2, own), Met: check.False, Evidence: both, Seen: "1 such ends among 1", Detail: "nil pointer"},
		{Name: "it ran on", Fill: of(), Met: check.False, Evidence: both, Seen: "0 such ends among 0"},
		{
			Name: "another stack", Fill: twice(2, foreign), Met: check.False, Evidence: both, Seen: "0 such ends among 2",
			Differs: []string{"kube-apiserver (a) ended at 10:01:00 with reason Error, exit code 2: the goroutine that panicked has no nodevolumelimits", "the goroutine that panicked has no"},
		},
		{
			Name: "another message", Met: check.False, Evidence: both, Seen: "0 such ends among 2", Differs: []string{`it says "panic: assignment to entry in nil map`, "it says"},
			Fill: of(ended(60, 2, strings.ReplaceAll(own, "runtime error: invalid memory address or nil pointer dereference", "assignment to entry in nil map")),
				ended(90, 2, strings.ReplaceAll(own, "runtime error: invalid memory address or nil pointer dereference", "assignment to entry in nil map"))),
		},
		{
			Name: "a panic that was only logged, and an exit of its own", Met: check.False, Evidence: both, Seen: "0 such ends among 2",
			Fill:    twice(2, own[:strings.Index(own, "\npanic: ")]),
			Differs: []string{"its log ends without a panic", "its log ends without a panic"},
		},
		{
			Name: "a kill", Fill: twice(137, own), Met: check.False, Evidence: both, Seen: "0 such ends among 2",
			Differs: []string{"want exit code 2", "want exit code 2"},
		},
		{
			Name: "ends without a log", Fill: twice(2, ""), Met: check.Unknown, Evidence: both,
			Seen: "0 such ends among 2, and of 2 the log is not known", Differs: []string{"no log of that container was recorded", "no log of that container was recorded"},
		},
		{
			Name: "the log of one end can't make up for another's", Fill: of(ended(60, 2, own), ended(90, 2, "")), Met: check.Unknown, Evidence: both,
			Seen: "1 such ends among 2, at 10:01:00, the first 20s after fault began, and of 1 the log is not known", Differs: []string{"(b) ended at 10:01:30 with reason Error, exit code 2: no log of that container"},
		},
		{
			Name: "the log of one end can't make up for another's, seconds later", Fill: of(ended(60, 2, own), ended(63, 2, "")), Met: check.Unknown, Evidence: both,
			Seen: "1 such ends among 2, at 10:01:00, the first 20s after fault began, and of 1 the log is not known", Differs: []string{"(b) ended at 10:01:03 with reason Error, exit code 2: no log of that container"},
		},
		{
			Name: "two ends within seconds, each with its log", Fill: of(ended(60, 2, own), ended(63, 2, own)), Met: check.True, Evidence: both, Seen: "2 such ends among 2",
		},
		{
			Name: "nobody looked at that container", Met: check.Unknown, Code: check.NotRecorded, Evidence: both,
			Seen: "0 such ends among 0; no status of kube-apiserver was recorded",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Log(checktest.Arm, "kube-apiserver", 0, 394)
				other := tr.Ran(1, "a", 0)
				other.Container = "etcd"
				tr.Statuses(checktest.Arm, 0, 394, other)
			},
		},
		{
			Name: "what a handler printed like the runtime, before it went on", Met: check.True, Evidence: both, Seen: "2 such ends among 2",
			Fill: twice(2, handled+own),
		},
		{
			Name: "with all goroutines and a core dump", Met: check.True, Evidence: both, Seen: "2 such ends among 2",
			Fill: of(ended(60, 134, own), ended(90, 134, strings.Replace(own, "goroutine 7 [running]", "goroutine 7 gp=0xc000006c40 m=5 mp=0xc000100808 [running]", 2))),
		},
		{Name: "an abort of its own", Fill: twice(134, "SIGABRT: abort"), Met: check.False, Evidence: both, Seen: "0 such ends among 2",
			Differs: []string{"its log ends without a panic", "its log ends without a panic"}},
		{
			Name: "three ends between two looks", Met: check.True, Evidence: both, Seen: "3 such ends among 3, at 10:00:59, 10:01:00, 10:01:02",
			Fill: jumped(3, own, own, own),
		},
		{
			Name: "three ends between two looks, one of them another one", Met: check.True, Evidence: both, Seen: "2 such ends among 3",
			Fill: jumped(3, own, "I0301 no panic", own), Differs: []string{"kube-apiserver ended by 10:01:00, as the count of restarts tells: its log ends without a panic"},
		},
		{
			Name: "three ends between two looks, and one log", Met: check.Unknown, Evidence: both, Seen: "1 such ends among 3, at 10:01:02, the first 22s after fault began, and of 2 the log is not known",
			Fill: jumped(3, "", "", own), Differs: []string{"kube-apiserver ended by 10:01:02, as the count of restarts tells: no log of that container was recorded", "no log of that container"},
		},
		{
			Name: "three ends between two looks, and an earlier pod of that name that counted two", Met: check.True, Evidence: both, Seen: "3 such ends among 3",
			Fill: func(tr *checktest.Trial) {
				jumpedAfter(tr, []bundle.ContainerStatus{tr.Ran(0, "z", 2), tr.Ran(1, "a", 0)}, 3, own, own, own)
			},
		},
		{
			Name: "three ends of a pod of another name, which nobody saw before", Met: check.True, Evidence: both, Seen: "3 such ends among 3, at 10:00:59, 10:01:00, 10:01:02",
			Fill: func(tr *checktest.Trial) {
				of := tr.Ran(1, "z", 0)
				of.Pod = "kube-apiserver-z"
				jumpedAfter(tr, []bundle.ContainerStatus{of}, 3, own, own, own)
			},
		},
		{
			Name: "three ends of a pod that took the place of one which counted more", Met: check.True, Evidence: both, Seen: "3 such ends among 3, at 10:00:59, 10:01:00, 10:01:02",
			Fill: func(tr *checktest.Trial) {
				jumpedAfter(tr, []bundle.ContainerStatus{tr.Ran(1, "z", 5)}, 3, own, own, own)
			},
		},
		{Name: "ends before and after the phase", Fill: of(ended(30, 2, own), ended(300, 2, own)), Met: check.False, Evidence: both, Seen: "0 such ends among 0"},
		{
			Name: "nobody watched the containers to the end", Met: check.Unknown, Code: check.Gap, Evidence: both, Seen: "0 such ends among 0; containers.status of vulnerable does not cover",
			Fill: func(tr *checktest.Trial) {
				st, _ := tr.Crashes()
				st.Gap(tr.At(200), tr.At(394), "connection refused")
			},
		},
		{
			Name: "a gap in the log, and no end in it", Met: check.Unknown, Code: check.Gap, Evidence: both, Seen: "1 such ends among 1, at 10:01:00, the first 20s after fault began; logs of vulnerable does not cover",
			Fill: func(tr *checktest.Trial) {
				_, logs := tr.Crashes(ended(60, 2, own))
				logs.Gap(tr.At(100), tr.At(150), "the file was gone")
			},
		},
		{Name: "nothing was recorded", Fill: (*checktest.Trial).Phases, Met: check.Unknown, Code: check.NotRecorded, Seen: "no containers.status was recorded for vulnerable"},
	}
	checktest.Run(t, qs, func(q *checktest.Question) {
		if q.Spec == "" {
			q.Spec = crashSpec
		}
		q.Kind, q.Scope = "crashed", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
	})
}

// The first end that the incident explains, or may explain, is where the process's identity ends; an end that it
// doesn't explain excuses nothing.
func TestCrashedEnds(t *testing.T) {
	for _, tc := range []struct {
		name string
		list []checktest.Crash
		want float64 // 0 is none
	}{
		{"met", []checktest.Crash{{Second: 60, Code: 2, Log: checktest.Panicked(checktest.Culprit)}, {Second: 90, Code: 2, Log: checktest.Panicked(checktest.Culprit)}}, 60},
		{"unknown", []checktest.Crash{{Second: 60, Code: 2, Log: ""}, {Second: 90, Code: 2, Log: ""}}, 60},
		{"not met yet", []checktest.Crash{{Second: 60, Code: 2, Log: checktest.Panicked(checktest.Culprit)}}, 60},
		{"perhaps not met yet", []checktest.Crash{{Second: 60, Code: 2, Log: ""}}, 60},
		{"not met", []checktest.Crash{{Second: 60, Code: 1, Log: checktest.Panicked(checktest.Culprit)}}, 0},
	} {
		tr := checktest.NewTrial(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
		tr.Crashes(tc.list...)
		c, err := kinds.Decode[check.Check](kinds.Check, "crashed", json.RawMessage(crashSpec))
		tr.Must(err)
		f := c.Eval(tr.W.View(), check.Scope{Arm: checktest.Arm, Phase: check.Fault})
		if want := tr.At(tc.want); f.Ended.IsZero() != (tc.want == 0) || tc.want != 0 && !f.Ended.Equal(want) {
			t.Errorf("%s: it ended at %s, want %s: %+v", tc.name, f.Ended, want, f)
		}
	}
}

package check_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

const crashSpec = `{"container":"kube-apiserver","times":2,"exitCode":2,"message":"nil pointer dereference","frames":["nodevolumelimits.(*CSILimits).checkAttachableInlineVolume"]}`

// handled is what a handler prints in the runtime's words.
const handled = "panic: in a plug-in, recovered: no such key\ngoroutine 5 [running]:\nk8s.io/x.plug(0x1)\n\t/src/x.go:1 +0x1\n\nI1125 10:00:00.000000 1 x.go:1] goes on\n"

// jumped is a container whose count of restarts goes from 0 to n between two looks, where the second shows the last of
// the ends. Its logs end at 59.7 s, 60.7 s and 61.7 s; "" is none.
func jumped(n int32, texts ...string) func(*trial) {
	return func(tr *trial) {
		tr.phases()
		logs := tr.log(arm, "kube-apiserver", 0, 0)
		for i, text := range texts {
			for line := range strings.Lines(text) {
				tr.must(logs.JSON(bundle.LogLine{Time: tr.at(59.7 + float64(i)), File: fmt.Sprintf("kube-system_a/kube-apiserver/%d.log", i), Text: strings.TrimSuffix(line, "\n")}))
			}
		}
		logs.Alive(tr.at(394))
		last := tr.after(63, "d", "c", 62, "Error", 2)
		last.RestartCount = n
		tr.statuses(arm, 0, 394, tr.ran(1, "a", 0), last)
	}
}

func TestCrashed(t *testing.T) {
	both := []bundle.Kind{bundle.Statuses, bundle.Logs}
	of := func(list ...crash) func(*trial) { return func(tr *trial) { tr.crashes(list...) } }
	earlier := "panic: in a plug-in, recovered from: no such key\ngoroutine 5 [running]:\nk8s.io/x.plug(0x1)\n\t/src/x.go:1 +0x1\n\nI0301 10:00:00.000000       1 x.go:1] goes on\n"
	own, foreign := panicked(culprit), panicked("k8s.io/kubernetes/pkg/other.(*Cache).Get")
	qs := []question{
		{
			name: "twice, with the stack", fill: of(crash{second: 60, code: 2, log: own}, crash{second: 90, code: 2, log: own}), met: check.True, evidence: both, seen: "2 such ends among 2, at 10:01:00, 10:01:30, the first 20s after fault began",
			wanted: `at least 2 ends of kube-apiserver with exit code 2, each with a panic like "nil pointer dereference" in nodevolumelimits.(*CSILimits).checkAttachableInlineVolume`,
			detail: "invalid memory address or nil pointer dereference",
		},
		{
			name: "after it lived through another panic, in the runtime's words", met: check.True, evidence: both, seen: "2 such ends among 2",
			fill: of(crash{second: 60, code: 2, log: earlier + own}, crash{second: 90, code: 2, log: earlier + own}),
		},
		{
			name: "a fatal error, of which the runtime prints one goroutine", fill: of(crash{second: 60, code: 2, log: fatal}, crash{second: 90, code: 2, log: fatal}), met: check.True, evidence: both,
			seen: "2 such ends among 2", detail: "fatal error: concurrent map iteration and map write",
			spec: strings.Replace(strings.Replace(crashSpec, "nil pointer dereference", "^fatal error: concurrent map (iteration|read) and map write", 1),
				"nodevolumelimits.(*CSILimits).checkAttachableInlineVolume", `log.(*backend).logEvent","filters.WithAudit`, 1),
		},
		{
			name: "another fatal error", fill: of(crash{second: 60, code: 2, log: strings.Replace(fatal, "iteration and map write", "writes", 1)}), met: check.False, evidence: both,
			seen: "0 such ends among 1", differs: []string{`it says "fatal error: concurrent map writes`},
			spec: strings.Replace(crashSpec, "nil pointer dereference", "concurrent map iteration and map write", 1),
		},
		{
			name: "a fatal error with another stack", fill: of(crash{second: 60, code: 2, log: fatal}), met: check.False, evidence: both,
			seen: "0 such ends among 1", differs: []string{"the goroutine that panicked has no nodevolumelimits"},
			spec: strings.Replace(crashSpec, "nil pointer dereference", "concurrent map iteration and map write", 1),
		},
		{
			name: "the next container begins in the second of the end", met: check.True, evidence: both, seen: "2 such ends among 2",
			fill: func(tr *trial) {
				_, logs := tr.crashes(crash{second: 60, code: 2, log: own}, crash{second: 90, code: 2, log: own})
				for _, s := range []float64{60.4, 60.9, 63.5} { // it has a file of its own; the one that crashed at 90 has another
					tr.must(logs.JSON(bundle.LogLine{Time: tr.at(s), File: "kube-system_a/kube-apiserver/next.log", Text: "I1123 a new one"}))
				}
			},
		},
		{
			name: "the container before ends shortly before it", met: check.True, evidence: both, seen: "2 such ends among 3",
			fill: of(crash{second: 56, code: 1, log: "I1123 no panic"}, crash{second: 60, code: 2, log: own}, crash{second: 90, code: 2, log: own}), differs: []string{"want exit code 2"},
		},
		{name: "once", fill: of(crash{second: 60, code: 2, log: own}), met: check.False, evidence: both, seen: "1 such ends among 1", detail: "nil pointer"},
		{name: "it ran on", fill: of(), met: check.False, evidence: both, seen: "0 such ends among 0"},
		{
			name: "another stack", fill: of(crash{second: 60, code: 2, log: foreign}, crash{second: 90, code: 2, log: foreign}), met: check.False, evidence: both, seen: "0 such ends among 2",
			differs: []string{"kube-apiserver (a) ended at 10:01:00 with reason Error, exit code 2: the goroutine that panicked has no nodevolumelimits", "the goroutine that panicked has no"},
		},
		{
			name: "another message", met: check.False, evidence: both, seen: "0 such ends among 2", differs: []string{`it says "panic: assignment to entry in nil map`, "it says"},
			fill: of(crash{second: 60, code: 2, log: strings.ReplaceAll(own, "runtime error: invalid memory address or nil pointer dereference", "assignment to entry in nil map")},
				crash{second: 90, code: 2, log: strings.ReplaceAll(own, "runtime error: invalid memory address or nil pointer dereference", "assignment to entry in nil map")}),
		},
		{
			name: "a panic that was only logged, and an exit of its own", met: check.False, evidence: both, seen: "0 such ends among 2",
			fill:    of(crash{second: 60, code: 2, log: own[:strings.Index(own, "\npanic: ")]}, crash{second: 90, code: 2, log: own[:strings.Index(own, "\npanic: ")]}),
			differs: []string{"its log ends without a panic", "its log ends without a panic"},
		},
		{
			name: "a kill", fill: of(crash{second: 60, code: 137, log: own}, crash{second: 90, code: 137, log: own}), met: check.False, evidence: both, seen: "0 such ends among 2",
			differs: []string{"want exit code 2", "want exit code 2"},
		},
		{
			name: "ends without a log", fill: of(crash{second: 60, code: 2, log: ""}, crash{second: 90, code: 2, log: ""}), met: check.Unknown, evidence: both,
			seen: "0 such ends among 2, and of 2 the log is not known", differs: []string{"no log of that container was recorded", "no log of that container was recorded"},
		},
		{
			name: "the log of one end can't make up for another's", fill: of(crash{second: 60, code: 2, log: own}, crash{second: 90, code: 2, log: ""}), met: check.Unknown, evidence: both,
			seen: "1 such ends among 2, at 10:01:00, the first 20s after fault began, and of 1 the log is not known", differs: []string{"(b) ended at 10:01:30 with reason Error, exit code 2: no log of that container"},
		},
		{
			name: "what a handler printed like the runtime, before it went on", met: check.True, evidence: both, seen: "2 such ends among 2",
			fill: of(crash{second: 60, code: 2, log: handled + own}, crash{second: 90, code: 2, log: handled + own}),
		},
		{
			name: "with all goroutines and a core dump", met: check.True, evidence: both, seen: "2 such ends among 2",
			fill: of(crash{second: 60, code: 134, log: own}, crash{second: 90, code: 134, log: strings.Replace(own, "goroutine 7 [running]", "goroutine 7 gp=0xc000006c40 m=5 mp=0xc000100808 [running]", 2)}),
		},
		{name: "an abort of its own", fill: of(crash{second: 60, code: 134, log: "SIGABRT: abort"}, crash{second: 90, code: 134, log: "SIGABRT: abort"}), met: check.False, evidence: both, seen: "0 such ends among 2",
			differs: []string{"its log ends without a panic", "its log ends without a panic"}},
		{
			name: "three ends between two looks", met: check.True, evidence: both, seen: "3 such ends among 3, at 10:00:59, 10:01:00, 10:01:02",
			fill: jumped(3, own, own, own),
		},
		{
			name: "three ends between two looks, one of them another one", met: check.True, evidence: both, seen: "2 such ends among 3",
			fill: jumped(3, own, "I0301 no panic", own), differs: []string{"kube-apiserver ended by 10:01:00, as the count of restarts tells: its log ends without a panic"},
		},
		{
			name: "three ends between two looks, and one log", met: check.Unknown, evidence: both, seen: "1 such ends among 3, at 10:01:02, the first 22s after fault began, and of 2 the log is not known",
			fill: jumped(3, "", "", own), differs: []string{"kube-apiserver ended by 10:01:02, as the count of restarts tells: no log of that container was recorded", "no log of that container"},
		},
		{name: "ends before and after the phase", fill: of(crash{second: 30, code: 2, log: own}, crash{second: 300, code: 2, log: own}), met: check.False, evidence: both, seen: "0 such ends among 0"},
		{
			name: "nobody watched the containers to the end", met: check.Unknown, evidence: both, seen: "0 such ends among 0; containers.status of vulnerable does not cover",
			fill: func(tr *trial) {
				st, _ := tr.crashes()
				st.Gap(tr.at(200), tr.at(394), "connection refused")
			},
		},
		{
			name: "a gap in the log, and no end in it", met: check.Unknown, evidence: both, seen: "1 such ends among 1, at 10:01:00, the first 20s after fault began; logs of vulnerable does not cover",
			fill: func(tr *trial) {
				_, logs := tr.crashes(crash{second: 60, code: 2, log: own})
				logs.Gap(tr.at(100), tr.at(150), "the file was gone")
			},
		},
		{name: "nothing was recorded", fill: (*trial).phases, met: check.Unknown, seen: "no containers.status was recorded for vulnerable"},
	}
	run(t, qs, func(q *question) {
		if q.spec == "" {
			q.spec = crashSpec
		}
		q.kind, q.scope = "crashed", check.Scope{Arm: arm, Phase: check.Fault}
	})
}

// The first end that the incident explains is where the process's identity ends; an end that it doesn't explain excuses nothing.
func TestCrashedEnds(t *testing.T) {
	for _, tc := range []struct {
		name string
		list []crash
		want float64 // 0 is none
	}{
		{"met", []crash{{second: 60, code: 2, log: panicked(culprit)}, {second: 90, code: 2, log: panicked(culprit)}}, 60},
		{"unknown", []crash{{second: 60, code: 2, log: ""}, {second: 90, code: 2, log: ""}}, 60},
		{"not met", []crash{{second: 60, code: 2, log: panicked(culprit)}}, 0},
	} {
		tr := newTrial(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
		tr.crashes(tc.list...)
		c, err := kinds.Decode[check.Check](kinds.Check, "crashed", json.RawMessage(crashSpec))
		tr.must(err)
		f := c.Eval(tr.w.View(), check.Scope{Arm: arm, Phase: check.Fault})
		if want := tr.at(tc.want); f.Ended.IsZero() != (tc.want == 0) || tc.want != 0 && !f.Ended.Equal(want) {
			t.Errorf("%s: it ended at %s, want %s: %+v", tc.name, f.Ended, want, f)
		}
	}
}

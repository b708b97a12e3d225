package check_test

import (
	"os"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/check"
)

// dumps records goroutine dumps: testdata's file of a name, at a second each.
func dumps(cell string, list ...any) func(*trial) {
	return func(tr *trial) {
		tr.phases()
		for i := 0; i < len(list); i += 2 {
			tr.dump(cell, list[i].(int), list[i+1].(string))
		}
	}
}

// dump records one dump. "failed" is a capture that failed, a name with a "~" in front is cut in its middle.
func (tr *trial) dump(cell string, second int, name string) {
	tr.t.Helper()
	if name == "failed" {
		tr.fail(bundle.Goroutines2, cell, float64(second), "connection refused")
		return
	}
	bare, cut := strings.CutPrefix(name, "~")
	text, err := os.ReadFile("testdata/" + bare + ".debug2")
	tr.must(err)
	if cut {
		text = text[:strings.Index(string(text), "/src/k8s.io/kubernetes/pkg/kubelet/pleg/generic.go")]
	}
	_, err = tr.w.Write(bundle.Meta{Kind: bundle.Goroutines2, Cell: cell, Time: tr.at(float64(second))}, "txt", strings.NewReader(string(text)))
	tr.must(err)
}

func TestGoroutinesPersist(t *testing.T) {
	run(t, []question{
		{
			name: "blocked in every dump", fill: dumps(arm, 300, "blocked", 320, "blocked", 360, "blocked"),
			met: check.Met, seen: "3 of 3 dumps show it, the last 1m5s after recovery began", evidence: times(3, bundle.Goroutines2),
			detail: "generic.go:331",
		},
		{
			name: "the function's name is compared without regard to case", spec: `{"func":"pleg.(*GenericPLEG).relist"}`,
			fill: dumps(arm, 300, "blocked", 320, "blocked", 360, "blocked"),
			met:  check.Met, seen: "3 of 3", evidence: times(3, bundle.Goroutines2), detail: "[chan send",
		},
		{
			name: "one dump in which it went on", fill: dumps(arm, 300, "blocked", 320, "busy", 360, "blocked"),
			met: check.NotMet, seen: "2 of 3 dumps show it", evidence: times(3, bundle.Goroutines2), detail: "[chan send",
			differs: []string{"10:05:20: in that function, but [select] in google.golang.org/grpc/internal/transport.(*recvBufferReader).readClient"},
		},
		{
			name: "busy all along is not stuck", fill: dumps(arm, 300, "busy", 320, "busy", 340, "busy", 360, "busy", 380, "busy"),
			met: check.NotMet, seen: "0 of 5 dumps show it", evidence: times(5, bundle.Goroutines2),
			differs: []string{"10:05:00", "10:05:20", "… and 1 more", "10:06:00", "10:06:20"},
		},
		{
			name: "idle", fill: dumps(arm, 300, "idle", 320, "idle", 360, "idle"),
			met: check.NotMet, seen: "0 of 3", evidence: times(3, bundle.Goroutines2),
		},
		{
			name: "two dumps are too few", fill: dumps(arm, 320, "blocked", 360, "blocked"),
			met: check.Unknown, seen: "2 of 2 dumps show it, the last 1m5s after recovery began: too few to answer by",
			evidence: times(2, bundle.Goroutines2), detail: "[chan send",
		},
		{
			name: "two idle dumps are too few for a no, too", fill: dumps(arm, 320, "idle", 360, "idle"),
			met: check.Unknown, seen: "too few to answer by", evidence: times(2, bundle.Goroutines2),
		},
		{
			name: "the last dump is too early", fill: dumps(arm, 300, "blocked", 320, "blocked", 354, "blocked"),
			met: check.Unknown, seen: "the last 59s after recovery began: too few", evidence: times(3, bundle.Goroutines2), detail: "[chan send",
		},
		{
			name: "dumps of the fault and from after the end don't count",
			fill: dumps(arm, 289, "blocked", 294, "blocked", 300, "blocked", 360, "blocked", 396, "blocked"),
			met:  check.Unknown, seen: "2 of 2", evidence: times(2, bundle.Goroutines2), detail: "[chan send",
		},
		{
			name: "the other arm's dumps don't count", fill: dumps(other, 300, "blocked", 320, "blocked", 360, "blocked"),
			met: check.Unknown, seen: "0 of 0 dumps show it",
		},
		{
			name: "shared dumps don't count", fill: dumps(bundle.Shared, 300, "blocked", 320, "blocked", 360, "blocked"),
			met: check.Unknown, seen: "0 of 0",
		},
		{
			name: "a capture that failed is no dump", fill: dumps(arm, 300, "blocked", 320, "failed", 360, "blocked"),
			met: check.Unknown, seen: "2 of 2", evidence: times(2, bundle.Goroutines2), detail: "[chan send",
			differs: []string{"the dump of 10:05:20 failed: connection refused"},
		},
		{
			name: "with enough others, a capture that failed is only noted",
			fill: dumps(arm, 300, "blocked", 310, "failed", 320, "blocked", 360, "blocked"),
			met:  check.Met, seen: "3 of 3", evidence: times(3, bundle.Goroutines2), detail: "[chan send", differs: []string{"failed"},
		},
		{
			name: "a cut dump in which it is missing", fill: dumps(arm, 300, "blocked", 320, "~idle", 340, "blocked", 360, "blocked"),
			met: check.Unknown, seen: "3 of 3 dumps show it, the last 1m5s after recovery began; artifacts/00002-goroutines.debug2-vulnerable.txt is cut short",
			evidence: times(3, bundle.Goroutines2), detail: "[chan send",
		},
		{
			name: "missing files", fill: dumps(arm, 300, "blocked", 320, "blocked", 360, "blocked"), damage: remove(t, bundle.Goroutines2),
			met: check.Unknown, seen: "0 of 0 dumps show it; the file artifacts/00003-goroutines.debug2-vulnerable.txt is missing",
		},
		{
			name: "nothing was taken", fill: dumps(arm), met: check.Unknown, seen: "0 of 0 dumps show it: too few",
		},
		{
			name: "the phase never came", fill: func(tr *trial) { tr.enter(0, check.Steady); tr.enter(10, bundle.EndPhase) },
			met: check.Unknown, seen: "the phase recovery never began",
		},
		{
			name: "two are asked for in each", spec: `{"count":2}`, fill: dumps(arm, 300, "two", 320, "two", 360, "two"),
			met: check.Met, seen: "3 of 3", wanted: "at least 2 goroutine", evidence: times(3, bundle.Goroutines2), detail: "[chan send",
		},
		{
			name: "one is not two", spec: `{"count":2}`, fill: dumps(arm, 300, "two", 320, "blocked", 360, "two"),
			met: check.NotMet, seen: "2 of 3", evidence: times(3, bundle.Goroutines2), detail: "[chan send", differs: []string{"[chan send]"},
		},
		{
			name: "another function in that state is none", spec: `{"func":"pleg.(*GenericPLEG).updateCache"}`,
			fill: dumps(arm, 300, "blocked", 320, "blocked", 360, "blocked"),
			met:  check.NotMet, seen: "0 of 3", evidence: times(3, bundle.Goroutines2),
		},
		{
			name: "a function further down the stack is not the one that is blocked", spec: `{"func":"wait.JitterUntil"}`,
			fill: dumps(arm, 300, "blocked", 320, "blocked", 360, "blocked"),
			met:  check.NotMet, seen: "0 of 3", evidence: times(3, bundle.Goroutines2),
			differs: []string{"but [chan send]", "but [chan send]", "but [chan send]"},
		},
		{name: "a count of 0 would be met by nothing", spec: `{"count":0}`, fill: dumps(arm), met: check.Unknown, seen: "count is 0 (want at least 1)"},
		{name: "no dump at all would be enough", spec: `{"dumps":0}`, fill: dumps(arm), met: check.Unknown, seen: "dumps is 0 (want at least 1)"},
		{name: "no function", spec: `{"func":""}`, fill: dumps(arm), met: check.Unknown, seen: "func is empty"},
		{name: "no duration", spec: `{"lastAfter":"1"}`, fill: dumps(arm), met: check.Unknown, seen: `lastAfter is "1" (want a duration`},
	}, func(q *question) {
		q.kind, q.scope = "goroutines", check.Scope{Cell: arm, Phase: check.Recovery}
		q.spec = over(t, `{"func":"pleg.(*GenericPLEG).Relist","state":"chan send","dumps":3,"lastAfter":"60s","persist":true}`, q.spec)
		if q.wanted == "" && q.met != check.Unknown {
			q.wanted = "in every one of at least 3 dumps, the last at least 60s into the phase"
		}
	})
}

func TestGoroutinesOnce(t *testing.T) {
	run(t, []question{
		{
			name: "one dump is enough", fill: dumps(arm, 60, "idle", 280, "blocked", 285, "busy"),
			met: check.Met, seen: "1 of 3 dumps show it", evidence: times(3, bundle.Goroutines2), detail: "[chan send",
			differs: []string{"in that function, but [select]"},
		},
		{
			name: "a cut dump that shows it", fill: dumps(arm, 280, "two", 285, "~blocked"),
			met: check.Unknown, seen: "is cut short", evidence: times(1, bundle.Goroutines2), detail: "[chan send",
		},
		{
			name: "none shows it", fill: dumps(arm, 60, "idle", 280, "busy"),
			met: check.NotMet, seen: "0 of 2", evidence: times(2, bundle.Goroutines2), differs: []string{"in that function"},
		},
		{name: "all failed", fill: dumps(arm, 60, "failed", 280, "failed"), met: check.Unknown, seen: "0 of 0 dumps show it: too few", differs: []string{"failed", "failed"}},
		{
			name: "blocked while the lift was under way is evidence of no phase", fill: dumps(arm, 280, "idle", 292, "blocked"),
			met: check.NotMet, seen: "0 of 1", evidence: times(1, bundle.Goroutines2),
		},
	}, func(q *question) {
		q.kind, q.scope = "goroutines", check.Scope{Cell: arm, Phase: check.Fault}
		q.spec = `{"func":"pleg.(*GenericPLEG).Relist","state":"chan send"}`
		q.wanted = "at least 1 goroutine [chan send] in pleg.(*GenericPLEG).Relist in one dump"
	})
}

func TestGoroutinesUnreadable(t *testing.T) {
	ask(t, question{
		kind: "goroutines", spec: `{"func":"f","state":"chan send"}`, scope: check.Scope{Cell: arm, Phase: check.Fault},
		fill: func(tr *trial) {
			tr.phases()
			_, err := tr.w.Write(bundle.Meta{Kind: bundle.Goroutines2, Cell: arm, Time: tr.at(100)}, "txt", strings.NewReader("<html>Bad Gateway</html>\n"))
			tr.must(err)
		},
		met: check.Unknown, seen: "reading artifacts/00001-goroutines.debug2-vulnerable.txt:", wanted: "in one dump",
	})
}

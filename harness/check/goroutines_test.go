package check_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestGoroutinesPersist(t *testing.T) {
	run(t, []question{
		{
			name: "blocked in every dump", fill: dumps(arm, 300, "blocked", 320, "blocked", 360, "blocked"),
			met: check.True, seen: "3 of 3 dumps show it, the last 1m5s after recovery began", evidence: times(3, bundle.Goroutines2),
			detail: "generic.go:331",
		},
		{
			name: "the function's name is compared without regard to case", spec: `{"func":"pleg.(*GenericPLEG).relist"}`,
			fill: dumps(arm, 300, "blocked", 320, "blocked", 360, "blocked"),
			met:  check.True, seen: "3 of 3", evidence: times(3, bundle.Goroutines2), detail: "[chan send",
		},
		{
			name: "one dump in which it went on", fill: dumps(arm, 300, "blocked", 320, "busy", 360, "blocked"),
			met: check.False, seen: "2 of 3 dumps show it", evidence: times(3, bundle.Goroutines2), detail: "[chan send",
			differs: []string{"10:05:20: in that function, but [select] in google.golang.org/grpc/internal/transport.(*recvBufferReader).readClient"},
		},
		{
			name: "busy all along is not stuck", fill: dumps(arm, 300, "busy", 320, "busy", 340, "busy", 360, "busy", 380, "busy"),
			met: check.False, seen: "0 of 5 dumps show it", evidence: times(5, bundle.Goroutines2),
			differs: []string{"10:05:00", "10:05:20", "… and 1 more", "10:06:00", "10:06:20"},
		},
		{
			name: "idle", fill: dumps(arm, 300, "idle", 320, "idle", 360, "idle"),
			met: check.False, seen: "0 of 3", evidence: times(3, bundle.Goroutines2),
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
			met:  check.True, seen: "3 of 3", evidence: times(3, bundle.Goroutines2), detail: "[chan send", differs: []string{"failed"},
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
			met: check.True, seen: "3 of 3", wanted: "at least 2 goroutine", evidence: times(3, bundle.Goroutines2), detail: "[chan send",
		},
		{
			name: "one is not two", spec: `{"count":2}`, fill: dumps(arm, 300, "two", 320, "blocked", 360, "two"),
			met: check.False, seen: "2 of 3", evidence: times(3, bundle.Goroutines2), detail: "[chan send", differs: []string{"[chan send]"},
		},
		{
			name: "another function in that state is none", spec: `{"func":"pleg.(*GenericPLEG).updateCache"}`,
			fill: dumps(arm, 300, "blocked", 320, "blocked", 360, "blocked"),
			met:  check.False, seen: "0 of 3", evidence: times(3, bundle.Goroutines2),
		},
		{
			name: "a function further down the stack is not the one that is blocked", spec: `{"func":"wait.JitterUntil"}`,
			fill: dumps(arm, 300, "blocked", 320, "blocked", 360, "blocked"),
			met:  check.False, seen: "0 of 3", evidence: times(3, bundle.Goroutines2),
			differs: []string{"but [chan send]", "but [chan send]", "but [chan send]"},
		},
		{name: "a count of 0 would be met by nothing", spec: `{"count":0}`, fill: dumps(arm), met: check.Unknown, seen: "count is 0 (want at least 1)"},
		{name: "no dump at all would be enough", spec: `{"dumps":0}`, fill: dumps(arm), met: check.Unknown, seen: "dumps is 0 (want at least 1)"},
		{name: "no function", spec: `{"func":""}`, fill: dumps(arm), met: check.Unknown, seen: "func is empty"},
		{name: "no duration", spec: `{"lastAfter":"1"}`, fill: dumps(arm), met: check.Unknown, seen: `lastAfter is "1" (want a duration`},
	}, func(q *question) {
		q.kind, q.scope = "goroutines", check.Scope{Arm: arm, Phase: check.Recovery}
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
			met: check.True, seen: "1 of 3 dumps show it", evidence: times(3, bundle.Goroutines2), detail: "[chan send",
			differs: []string{"in that function, but [select]"},
		},
		{
			name: "waiting for as long as the dump says", spec: `{"func":"pleg.(*GenericPLEG).Relist","state":"chan send","waited":"3m"}`,
			fill: dumps(arm, 280, "two"), met: check.True, seen: "1 of 1 dumps show it", evidence: times(1, bundle.Goroutines2), detail: "[chan send",
		},
		{
			name: "waiting for less, as far as the dump says", spec: `{"func":"pleg.(*GenericPLEG).Relist","state":"chan send","waited":"50m"}`,
			fill: dumps(arm, 280, "two"), met: check.Unknown, seen: "some show it, not for 50m as far as they say", evidence: times(1, bundle.Goroutines2),
			differs: []string{"in that function, but [chan send]"},
		},
		{
			name: "a cut dump that shows it", fill: dumps(arm, 280, "two", 285, "~blocked"),
			met: check.Unknown, seen: "is cut short", evidence: times(1, bundle.Goroutines2), detail: "[chan send",
		},
		{
			name: "none shows it", fill: dumps(arm, 60, "idle", 280, "busy"),
			met: check.False, seen: "0 of 2", evidence: times(2, bundle.Goroutines2), differs: []string{"in that function"},
		},
		{name: "all failed", fill: dumps(arm, 60, "failed", 280, "failed"), met: check.Unknown, seen: "0 of 0 dumps show it: too few", differs: []string{"failed", "failed"}},
		{
			name: "blocked while the lift was under way is evidence of no phase", fill: dumps(arm, 280, "idle", 292, "blocked"),
			met: check.False, seen: "0 of 1", evidence: times(1, bundle.Goroutines2),
		},
	}, func(q *question) {
		q.kind, q.scope = "goroutines", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec = cmp.Or(q.spec, `{"func":"pleg.(*GenericPLEG).Relist","state":"chan send"}`)
		q.wanted = "at least 1 goroutine [chan send] in pleg.(*GenericPLEG).Relist in one dump"
	})
}

func TestGoroutinesUnreadable(t *testing.T) {
	ask(t, question{
		kind: "goroutines", spec: `{"func":"f","state":"chan send"}`, scope: check.Scope{Arm: arm, Phase: check.Fault},
		fill: func(tr *trial) {
			tr.phases()
			_, err := tr.w.Write(bundle.Meta{Kind: bundle.Goroutines2, Arm: arm, Time: tr.at(100)}, "txt", strings.NewReader("<html>Bad Gateway</html>\n"))
			tr.must(err)
		},
		met: check.Unknown, seen: "reading artifacts/00001-goroutines.debug2-vulnerable.txt:", wanted: "in one dump",
	})
}

// A wrong fix of another shape: it waits in a select that can't go on either, in a function that Relist calls, or for a lock.
func TestGoroutinesBlockedInAnyWay(t *testing.T) {
	const deep = `,"depth":"any","state":"blocked","without":["google.golang.org/grpc"]`
	persist := `{"func":"pleg.(*GenericPLEG).Relist","dumps":3,"lastAfter":"60s","persist":true` + deep + `}`
	inARow := `{"func":"pleg.(*GenericPLEG).Relist","span":"30s"` + deep + `}`
	skipping := `{"func":"pleg.(*GenericPLEG).Relist","since":` + skips + deep + `}`
	all := func(name string) func(*trial) { return dumps(arm, 300, name, 320, name, 360, name) }
	fault := check.Scope{Arm: arm, Phase: check.Fault}
	three := times(3, bundle.Goroutines2)
	questions := []question{
		{name: "in a function that it calls", spec: persist, fill: all("helper"), met: check.True, seen: "3 of 3 dumps show it", evidence: three, detail: "pleg.(*GenericPLEG).send"},
		{
			name: "waiting for the runtime is another illness", spec: persist, fill: all("busy"), met: check.False, seen: "0 of 3 dumps show it", evidence: three,
			differs: []string{"but [select] in google.golang.org/grpc", "but [select]", "but [select]"},
		},
		{
			name: "a hard loop is not blocked", spec: persist, fill: all("blocked=running"), met: check.False, seen: "0 of 3", evidence: three,
			differs: []string{"[running]", "[running]", "[running]"},
		},
		{
			name: "nor is the network", spec: persist, fill: all("blocked=IO wait"), met: check.False, seen: "0 of 3", evidence: three,
			differs: []string{"[IO wait]", "[IO wait]", "[IO wait]"},
		},
		{
			name: "in a row for long enough, and then on", spec: inARow, scope: fault, fill: dumps(arm, 100, "blocked=select", 131, "helper", 141, "idle", 151, "blocked"),
			met: check.True, seen: "3 of 4 dumps show it, the last 1m51s after fault began, in a row over 31s", evidence: times(4, bundle.Goroutines2), detail: "[chan send",
		},
		{
			name: "a hard loop goes on no more", spec: over(t, inARow, `{"state":"any"}`), scope: fault, fill: dumps(arm, 100, "blocked=runnable", 131, "blocked=running"),
			met: check.True, seen: "in a row over 31s", evidence: times(2, bundle.Goroutines2), detail: "[running",
		},
		{
			name: "in whatever state, but not in a call to the runtime", spec: over(t, inARow, `{"state":"any"}`), scope: fault, fill: dumps(arm, 100, "busy", 131, "busy"),
			met: check.False, seen: "0 of 2", evidence: times(2, bundle.Goroutines2), differs: []string{"grpc", "grpc"},
		},
		{
			name: "now and then is not in a row", spec: inARow, scope: fault, fill: dumps(arm, 100, "blocked", 120, "idle", 140, "blocked", 160, "busy"),
			met: check.False, seen: "in a row over 0s", evidence: times(4, bundle.Goroutines2), detail: "[chan send", differs: []string{"grpc"},
		},
		{
			name: "not watched for long enough", spec: inARow, scope: fault, fill: dumps(arm, 100, "blocked", 120, "blocked"),
			met: check.Unknown, seen: "in a row over 20s: they are too few to answer by", evidence: times(2, bundle.Goroutines2), detail: "[chan send",
		},
		{
			name: "before it skips its consumer", spec: skipping, scope: fault,
			fill: both(journal(arm, 0, 400, said{second: 200, message: skip("3m2s"), ident: ""}, said{second: 205, message: skip("3m7s"), ident: ""}), dumps(arm, 199, "blocked", 203, "idle")),
			met:  check.False, seen: "0 of 1 dumps show it", evidence: times(1, bundle.Goroutines2), wanted: "after 10:03:20",
		},
		{
			name: "while it skips its consumer", spec: skipping, scope: fault,
			fill: both(journal(arm, 0, 400, said{second: 200, message: skip("3m2s"), ident: ""}, said{second: 205, message: skip("3m7s"), ident: ""}), dumps(arm, 199, "idle", 203, "blocked=select")),
			met:  check.True, seen: "1 of 1 dumps show it", evidence: times(1, bundle.Goroutines2), detail: "[select", wanted: "after 10:03:20",
		},
		{
			name: "it never skipped", spec: skipping, scope: fault, fill: both(journal(arm, 0, 400), dumps(arm, 203, "blocked")),
			met: check.False, seen: "it never said so: no line like", evidence: []bundle.Kind{bundle.Journal},
		},
		{name: "a depth that is none", spec: `{"func":"f","depth":"2"}`, fill: dumps(arm), met: check.Unknown, seen: `depth is "2" (want top or any)`},
		{name: "without everything", spec: `{"func":"f","without":[""]}`, fill: dumps(arm), met: check.Unknown, seen: "without has an empty name"},
		{name: "both", spec: `{"func":"f","persist":true,"span":"1s"}`, fill: dumps(arm), met: check.Unknown, seen: "persist and span are both given"},
	}
	for _, state := range []string{"select", "select (no cases)", "chan receive", "chan send (nil chan)", "semacquire", "sync.Mutex.Lock", "sync.RWMutex.RLock",
		"sync.Cond.Wait", "sync.WaitGroup.Wait", "sleep"} {
		questions = append(questions, question{name: state, spec: persist, fill: all("blocked=" + state), met: check.True, seen: "3 of 3 dumps show it",
			evidence: three, detail: "[" + state})
	}
	run(t, questions, func(q *question) {
		q.kind = "goroutines"
		if q.scope.Arm == "" {
			q.scope = check.Scope{Arm: arm, Phase: check.Recovery}
		}
		q.wanted = cmp.Or(q.wanted, "goroutine [")
	})
}

// With same it takes the same goroutines each time; with under, another function on their stack.
func TestGoroutinesAreTheSame(t *testing.T) {
	of := func(second int, ids ...int) func(*trial) {
		return func(tr *trial) {
			tr.t.Helper()
			text := ""
			for _, id := range ids {
				text += fmt.Sprintf("goroutine %d [select, 2 minutes]:\nnet/http.(*persistConn).roundTrip(0x1)\n\t/x.go:1 +0x1\n"+
					"k8s.io/cloud-provider/controllers/service.(*Controller).serviceWorker(0x1)\n\t/y.go:2 +0x1\n\n", id)
			}
			_, err := tr.w.Write(bundle.Meta{Kind: bundle.Goroutines2, Arm: arm, Time: tr.at(float64(second))}, "txt", strings.NewReader(text))
			tr.must(err)
		}
	}
	all := func(list ...func(*trial)) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			for _, one := range list {
				one(tr)
			}
		}
	}
	const spec = `{"func":"net/http.(*persistConn).roundTrip","under":"service.(*Controller).serviceWorker","state":"select","count":2,"dumps":2,"persist":true,"same":true}`
	run(t, []question{
		{
			name: "the same", spec: spec, fill: all(of(300, 7, 8, 9), of(320, 8, 7, 11)), met: check.True,
			seen:     "2 of 2 dumps show it, the last 25s after recovery began; 2 goroutines are in all of them: [8 7]",
			evidence: times(2, bundle.Goroutines2), detail: "serviceWorker",
		},
		{
			name: "as many, but others", spec: spec, fill: all(of(300, 7, 8), of(320, 8, 9)), met: check.False,
			seen: "1 of 2 dumps show it, the last 25s after recovery began; 1 goroutines are in all of them: [8]", evidence: times(2, bundle.Goroutines2),
			detail: "serviceWorker", differs: []string{"10:05:20: 1 of those there are the same as before"},
		},
		{
			name: "under another function", spec: strings.Replace(spec, "serviceWorker", "nodeWorker", 1),
			fill: all(of(300, 7, 8), of(320, 7, 8)), met: check.False, seen: "0 of 2 dumps show it", evidence: times(2, bundle.Goroutines2),
			differs: []string{"10:05:00: in that function", "10:05:20: in that function"},
		},
	}, func(q *question) {
		q.kind, q.scope, q.wanted = "goroutines", check.Scope{Arm: arm, Phase: check.Recovery}, "2 goroutine [select] in net/http"
	})
}

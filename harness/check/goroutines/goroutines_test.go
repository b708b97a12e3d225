package goroutines_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestGoroutinesPersist(t *testing.T) {
	checktest.Run(t, []checktest.Question{
		{
			Name: "blocked in every dump", Fill: checktest.Dumps(checktest.Arm, 300, "blocked", 320, "blocked", 360, "blocked"),
			Met: check.True, Seen: "3 of 3 dumps show it, the last 1m5s after recovery began", Evidence: checktest.Times(3, bundle.Goroutines2),
			Detail: "generic.go:331",
		},
		{
			Name: "the function's name is compared without regard to case", Spec: `{"func":"pleg.(*GenericPLEG).relist"}`,
			Fill: checktest.Dumps(checktest.Arm, 300, "blocked", 320, "blocked", 360, "blocked"),
			Met:  check.True, Seen: "3 of 3", Evidence: checktest.Times(3, bundle.Goroutines2), Detail: "[chan send",
		},
		{
			Name: "one dump in which it went on", Fill: checktest.Dumps(checktest.Arm, 300, "blocked", 320, "busy", 360, "blocked"),
			Met: check.False, Seen: "2 of 3 dumps show it", Evidence: checktest.Times(3, bundle.Goroutines2), Detail: "[chan send",
			Differs: []string{"10:05:20: in that function, but [select] in google.golang.org/grpc/internal/transport.(*recvBufferReader).readClient"},
		},
		{
			Name: "busy all along is not stuck", Fill: checktest.Dumps(checktest.Arm, 300, "busy", 320, "busy", 340, "busy", 360, "busy", 380, "busy"),
			Met: check.False, Seen: "0 of 5 dumps show it", Evidence: checktest.Times(5, bundle.Goroutines2),
			Differs: []string{"10:05:00", "10:05:20", "… and 1 more", "10:06:00", "10:06:20"},
		},
		{
			Name: "idle", Fill: checktest.Dumps(checktest.Arm, 300, "idle", 320, "idle", 360, "idle"),
			Met: check.False, Seen: "0 of 3", Evidence: checktest.Times(3, bundle.Goroutines2),
		},
		{
			Name: "two dumps are too few", Fill: checktest.Dumps(checktest.Arm, 320, "blocked", 360, "blocked"),
			Met: check.Unknown, Code: check.TooFew, Seen: "2 of 2 dumps show it, the last 1m5s after recovery began: too few to answer by",
			Evidence: checktest.Times(2, bundle.Goroutines2), Detail: "[chan send",
		},
		{
			Name: "two idle dumps are too few for a no, too", Fill: checktest.Dumps(checktest.Arm, 320, "idle", 360, "idle"),
			Met: check.Unknown, Code: check.TooFew, Seen: "too few to answer by", Evidence: checktest.Times(2, bundle.Goroutines2),
		},
		{
			Name: "the last dump is too early", Fill: checktest.Dumps(checktest.Arm, 300, "blocked", 320, "blocked", 354, "blocked"),
			Met: check.Unknown, Seen: "the last 59s after recovery began: too few", Evidence: checktest.Times(3, bundle.Goroutines2), Detail: "[chan send",
		},
		{
			Name: "dumps of the fault and from after the end don't count",
			Fill: checktest.Dumps(checktest.Arm, 289, "blocked", 294, "blocked", 300, "blocked", 360, "blocked", 396, "blocked"),
			Met:  check.Unknown, Seen: "2 of 2", Evidence: checktest.Times(2, bundle.Goroutines2), Detail: "[chan send",
		},
		{
			Name: "the other arm's dumps don't count", Fill: checktest.Dumps(checktest.Other, 300, "blocked", 320, "blocked", 360, "blocked"),
			Met: check.Unknown, Seen: "0 of 0 dumps show it",
		},
		{
			Name: "shared dumps don't count", Fill: checktest.Dumps(bundle.Shared, 300, "blocked", 320, "blocked", 360, "blocked"),
			Met: check.Unknown, Seen: "0 of 0",
		},
		{
			Name: "a capture that failed is no dump", Fill: checktest.Dumps(checktest.Arm, 300, "blocked", 320, "failed", 360, "blocked"),
			Met: check.Unknown, Seen: "2 of 2", Evidence: checktest.Times(2, bundle.Goroutines2), Detail: "[chan send",
			Differs: []string{"the dump of 10:05:20 failed: connection refused"},
		},
		{
			Name: "with enough others, a capture that failed is only noted",
			Fill: checktest.Dumps(checktest.Arm, 300, "blocked", 310, "failed", 320, "blocked", 360, "blocked"),
			Met:  check.True, Seen: "3 of 3", Evidence: checktest.Times(3, bundle.Goroutines2), Detail: "[chan send", Differs: []string{"failed"},
		},
		{
			Name: "a cut dump in which it is missing", Fill: checktest.Dumps(checktest.Arm, 300, "blocked", 320, "~idle", 340, "blocked", 360, "blocked"),
			Met: check.Unknown, Code: check.Unreadable, Seen: "3 of 3 dumps show it, the last 1m5s after recovery began; artifacts/00002-goroutines.debug2-vulnerable.txt is cut short",
			Evidence: checktest.Times(3, bundle.Goroutines2), Detail: "[chan send",
		},
		{
			Name: "missing files", Fill: checktest.Dumps(checktest.Arm, 300, "blocked", 320, "blocked", 360, "blocked"), Damage: checktest.Remove(t, bundle.Goroutines2),
			Met: check.Unknown, Code: check.Unreadable, Seen: "0 of 0 dumps show it; the file artifacts/00003-goroutines.debug2-vulnerable.txt is missing",
		},
		{
			Name: "nothing was taken", Fill: checktest.Dumps(checktest.Arm), Met: check.Unknown, Seen: "0 of 0 dumps show it: too few",
		},
		{
			Name: "the phase never came", Fill: func(tr *checktest.Trial) { tr.Enter(0, check.Steady); tr.Enter(10, bundle.EndPhase) },
			Met: check.Unknown, Code: check.NoPhase, Seen: "the phase recovery never began",
		},
		{
			Name: "two are asked for in each", Spec: `{"count":2}`, Fill: checktest.Dumps(checktest.Arm, 300, "two", 320, "two", 360, "two"),
			Met: check.True, Seen: "3 of 3", Wanted: "at least 2 goroutine", Evidence: checktest.Times(3, bundle.Goroutines2), Detail: "[chan send",
		},
		{
			Name: "one is not two", Spec: `{"count":2}`, Fill: checktest.Dumps(checktest.Arm, 300, "two", 320, "blocked", 360, "two"),
			Met: check.False, Seen: "2 of 3", Evidence: checktest.Times(3, bundle.Goroutines2), Detail: "[chan send", Differs: []string{"[chan send]"},
		},
		{
			Name: "another function in that state is none", Spec: `{"func":"pleg.(*GenericPLEG).updateCache"}`,
			Fill: checktest.Dumps(checktest.Arm, 300, "blocked", 320, "blocked", 360, "blocked"),
			Met:  check.False, Seen: "0 of 3", Evidence: checktest.Times(3, bundle.Goroutines2),
		},
		{
			Name: "a function further down the stack is not the one that is blocked", Spec: `{"func":"wait.JitterUntil"}`,
			Fill: checktest.Dumps(checktest.Arm, 300, "blocked", 320, "blocked", 360, "blocked"),
			Met:  check.False, Seen: "0 of 3", Evidence: checktest.Times(3, bundle.Goroutines2),
			Differs: []string{"but [chan send]", "but [chan send]", "but [chan send]"},
		},
		{Name: "a count of 0 would be met by nothing", Spec: `{"count":0}`, Fill: checktest.Dumps(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: "count is 0 (want at least 1)"},
		{Name: "no dump at all would be enough", Spec: `{"dumps":0}`, Fill: checktest.Dumps(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: "dumps is 0 (want at least 1)"},
		{Name: "no function", Spec: `{"func":""}`, Fill: checktest.Dumps(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: "func is empty"},
		{Name: "no duration", Spec: `{"lastAfter":"1"}`, Fill: checktest.Dumps(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: `lastAfter is "1" (want a duration`},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "goroutines", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
		q.Spec = checktest.Over(t, `{"func":"pleg.(*GenericPLEG).Relist","state":"chan send","dumps":3,"lastAfter":"60s","persist":true}`, q.Spec)
		if q.Wanted == "" && q.Met != check.Unknown {
			q.Wanted = "in every one of at least 3 dumps, the last at least 60s into the phase"
		}
	})
}

func TestGoroutinesOnce(t *testing.T) {
	checktest.Run(t, []checktest.Question{
		{
			Name: "one dump is enough", Fill: checktest.Dumps(checktest.Arm, 60, "idle", 280, "blocked", 285, "busy"),
			Met: check.True, Seen: "1 of 3 dumps show it", Evidence: checktest.Times(3, bundle.Goroutines2), Detail: "[chan send",
			Differs: []string{"in that function, but [select]"},
		},
		{
			Name: "waiting for as long as the dump says", Spec: `{"func":"pleg.(*GenericPLEG).Relist","state":"chan send","waited":"3m"}`,
			Fill: checktest.Dumps(checktest.Arm, 280, "two"), Met: check.True, Seen: "1 of 1 dumps show it", Evidence: checktest.Times(1, bundle.Goroutines2), Detail: "[chan send",
		},
		{
			Name: "waiting for less, as far as the dump says", Spec: `{"func":"pleg.(*GenericPLEG).Relist","state":"chan send","waited":"50m"}`,
			Fill: checktest.Dumps(checktest.Arm, 280, "two"), Met: check.Unknown, Seen: "some show it, not for 50m as far as they say", Evidence: checktest.Times(1, bundle.Goroutines2),
			Differs: []string{"in that function, but [chan send]"},
		},
		{
			Name: "a cut dump that shows it", Fill: checktest.Dumps(checktest.Arm, 280, "two", 285, "~blocked"),
			Met: check.Unknown, Code: check.Unreadable, Seen: "is cut short", Evidence: checktest.Times(1, bundle.Goroutines2), Detail: "[chan send",
		},
		{
			Name: "none shows it", Fill: checktest.Dumps(checktest.Arm, 60, "idle", 280, "busy"),
			Met: check.False, Seen: "0 of 2", Evidence: checktest.Times(2, bundle.Goroutines2), Differs: []string{"in that function"},
		},
		{
			Name: "a capture failed that might have shown it", Fill: checktest.Dumps(checktest.Arm, 60, "idle", 280, "failed", 285, "idle"),
			Met: check.Unknown, Code: check.Unreadable, Seen: "; what those that failed would have shown isn't known",
			Evidence: checktest.Times(2, bundle.Goroutines2), Differs: []string{"the dump of 10:04:40 failed: connection refused"},
		},
		{Name: "all failed", Fill: checktest.Dumps(checktest.Arm, 60, "failed", 280, "failed"), Met: check.Unknown, Seen: "0 of 0 dumps show it: too few", Differs: []string{"failed", "failed"}},
		{
			Name: "blocked while the lift was under way is evidence of no phase", Fill: checktest.Dumps(checktest.Arm, 280, "idle", 292, "blocked"),
			Met: check.False, Seen: "0 of 1", Evidence: checktest.Times(1, bundle.Goroutines2),
		},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "goroutines", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec = cmp.Or(q.Spec, `{"func":"pleg.(*GenericPLEG).Relist","state":"chan send"}`)
		q.Wanted = "at least 1 goroutine [chan send] in pleg.(*GenericPLEG).Relist in one dump"
	})
}

func TestGoroutinesUnreadable(t *testing.T) {
	checktest.Open(t, checktest.Question{
		Kind: "goroutines", Spec: `{"func":"f","state":"chan send"}`, Scope: check.Scope{Arm: checktest.Arm, Phase: check.Fault},
		Fill: func(tr *checktest.Trial) {
			tr.Phases()
			_, err := tr.W.Write(bundle.Meta{Kind: bundle.Goroutines2, Arm: checktest.Arm, Time: tr.At(100)}, "txt", strings.NewReader("<html>Bad Gateway</html>\n"))
			tr.Must(err)
		},
		Met: check.Unknown, Seen: "reading artifacts/00001-goroutines.debug2-vulnerable.txt:", Wanted: "in one dump",
	})
}

// A wrong fix of another shape: it waits in a select that can't go on either, in a function that Relist calls, or for a
// lock.
func TestGoroutinesBlockedInAnyWay(t *testing.T) {
	const deep = `,"depth":"any","state":"blocked","without":["google.golang.org/grpc"]`
	persist := `{"func":"pleg.(*GenericPLEG).Relist","dumps":3,"lastAfter":"60s","persist":true` + deep + `}`
	inARow := `{"func":"pleg.(*GenericPLEG).Relist","span":"30s"` + deep + `}`
	skipping := `{"func":"pleg.(*GenericPLEG).Relist","since":` + checktest.Skips + deep + `}`
	all := func(name string) func(*checktest.Trial) {
		return checktest.Dumps(checktest.Arm, 300, name, 320, name, 360, name)
	}
	fault := check.Scope{Arm: checktest.Arm, Phase: check.Fault}
	three := checktest.Times(3, bundle.Goroutines2)
	questions := []checktest.Question{
		{Name: "in a function that it calls", Spec: persist, Fill: all("helper"), Met: check.True, Seen: "3 of 3 dumps show it", Evidence: three, Detail: "pleg.(*GenericPLEG).send"},
		{
			Name: "waiting for the runtime is another illness", Spec: persist, Fill: all("busy"), Met: check.False, Seen: "0 of 3 dumps show it", Evidence: three,
			Differs: []string{"but [select] in google.golang.org/grpc", "but [select]", "but [select]"},
		},
		{
			Name: "a hard loop is not blocked", Spec: persist, Fill: all("blocked=running"), Met: check.False, Seen: "0 of 3", Evidence: three,
			Differs: []string{"[running]", "[running]", "[running]"},
		},
		{
			Name: "nor is the network", Spec: persist, Fill: all("blocked=IO wait"), Met: check.False, Seen: "0 of 3", Evidence: three,
			Differs: []string{"[IO wait]", "[IO wait]", "[IO wait]"},
		},
		{
			Name: "in a row for long enough, and then on", Spec: inARow, Scope: fault, Fill: checktest.Dumps(checktest.Arm, 100, "blocked=select", 131, "helper", 141, "idle", 151, "blocked"),
			Met: check.True, Seen: "3 of 4 dumps show it, the last 1m51s after fault began, in a row over 31s", Evidence: checktest.Times(4, bundle.Goroutines2), Detail: "[chan send",
		},
		{
			Name: "a hard loop goes on no more", Spec: checktest.Over(t, inARow, `{"state":"any"}`), Scope: fault, Fill: checktest.Dumps(checktest.Arm, 100, "blocked=runnable", 131, "blocked=running"),
			Met: check.True, Seen: "in a row over 31s", Evidence: checktest.Times(2, bundle.Goroutines2), Detail: "[running",
		},
		{
			Name: "in whatever state, but not in a call to the runtime", Spec: checktest.Over(t, inARow, `{"state":"any"}`), Scope: fault, Fill: checktest.Dumps(checktest.Arm, 100, "busy", 131, "busy"),
			Met: check.False, Seen: "0 of 2", Evidence: checktest.Times(2, bundle.Goroutines2), Differs: []string{"grpc", "grpc"},
		},
		{
			Name: "now and then is not in a row", Spec: inARow, Scope: fault, Fill: checktest.Dumps(checktest.Arm, 100, "blocked", 120, "idle", 140, "blocked", 160, "busy"),
			Met: check.False, Seen: "in a row over 0s", Evidence: checktest.Times(4, bundle.Goroutines2), Detail: "[chan send", Differs: []string{"grpc"},
		},
		{
			Name: "for too short, but a capture failed before and after", Spec: inARow, Scope: fault,
			Fill: checktest.Dumps(checktest.Arm, 90, "idle", 95, "failed", 100, "blocked", 120, "blocked", 140, "failed", 150, "idle"),
			Met:  check.Unknown, Code: check.Unreadable, Seen: "in a row over 20s; what those that failed would have shown isn't known", Evidence: checktest.Times(4, bundle.Goroutines2), Detail: "[chan send",
			Differs: []string{"failed: connection refused", "failed: connection refused"},
		},
		{
			Name: "not watched for long enough", Spec: inARow, Scope: fault, Fill: checktest.Dumps(checktest.Arm, 100, "blocked", 120, "blocked"),
			Met: check.Unknown, Code: check.TooFew, Seen: "in a row over 20s: they are too few to answer by", Evidence: checktest.Times(2, bundle.Goroutines2), Detail: "[chan send",
		},
		{
			Name: "before it skips its consumer", Spec: skipping, Scope: fault,
			Fill: checktest.Both(checktest.Journal(checktest.Arm, 0, 400, checktest.Said{Second: 200, Message: checktest.LastSeenActive("3m2s"), Ident: ""}, checktest.Said{Second: 205, Message: checktest.LastSeenActive("3m7s"), Ident: ""}), checktest.Dumps(checktest.Arm, 199, "blocked", 203, "idle")),
			Met:  check.False, Seen: "0 of 1 dumps show it", Evidence: checktest.Times(1, bundle.Goroutines2), Wanted: "after 10:03:20",
		},
		{
			Name: "while it skips its consumer", Spec: skipping, Scope: fault,
			Fill: checktest.Both(checktest.Journal(checktest.Arm, 0, 400, checktest.Said{Second: 200, Message: checktest.LastSeenActive("3m2s"), Ident: ""}, checktest.Said{Second: 205, Message: checktest.LastSeenActive("3m7s"), Ident: ""}), checktest.Dumps(checktest.Arm, 199, "idle", 203, "blocked=select")),
			Met:  check.True, Seen: "1 of 1 dumps show it", Evidence: checktest.Times(1, bundle.Goroutines2), Detail: "[select", Wanted: "after 10:03:20",
		},
		{
			Name: "it never skipped", Spec: skipping, Scope: fault, Fill: checktest.Both(checktest.Journal(checktest.Arm, 0, 400), checktest.Dumps(checktest.Arm, 203, "blocked")),
			Met: check.False, Seen: "it never said so: no line like", Evidence: []bundle.Kind{bundle.Journal},
		},
		{Name: "a depth that is none", Spec: `{"func":"f","depth":"2"}`, Fill: checktest.Dumps(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: `depth is "2" (want top or any)`},
		{Name: "without everything", Spec: `{"func":"f","without":[""]}`, Fill: checktest.Dumps(checktest.Arm), Met: check.Unknown, Seen: "without has an empty name"},
		{Name: "both", Spec: `{"func":"f","persist":true,"span":"1s"}`, Fill: checktest.Dumps(checktest.Arm), Met: check.Unknown, Seen: "persist and span are both given"},
	}
	for _, state := range []string{"select", "select (no cases)", "chan receive", "chan send (nil chan)", "semacquire", "sync.Mutex.Lock", "sync.RWMutex.RLock",
		"sync.Cond.Wait", "sync.WaitGroup.Wait", "sleep"} {
		questions = append(questions, checktest.Question{Name: state, Spec: persist, Fill: all("blocked=" + state), Met: check.True, Seen: "3 of 3 dumps show it",
			Evidence: three, Detail: "[" + state})
	}
	checktest.Run(t, questions, func(q *checktest.Question) {
		q.Kind = "goroutines"
		if q.Scope.Arm == "" {
			q.Scope = check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
		}
		q.Wanted = cmp.Or(q.Wanted, "goroutine [")
	})
}

// With same it takes the same goroutines each time; with under, another function on their stack.
func TestGoroutinesAreTheSame(t *testing.T) {
	of := func(second int, ids ...int) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.T.Helper()
			text := ""
			for _, id := range ids {
				text += fmt.Sprintf("goroutine %d [select, 2 minutes]:\nnet/http.(*persistConn).roundTrip(0x1)\n\t/x.go:1 +0x1\n"+
					"k8s.io/cloud-provider/controllers/service.(*Controller).serviceWorker(0x1)\n\t/y.go:2 +0x1\n\n", id)
			}
			_, err := tr.W.Write(bundle.Meta{Kind: bundle.Goroutines2, Arm: checktest.Arm, Time: tr.At(float64(second))}, "txt", strings.NewReader(text))
			tr.Must(err)
		}
	}
	all := func(list ...func(*checktest.Trial)) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			for _, one := range list {
				one(tr)
			}
		}
	}
	const spec = `{"func":"net/http.(*persistConn).roundTrip","under":"service.(*Controller).serviceWorker","state":"select","count":2,"dumps":2,"persist":true,"same":true}`
	checktest.Run(t, []checktest.Question{
		{
			Name: "the same", Spec: spec, Fill: all(of(300, 7, 8, 9), of(320, 8, 7, 11)), Met: check.True,
			Seen:     "2 of 2 dumps show it, the last 25s after recovery began; 2 goroutines are in all of them: [8 7]",
			Evidence: checktest.Times(2, bundle.Goroutines2), Detail: "serviceWorker",
		},
		{
			Name: "as many, but others", Spec: spec, Fill: all(of(300, 7, 8), of(320, 8, 9)), Met: check.False,
			Seen: "1 of 2 dumps show it, the last 25s after recovery began; 1 goroutines are in all of them: [8]", Evidence: checktest.Times(2, bundle.Goroutines2),
			Detail: "serviceWorker", Differs: []string{"10:05:20: 1 of those there are the same as before"},
		},
		{
			Name: "under another function", Spec: strings.Replace(spec, "serviceWorker", "nodeWorker", 1),
			Fill: all(of(300, 7, 8), of(320, 7, 8)), Met: check.False, Seen: "0 of 2 dumps show it", Evidence: checktest.Times(2, bundle.Goroutines2),
			Differs: []string{"10:05:00: in that function", "10:05:20: in that function"},
		},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.Wanted = "goroutines", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}, "2 goroutine [select] in net/http"
	})
}

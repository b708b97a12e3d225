package kinds_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
	"github.com/kube-relapse/relapse/scenarios/apiserver-goroutine-leak/kinds"
)

func TestNothingStuck(t *testing.T) {
	// dumped is one process and its debug=2 dumps: of a shot, ids 101, 102, … are blocked in a send.
	dumped := func(shots ...checktest.Shot) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			tr.Process(checktest.Arm, 312, 0, 394)
			for _, s := range shots {
				if s.Lacks == "" {
					s.Lacks = "1" // this check reads no debug=1
				}
				tr.Shoot(checktest.Arm, s)
			}
		}
	}
	cut := func(s checktest.Shot) checktest.Shot { s.Lacks = "~2"; return s }
	four := []bundle.Kind{bundle.Goroutines2, bundle.Goroutines2, bundle.Goroutines2, bundle.Goroutines2}
	questions := []checktest.Question{
		{
			Name: "none is blocked", Fill: dumped(checktest.Leaks(25, 0), checktest.Leaks(300, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0)), Met: check.True, Evidence: four,
			Seen: "3 dumps, and 1 of the baseline; 0 goroutines stay blocked", Wanted: "no goroutine [chan send] in each of the last 3 dumps",
		},
		{
			Name: "what was blocked in the baseline is normal", Fill: dumped(checktest.Leaks(25, 2), checktest.Leaks(300, 2), checktest.Leaks(330, 2), checktest.Leaks(360, 2)), Met: check.True,
			Seen: "0 goroutines stay blocked", Evidence: four,
		},
		{
			Name: "two more than in the baseline", Fill: dumped(checktest.Leaks(25, 1), checktest.Leaks(300, 3), checktest.Leaks(330, 3), checktest.Leaks(360, 3)), Met: check.False,
			Seen: "2 goroutines stay blocked", Evidence: four, Detail: "registry.(*Store).DeleteCollection.func1",
		},
		{
			Name: "others in each dump are at work", Met: check.True, Evidence: four,
			Fill: dumped(checktest.Leaks(25, 0), checktest.Shot{Second: 300, Leaked: []int{7}}, checktest.Shot{Second: 330, Leaked: []int{8}}, checktest.Shot{Second: 360, Leaked: []int{9}}),
			Seen: "0 goroutines stay blocked",
		},
		{
			Name: "no dump of the baseline", Fill: dumped(checktest.Leaks(300, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0)), Met: check.Unknown,
			Seen: "3 dumps, and 0 of the baseline: nothing to compare with", Evidence: four[:3],
		},
		{
			Name: "the dump of the baseline failed", Fill: dumped(checktest.Shot{Second: 25, Lacks: "2"}, checktest.Leaks(300, 1), checktest.Leaks(330, 1), checktest.Leaks(360, 1)), Met: check.Unknown,
			Seen: "3 dumps, and 0 of the baseline: nothing to compare with", Evidence: four[:3], Differs: []string{"the dump of 10:00:25 failed: connection refused"},
		},
		{
			Name: "one dump of the baseline failed, and what was there may be in it", Met: check.Unknown, Evidence: four,
			Fill: dumped(checktest.Leaks(22, 0), checktest.Shot{Second: 30, Lacks: "2"}, checktest.Leaks(300, 1), checktest.Leaks(330, 1), checktest.Leaks(360, 1)),
			Seen: "1 goroutines stay blocked; one of the baseline is missing", Differs: []string{"the dump of 10:00:30 failed"}, Detail: "DeleteCollection.func1",
		},
		{
			Name: "one dump of the baseline failed, and there is nothing that could be in it", Met: check.True, Evidence: four,
			Fill: dumped(checktest.Leaks(22, 0), checktest.Shot{Second: 30, Lacks: "2"}, checktest.Leaks(300, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0)),
			Seen: "0 goroutines stay blocked", Differs: []string{"the dump of 10:00:30 failed"},
		},
		{
			Name: "a dump of the baseline is gone", Met: check.Unknown, Code: check.Unreadable, Seen: "is missing", Evidence: four[:3],
			Fill: dumped(checktest.Leaks(25, 1), checktest.Leaks(300, 1), checktest.Leaks(330, 1), checktest.Leaks(360, 1)), Damage: checktest.RemoveFirst(bundle.Goroutines2),
		},
		{
			Name: "a dump of the baseline is cut short", Met: check.Unknown, Code: check.Unreadable, Seen: "is cut short", Evidence: four[:3],
			Fill: dumped(cut(checktest.Leaks(25, 1)), checktest.Leaks(300, 1), checktest.Leaks(330, 1), checktest.Leaks(360, 1)),
		},
		{
			Name: "two dumps are too few", Fill: dumped(checktest.Leaks(25, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0)), Met: check.Unknown,
			Seen: "the last 1m5s after recovery began: too few to answer by", Evidence: four[:3],
		},
		{
			Name: "the last one is too early", Fill: dumped(checktest.Leaks(25, 0), checktest.Leaks(300, 0), checktest.Leaks(330, 0), checktest.Leaks(350, 0)), Met: check.Unknown,
			Seen: "the last 55s after recovery began: too few", Evidence: four,
		},
		{
			Name: "a cut dump could have shown more", Fill: dumped(checktest.Leaks(25, 0), cut(checktest.Leaks(300, 0)), checktest.Leaks(310, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0)),
			Met: check.Unknown, Code: check.Unreadable, Seen: "is cut short", Evidence: four,
		},
		{
			Name: "a restart takes away what was blocked", Met: check.Unknown, Code: check.OtherProcess, Seen: "the process was not the same any more at 10:02:00", Evidence: four,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				st := tr.Process(checktest.Arm, 312, 0, 118)
				tr.LookAt(st, 999, 120, 394)
				for _, s := range []checktest.Shot{checktest.Leaks(25, 0), checktest.Leaks(300, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0)} {
					s.Lacks = "1"
					tr.Shoot(checktest.Arm, s)
				}
			},
		},
		{
			Name: "the baseline has not ended", Met: check.Unknown, Code: check.NoPhase, Seen: "the baseline, which it is compared with, has not ended",
			Fill: func(tr *checktest.Trial) {
				tr.Enter(0, check.Steady)
				tr.Enter(20, check.Recovery)
				tr.Enter(30, bundle.EndPhase)
			},
		},
	}
	checktest.Run(t, questions, func(q *checktest.Question) {
		q.Kind, q.Spec = "nothingStuck", `{"states":["chan send"],"dumps":3,"lastAfter":"60s"}`
		q.Scope = check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
	})
}

// What failed calls leave behind is found in whichever function and wait state it is, as long as there is about as much
// of it as there were calls.
func TestNothingLeftByFailedCalls(t *testing.T) {
	const feed, watch = "k8s.io/apiserver/pkg/registry/generic/registry.feed", "k8s.io/apiserver/pkg/endpoints/handlers.(*WatchServer).HandleWS"
	// shots has the same other goroutines in the baseline, and the same in each of three late dumps.
	shots := func(was, is []checktest.SameStack) []checktest.Shot {
		return []checktest.Shot{{Second: 22, Others: was}, {Second: 35}, {Second: 300, Others: is}, {Second: 330, Others: is}, {Second: 360, Others: is}}
	}
	evidence := append(checktest.Times(5, bundle.Goroutines2), bundle.Logs, bundle.LoadSummary)
	watchers := func(n, first int) checktest.SameStack {
		return checktest.SameStack{N: n, In: watch, State: "select", First: first}
	}
	questions := []checktest.Question{
		{
			Name: "watches that clients opened anew, and two more of them", Met: check.True,
			Fill: cutShort(20, shots([]checktest.SameStack{watchers(40, 200)}, []checktest.SameStack{watchers(42, 900)})...),
			Seen: "20 calls failed, and 2 goroutines more than in the baseline stay, of fewer than 10, most of them, 2, in " + watch,
		},
		{
			Name: "as many as half of the calls", Met: check.False, Detail: feed,
			Fill: cutShort(20, shots([]checktest.SameStack{watchers(40, 200)}, []checktest.SameStack{watchers(40, 900), {N: 10, In: feed, State: "chan receive", First: 3000}})...),
			Seen: "10 goroutines more than in the baseline stay, of fewer than 10, most of them, 10, in " + feed + " (created by " + checktest.DeleteCollection + ")",
		},
		{
			Name: "one fewer than that", Met: check.True,
			Fill: cutShort(20, shots([]checktest.SameStack{watchers(40, 200)}, []checktest.SameStack{watchers(40, 900), {N: 9, In: feed, State: "chan receive", First: 3000}})...),
			Seen: "9 goroutines more than in the baseline stay, of fewer than 10, most of them, 9, in " + feed,
		},
		{
			Name: "hidden by watches that are gone", Met: check.False, Detail: feed,
			Fill: cutShort(20, shots([]checktest.SameStack{watchers(40, 200)}, []checktest.SameStack{watchers(20, 900), {N: 20, In: feed, State: "select", First: 3000}})...),
			Seen: "20 goroutines more than in the baseline stay, of fewer than 10, most of them, 20, in " + feed,
		},
		{
			Name: "in as many functions as there are calls", Met: check.False, Detail: feed,
			Fill: cutShort(20, shots(nil, []checktest.SameStack{{N: 5, In: feed + "1", State: "select", First: 3000}, {N: 5, In: feed + "2", State: "select", First: 3100}, {N: 5, In: feed + "3", State: "select", First: 3200}})...),
			Seen: "15 goroutines more than in the baseline stay, of fewer than 10, most of them, 5, in " + feed + "1",
		},
		{
			Name: "a client that lost its watches has half of them again", Met: check.True, Seen: "0 goroutines more than in the baseline stay",
			Fill: cutShort(20, shots([]checktest.SameStack{watchers(40, 200)}, []checktest.SameStack{watchers(20, 900)})...),
		},
		{
			Name: "others in each dump are at work", Met: check.True, Seen: "0 goroutines more than in the baseline stay, of fewer than 10",
			Fill: cutShort(20, shotOf(22, alike(20, feed, "select", 500)), checktest.Shot{Second: 35}, shotOf(300, alike(20, feed, "select", 3000)),
				shotOf(330, alike(20, feed, "select", 4000)), shotOf(360, alike(20, feed, "select", 5000))),
		},
		{
			Name: "now asleep, now awake, and never gone", Met: check.False, Detail: feed, Seen: "20 goroutines more than in the baseline stay, of fewer than 10, most of them, 20, in " + feed,
			Fill: cutShort(20, checktest.Shot{Second: 22}, checktest.Shot{Second: 35}, shotOf(300, alike(20, feed, "sleep", 3000)),
				shotOf(330, alike(20, "time.now()\n\t/time.go:1 +0x1\n"+feed, "runnable", 3000)), shotOf(360, alike(20, feed, "sleep", 3000))),
		},
		{
			Name: "few calls", Met: check.True, Seen: "4 calls failed, and 3 goroutines more than in the baseline stay, of fewer than 4, most",
			Fill: cutShort(4, shots(nil, alike(3, feed, "select", 3000))...),
		},
		{
			Name: "no call failed", Met: check.True, Seen: "0 calls failed, and 0 goroutines more than in the baseline stay, of fewer than 4",
			Fill: cutShort(0, shots(nil, nil)...),
		},
		{
			Name: "the log was cut", Met: check.Unknown, Code: check.Gap, Seen: "does not cover", Evidence: append(checktest.Times(5, bundle.Goroutines2), bundle.Logs),
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Process(checktest.Arm, 312, 0, 394)
				tr.Log(checktest.Arm, "kube-apiserver", 0, 200, oneLineEach(20)...)
				tr.Shoot(checktest.Arm, shots(nil, nil)...)
			},
		},
		{
			Name: "no log", Met: check.Unknown, Seen: "no log of kube-apiserver was recorded", Evidence: checktest.Times(5, bundle.Goroutines2),
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Process(checktest.Arm, 312, 0, 394)
				tr.Shoot(checktest.Arm, shots(nil, nil)...)
			},
		},
	}
	for _, state := range []string{
		"chan receive", "select", "semacquire", "sync.WaitGroup.Wait", "sync.Cond.Wait", "select (no cases)", "chan send (nil chan)", "chan receive (nil chan)", "IO wait", "sleep",
		"sync.Mutex.Lock", "runnable", "syscall",
	} {
		questions = append(questions, checktest.Question{
			Name: "twenty that were left in " + state, Met: check.False, Detail: "[" + state, Seen: "20 calls failed, and 20 goroutines more than in the baseline stay, of fewer than 10, most of them, 20, in " + feed,
			Fill: cutShort(20, shots([]checktest.SameStack{watchers(40, 200)}, []checktest.SameStack{watchers(40, 900), {N: 20, In: feed, State: state, First: 3000}})...),
		})
	}
	checktest.Run(t, questions, func(q *checktest.Question) {
		q.Kind, q.Scope = "nothingStuck", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
		q.Spec = `{"states":["chan send"],"dumps":3,"lastAfter":"60s","failed":{"component":"kube-apiserver","pattern":"Delete object in DeleteCollection failed"},"load":"deletes","share":"50%"}`
		q.Wanted = "fewer goroutines in each of the last 3 dumps that the baseline didn't have, in any state, than 50% of the failed calls"
		if q.Evidence == nil {
			q.Evidence = evidence
		}
	})
}

// alike are so many goroutines that wait in one function, with ids from first on.
func alike(n int, in, state string, first int) []checktest.SameStack {
	return []checktest.SameStack{{N: n, In: in, State: state, First: first}}
}

// shotOf is a pair of profiles with these goroutines beside the others.
func shotOf(second float64, others []checktest.SameStack) checktest.Shot {
	return checktest.Shot{Second: second, Others: others}
}

// oneLineEach are the lines of so many calls on one collection that were cut short, as upstream writes them.
func oneLineEach(calls int) []checktest.Said {
	var indexes []int
	for i := range calls {
		indexes = append(indexes, i)
	}
	return checktest.Failed(100, indexes...)
}

// cutShort is an API server so many of whose calls were cut short, by its log and by what the load saw.
func cutShort(calls int, shots ...checktest.Shot) func(*checktest.Trial) {
	return ended(oneLineEach(calls), checktest.Cut(calls, calls, calls, 919), shots...)
}

// ended is an API server with these lines and the round of its load that they are of.
func ended(lines []checktest.Said, round string, shots ...checktest.Shot) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		tr.Phases()
		tr.Process(checktest.Arm, 312, 0, 394)
		tr.Log(checktest.Arm, "kube-apiserver", 0, 394, lines...)
		tr.LoadedWith(checktest.Arm, "deletes", round)
		tr.Shoot(checktest.Arm, shots...)
	}
}

// manyLinesEach are lines of so many calls, each on a collection of its own, of which every one writes fifty.
func manyLinesEach(calls int) (out []checktest.Said) {
	for call := range calls {
		for item := range 50 {
			out = append(out, checktest.Said{Second: 100 + float64(item)/10, Message: fmt.Sprintf(
				`I1121 15:07:34.121212       1 store.go:1160] "Delete object in DeleteCollection failed" object="relapse-deletes-%d/item-%05d" err="context deadline exceeded"`, call, item)})
		}
	}
	return out
}

// leftBehind are shots in which so many goroutines of a function stay that none of the baseline's is like.
func leftBehind(n int, in, state string) []checktest.Shot {
	stay := alike(n, in, state, 3000)
	return []checktest.Shot{{Second: 22}, {Second: 35}, {Second: 300, Others: stay}, {Second: 330, Others: stay}, {Second: 360, Others: stay}}
}

// How many goroutines may stay hangs on how many calls failed, which many lines of one call don't raise.
func TestLinesAreNoCalls(t *testing.T) {
	const feed = "k8s.io/apiserver/pkg/registry/generic/registry.feed"
	byController := func(tr *checktest.Trial) {
		tr.Phases()
		tr.Process(checktest.Arm, 312, 0, 394)
		tr.Log(checktest.Arm, "kube-apiserver", 0, 394, manyLinesEach(12)...)
		_, err := tr.W.Write(bundle.Meta{Kind: bundle.LoadSummary, Arm: checktest.Arm, Time: tr.At(280)}, "json",
			strings.NewReader(`{"name":"deletes","way":"namespaceController","objects":1000,"rounds":[{"round":1,"start":"2026-03-01T10:00:45Z","calls":12}]}`))
		tr.Must(err)
		tr.Shoot(checktest.Arm, leftBehind(5, feed, "select")...)
	}
	checktest.Run(t, []checktest.Question{
		{
			Name: "fifty lines of each of twenty calls", Fill: ended(manyLinesEach(20), checktest.Cut(20, 20, 20, 919), leftBehind(20, feed, "select")...), Met: check.False, Detail: feed,
			Seen: "20 calls failed, and 20 goroutines more than in the baseline stay, of fewer than 10",
		},
		{
			Name: "fifty lines of one call", Fill: ended(manyLinesEach(1), checktest.Cut(1, 1, 1, 919), leftBehind(4, feed, "select")...), Met: check.Unknown,
			Seen: "1 to 20 calls failed, and 4 goroutines more than in the baseline stay, of fewer than 4 to 10, most of them, 4, in " + feed + " (created by " + checktest.DeleteCollection + "); how many calls failed is not known",
		},
		{
			Name: "more than all calls of the load explain", Fill: ended(manyLinesEach(1), checktest.Cut(1, 1, 1, 919), leftBehind(10, feed, "select")...), Met: check.False, Detail: feed,
			Seen: "1 to 20 calls failed, and 10 goroutines more",
		},
		{
			Name: "as few as any client adds", Fill: ended(manyLinesEach(1), checktest.Cut(1, 1, 1, 919), leftBehind(3, feed, "select")...), Met: check.True,
			Seen: "1 to 20 calls failed, and 3 goroutines more",
		},
		{
			Name: "collections that the namespace controller tries again and again", Fill: byController, Met: check.True,
			Seen: "12 to 600 calls failed, and 5 goroutines more than in the baseline stay, of fewer than 6 to 300",
		},
		{
			Name: "no record of the load", Met: check.Unknown, Seen: "no load deletes summed up what it did", Evidence: append(checktest.Times(5, bundle.Goroutines2), bundle.Logs),
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Process(checktest.Arm, 312, 0, 394)
				tr.Log(checktest.Arm, "kube-apiserver", 0, 394, manyLinesEach(20)...)
				tr.Shoot(checktest.Arm, leftBehind(0, feed, "select")...)
			},
		},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "nothingStuck", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
		q.Spec = `{"states":["chan send"],"dumps":3,"lastAfter":"60s","load":"deletes","failed":{"component":"kube-apiserver","pattern":"Delete object in DeleteCollection failed"},"share":"50%"}`
		if q.Evidence == nil {
			q.Evidence = append(checktest.Times(5, bundle.Goroutines2), bundle.Logs, bundle.LoadSummary)
		}
	})
}

// What the incident's own function made, or stands in, is never taken for noise.
func TestNothingOfTheIncidentsOwnIsTolerated(t *testing.T) {
	const feed = "k8s.io/apiserver/pkg/registry/generic/registry.feed"
	const made = "9 goroutines that registry.(*Store).DeleteCollection made or that are in it stay"
	in := func(n int, stack, state string) []checktest.Shot {
		shots := leftBehind(n, stack, state)
		for i := range shots {
			shots[i].MadeBy = "net/http.(*http2serverConn).processHeaders"
		}
		return shots
	}
	questions := []checktest.Question{
		{Name: "one of twenty", Fill: cutShort(20, leftBehind(1, feed, "select")...), Met: check.False, Detail: "created by " + checktest.DeleteCollection, Seen: "; 1 goroutines that registry.(*Store).DeleteCollection made"},
		{Name: "it stands in it", Fill: cutShort(20, in(2, "time.Sleep()\n\t/time.go:1 +0x1\n"+checktest.DeleteCollection+".func3", "sleep")...), Met: check.False, Detail: checktest.DeleteCollection + ".func3", Seen: "; 2 goroutines that"},
		{Name: "others are noise", Fill: cutShort(20, in(9, feed, "select")...), Met: check.True, Seen: "; 0 goroutines that registry.(*Store).DeleteCollection made or that are in it stay; 20 calls failed, and 9 goroutines more"},
		{
			Name: "the baseline had them", Met: check.True, Seen: "; 0 goroutines that",
			Fill: cutShort(20, shotOf(22, alike(2, feed, "select", 3000)), checktest.Shot{Second: 35}, leftBehind(2, feed, "select")[2], leftBehind(2, feed, "select")[3], leftBehind(2, feed, "select")[4]),
		},
		{
			Name: "those of calls that are served come and go", Met: check.True, Seen: "; 0 goroutines that",
			Fill: cutShort(20, checktest.Shot{Second: 22}, checktest.Shot{Second: 35}, leftBehind(2, feed, "select")[2], shotOf(330, alike(2, feed, "select", 4000)), checktest.Shot{Second: 360}),
		},
		{
			Name: "the state changes, and it stays", Met: check.False, Seen: "; 1 goroutines that", Detail: feed,
			Fill: cutShort(20, checktest.Shot{Second: 22}, checktest.Shot{Second: 35}, leftBehind(1, feed, "select")[2], shotOf(330, alike(1, feed, "sleep", 3000)), leftBehind(1, feed, "runnable")[4]),
		},
	}
	for _, state := range []string{"select", "chan receive", "sleep", "IO wait", "runnable", "sync.WaitGroup.Wait"} {
		questions = append(questions, checktest.Question{Name: "nine in " + state, Fill: cutShort(20, leftBehind(9, feed, state)...), Met: check.False, Seen: made, Detail: "[" + state})
	}
	checktest.Run(t, questions, func(q *checktest.Question) {
		q.Kind, q.Scope = "nothingStuck", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
		q.Spec = `{"states":["chan send"],"own":["registry.(*Store).DeleteCollection"],"dumps":3,"lastAfter":"60s","load":"deletes",` +
			`"failed":{"component":"kube-apiserver","pattern":"Delete object in DeleteCollection failed"},"share":"50%"}`
		q.Wanted = "none, in any state, that registry.(*Store).DeleteCollection made or that is in it"
		q.Evidence = append(checktest.Times(5, bundle.Goroutines2), bundle.Logs, bundle.LoadSummary)
	})
}

func TestNothingStuckRefuses(t *testing.T) {
	for _, tt := range []struct{ spec, want string }{
		{`{"dumps":3}`, "states is []"},
		{`{"states":[""],"dumps":3}`, `states is [""]`},
		{`{"states":["chan send"],"own":[""],"dumps":3}`, `own is [""]`},
		{`{"states":["chan send"],"dumps":1}`, "dumps is 1 (want at least 2"},
		{`{"states":["chan send"],"dumps":3,"lastAfter":"soon"}`, "lastAfter"},
		{`{"failed":{"component":"kube-apiserver","pattern":""},"share":"50%","dumps":3}`, "pattern is empty"},
		{`{"failed":{"component":"kube-apiserver","pattern":"x"},"share":"0.5","dumps":3}`, `share is "0.5" (want a share: 5%)`},
		{`{"failed":{"component":"kube-apiserver","pattern":"x"},"share":"0%","dumps":3}`, "share is 0% (want above 0% and up to 100%)"},
		{`{"states":["chan send"],"dumps":3,"load":"deletes"}`, `load is "deletes", and failed is missing`},
	} {
		c := &kinds.NothingStuck{}
		if err := json.Unmarshal([]byte(tt.spec), c); err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: the error is %v, want %q in it", tt.spec, err, tt.want)
		}
	}
}

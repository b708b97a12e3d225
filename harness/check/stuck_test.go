package check_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestNothingStuck(t *testing.T) {
	// dumped is one process and its debug=2 dumps: of a shot, ids 101, 102, … are blocked in a send.
	dumped := func(shots ...shot) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			tr.process(arm, 312, 0, 394)
			for _, s := range shots {
				if s.lacks == "" {
					s.lacks = "1" // this check reads no debug=1
				}
				tr.shoot(arm, s)
			}
		}
	}
	cut := func(s shot) shot { s.lacks = "~2"; return s }
	four := []bundle.Kind{bundle.Goroutines2, bundle.Goroutines2, bundle.Goroutines2, bundle.Goroutines2}
	questions := []question{
		{
			name: "none is blocked", fill: dumped(leaks(25, 0), leaks(300, 0), leaks(330, 0), leaks(360, 0)), met: check.True, evidence: four,
			seen: "3 dumps, and 1 of the baseline; 0 goroutines stay blocked", wanted: "no goroutine [chan send] in each of the last 3 dumps",
		},
		{
			name: "what was blocked in the baseline is normal", fill: dumped(leaks(25, 2), leaks(300, 2), leaks(330, 2), leaks(360, 2)), met: check.True,
			seen: "0 goroutines stay blocked", evidence: four,
		},
		{
			name: "two more than in the baseline", fill: dumped(leaks(25, 1), leaks(300, 3), leaks(330, 3), leaks(360, 3)), met: check.False,
			seen: "2 goroutines stay blocked", evidence: four, detail: "registry.(*Store).DeleteCollection.func1",
		},
		{
			name: "others in each dump are at work", met: check.True, evidence: four,
			fill: dumped(leaks(25, 0), shot{second: 300, leaked: []int{7}}, shot{second: 330, leaked: []int{8}}, shot{second: 360, leaked: []int{9}}),
			seen: "0 goroutines stay blocked",
		},
		{
			name: "no dump of the baseline", fill: dumped(leaks(300, 0), leaks(330, 0), leaks(360, 0)), met: check.Unknown,
			seen: "3 dumps, and 0 of the baseline: nothing to compare with", evidence: four[:3],
		},
		{
			name: "the dump of the baseline failed", fill: dumped(shot{second: 25, lacks: "2"}, leaks(300, 1), leaks(330, 1), leaks(360, 1)), met: check.Unknown,
			seen: "3 dumps, and 0 of the baseline: nothing to compare with", evidence: four[:3], differs: []string{"the dump of 10:00:25 failed: connection refused"},
		},
		{
			name: "one dump of the baseline failed, and what was there may be in it", met: check.Unknown, evidence: four,
			fill: dumped(leaks(22, 0), shot{second: 30, lacks: "2"}, leaks(300, 1), leaks(330, 1), leaks(360, 1)),
			seen: "1 goroutines stay blocked; one of the baseline is missing", differs: []string{"the dump of 10:00:30 failed"}, detail: "DeleteCollection.func1",
		},
		{
			name: "one dump of the baseline failed, and there is nothing that could be in it", met: check.True, evidence: four,
			fill: dumped(leaks(22, 0), shot{second: 30, lacks: "2"}, leaks(300, 0), leaks(330, 0), leaks(360, 0)),
			seen: "0 goroutines stay blocked", differs: []string{"the dump of 10:00:30 failed"},
		},
		{
			name: "a dump of the baseline is gone", met: check.Unknown, seen: "is missing", evidence: four[:3],
			fill: dumped(leaks(25, 1), leaks(300, 1), leaks(330, 1), leaks(360, 1)), damage: removeFirst(bundle.Goroutines2),
		},
		{
			name: "a dump of the baseline is cut short", met: check.Unknown, seen: "is cut short", evidence: four[:3],
			fill: dumped(cut(leaks(25, 1)), leaks(300, 1), leaks(330, 1), leaks(360, 1)),
		},
		{
			name: "two dumps are too few", fill: dumped(leaks(25, 0), leaks(330, 0), leaks(360, 0)), met: check.Unknown,
			seen: "the last 1m5s after recovery began: too few to answer by", evidence: four[:3],
		},
		{
			name: "the last one is too early", fill: dumped(leaks(25, 0), leaks(300, 0), leaks(330, 0), leaks(350, 0)), met: check.Unknown,
			seen: "the last 55s after recovery began: too few", evidence: four,
		},
		{
			name: "a cut dump could have shown more", fill: dumped(leaks(25, 0), cut(leaks(300, 0)), leaks(310, 0), leaks(330, 0), leaks(360, 0)),
			met: check.Unknown, seen: "is cut short", evidence: four,
		},
		{
			name: "a restart takes away what was blocked", met: check.Unknown, seen: "the process was not the same any more at 10:02:00", evidence: four,
			fill: func(tr *trial) {
				tr.phases()
				st := tr.process(arm, 312, 0, 118)
				tr.lookAt(st, 999, 120, 394)
				for _, s := range []shot{leaks(25, 0), leaks(300, 0), leaks(330, 0), leaks(360, 0)} {
					s.lacks = "1"
					tr.shoot(arm, s)
				}
			},
		},
		{
			name: "the baseline has not ended", met: check.Unknown, seen: "the baseline, which it is compared with, has not ended",
			fill: func(tr *trial) {
				tr.enter(0, check.Steady)
				tr.enter(20, check.Recovery)
				tr.enter(30, bundle.EndPhase)
			},
		},
	}
	run(t, questions, func(q *question) {
		q.kind, q.spec = "nothingStuck", `{"states":["chan send"],"dumps":3,"lastAfter":"60s"}`
		q.scope = check.Scope{Arm: arm, Phase: check.Recovery}
	})
}

// What failed calls leave behind is found in whichever function and wait state it is, as long as there is about as much of it as there were calls.
func TestNothingLeftByFailedCalls(t *testing.T) {
	const feed, watch = "k8s.io/apiserver/pkg/registry/generic/registry.feed", "k8s.io/apiserver/pkg/endpoints/handlers.(*WatchServer).HandleWS"
	// shots has the same other goroutines in the baseline, and the same in each of three late dumps.
	shots := func(was, is []sameStack) []shot {
		return []shot{{second: 22, others: was}, {second: 35}, {second: 300, others: is}, {second: 330, others: is}, {second: 360, others: is}}
	}
	evidence := append(times(5, bundle.Goroutines2), bundle.Logs, bundle.LoadSummary)
	watchers := func(n, first int) sameStack { return sameStack{n: n, in: watch, state: "select", first: first} }
	questions := []question{
		{
			name: "watches that clients opened anew, and two more of them", met: check.True,
			fill: cutShort(20, shots([]sameStack{watchers(40, 200)}, []sameStack{watchers(42, 900)})...),
			seen: "20 calls failed, and 2 goroutines more than in the baseline stay, of fewer than 10, most of them, 2, in " + watch,
		},
		{
			name: "as many as half of the calls", met: check.False, detail: feed,
			fill: cutShort(20, shots([]sameStack{watchers(40, 200)}, []sameStack{watchers(40, 900), {n: 10, in: feed, state: "chan receive", first: 3000}})...),
			seen: "10 goroutines more than in the baseline stay, of fewer than 10, most of them, 10, in " + feed + " (created by " + deleteCollection + ")",
		},
		{
			name: "one fewer than that", met: check.True,
			fill: cutShort(20, shots([]sameStack{watchers(40, 200)}, []sameStack{watchers(40, 900), {n: 9, in: feed, state: "chan receive", first: 3000}})...),
			seen: "9 goroutines more than in the baseline stay, of fewer than 10, most of them, 9, in " + feed,
		},
		{
			name: "hidden by watches that are gone", met: check.False, detail: feed,
			fill: cutShort(20, shots([]sameStack{watchers(40, 200)}, []sameStack{watchers(20, 900), {n: 20, in: feed, state: "select", first: 3000}})...),
			seen: "20 goroutines more than in the baseline stay, of fewer than 10, most of them, 20, in " + feed,
		},
		{
			name: "in as many functions as there are calls", met: check.False, detail: feed,
			fill: cutShort(20, shots(nil, []sameStack{{n: 5, in: feed + "1", state: "select", first: 3000}, {n: 5, in: feed + "2", state: "select", first: 3100}, {n: 5, in: feed + "3", state: "select", first: 3200}})...),
			seen: "15 goroutines more than in the baseline stay, of fewer than 10, most of them, 5, in " + feed + "1",
		},
		{
			name: "a client that lost its watches has half of them again", met: check.True, seen: "0 goroutines more than in the baseline stay",
			fill: cutShort(20, shots([]sameStack{watchers(40, 200)}, []sameStack{watchers(20, 900)})...),
		},
		{
			name: "others in each dump are at work", met: check.True, seen: "0 goroutines more than in the baseline stay, of fewer than 10",
			fill: cutShort(20, shot{second: 22, others: []sameStack{{n: 20, in: feed, state: "select", first: 500}}}, shot{second: 35}, shot{second: 300, others: []sameStack{{n: 20, in: feed, state: "select", first: 3000}}},
				shot{second: 330, others: []sameStack{{n: 20, in: feed, state: "select", first: 4000}}}, shot{second: 360, others: []sameStack{{n: 20, in: feed, state: "select", first: 5000}}}),
		},
		{
			name: "now asleep, now awake, and never gone", met: check.False, detail: feed, seen: "20 goroutines more than in the baseline stay, of fewer than 10, most of them, 20, in " + feed,
			fill: cutShort(20, shot{second: 22}, shot{second: 35}, shot{second: 300, others: []sameStack{{n: 20, in: feed, state: "sleep", first: 3000}}},
				shot{second: 330, others: []sameStack{{n: 20, in: "time.now()\n\t/time.go:1 +0x1\n" + feed, state: "runnable", first: 3000}}}, shot{second: 360, others: []sameStack{{n: 20, in: feed, state: "sleep", first: 3000}}}),
		},
		{
			name: "few calls", met: check.True, seen: "4 calls failed, and 3 goroutines more than in the baseline stay, of fewer than 4, most",
			fill: cutShort(4, shots(nil, []sameStack{{n: 3, in: feed, state: "select", first: 3000}})...),
		},
		{
			name: "no call failed", met: check.True, seen: "0 calls failed, and 0 goroutines more than in the baseline stay, of fewer than 4",
			fill: cutShort(0, shots(nil, nil)...),
		},
		{
			name: "the log was cut", met: check.Unknown, seen: "does not cover", evidence: append(times(5, bundle.Goroutines2), bundle.Logs),
			fill: func(tr *trial) {
				tr.phases()
				tr.process(arm, 312, 0, 394)
				tr.log(arm, "kube-apiserver", 0, 200, oneLineEach(20)...)
				tr.shoot(arm, shots(nil, nil)...)
			},
		},
		{
			name: "no log", met: check.Unknown, seen: "no log of kube-apiserver was recorded", evidence: times(5, bundle.Goroutines2),
			fill: func(tr *trial) { tr.phases(); tr.process(arm, 312, 0, 394); tr.shoot(arm, shots(nil, nil)...) },
		},
	}
	for _, state := range []string{
		"chan receive", "select", "semacquire", "sync.WaitGroup.Wait", "sync.Cond.Wait", "select (no cases)", "chan send (nil chan)", "chan receive (nil chan)", "IO wait", "sleep",
		"sync.Mutex.Lock", "runnable", "syscall",
	} {
		questions = append(questions, question{
			name: "twenty that were left in " + state, met: check.False, detail: "[" + state, seen: "20 calls failed, and 20 goroutines more than in the baseline stay, of fewer than 10, most of them, 20, in " + feed,
			fill: cutShort(20, shots([]sameStack{watchers(40, 200)}, []sameStack{watchers(40, 900), {n: 20, in: feed, state: state, first: 3000}})...),
		})
	}
	run(t, questions, func(q *question) {
		q.kind, q.scope = "nothingStuck", check.Scope{Arm: arm, Phase: check.Recovery}
		q.spec = `{"states":["chan send"],"dumps":3,"lastAfter":"60s","failed":{"component":"kube-apiserver","pattern":"Delete object in DeleteCollection failed"},"load":"deletes","share":"50%"}`
		q.wanted = "fewer goroutines in each of the last 3 dumps that the baseline didn't have, in any state, than 50% of the failed calls"
		if q.evidence == nil {
			q.evidence = evidence
		}
	})
}

// oneLineEach are the lines of so many calls on one collection that were cut short, as upstream writes them.
func oneLineEach(calls int) []said {
	var indexes []int
	for i := range calls {
		indexes = append(indexes, i)
	}
	return failed(100, indexes...)
}

// cutShort is an API server so many of whose calls were cut short, by its log and by what the load saw.
func cutShort(calls int, shots ...shot) func(*trial) {
	return ended(oneLineEach(calls), cut(calls, calls, calls, 919), shots...)
}

// ended is an API server with these lines and the round of its load that they are of.
func ended(lines []said, round string, shots ...shot) func(*trial) {
	return func(tr *trial) {
		tr.phases()
		tr.process(arm, 312, 0, 394)
		tr.log(arm, "kube-apiserver", 0, 394, lines...)
		tr.loadedWith(arm, "deletes", round)
		tr.shoot(arm, shots...)
	}
}

// manyLinesEach are lines of so many calls, each on a collection of its own, of which every one writes fifty.
func manyLinesEach(calls int) (out []said) {
	for call := range calls {
		for item := range 50 {
			out = append(out, said{second: 100 + float64(item)/10, message: fmt.Sprintf(
				`I1121 15:07:34.121212       1 store.go:1160] "Delete object in DeleteCollection failed" object="relapse-deletes-%d/item-%05d" err="context deadline exceeded"`, call, item)})
		}
	}
	return out
}

// leftBehind are shots in which so many goroutines of a function stay that none of the baseline's is like.
func leftBehind(n int, in, state string) []shot {
	stay := []sameStack{{n: n, in: in, state: state, first: 3000}}
	return []shot{{second: 22}, {second: 35}, {second: 300, others: stay}, {second: 330, others: stay}, {second: 360, others: stay}}
}

// How many goroutines may stay hangs on how many calls failed, which many lines of one call don't raise.
func TestLinesAreNoCalls(t *testing.T) {
	const feed = "k8s.io/apiserver/pkg/registry/generic/registry.feed"
	byController := func(tr *trial) {
		tr.phases()
		tr.process(arm, 312, 0, 394)
		tr.log(arm, "kube-apiserver", 0, 394, manyLinesEach(12)...)
		_, err := tr.w.Write(bundle.Meta{Kind: bundle.LoadSummary, Arm: arm, Time: tr.at(280)}, "json",
			strings.NewReader(`{"name":"deletes","way":"namespaceController","objects":1000,"rounds":[{"round":1,"start":"2026-03-01T10:00:45Z","calls":12}]}`))
		tr.must(err)
		tr.shoot(arm, leftBehind(5, feed, "select")...)
	}
	run(t, []question{
		{
			name: "fifty lines of each of twenty calls", fill: ended(manyLinesEach(20), cut(20, 20, 20, 919), leftBehind(20, feed, "select")...), met: check.False, detail: feed,
			seen: "20 calls failed, and 20 goroutines more than in the baseline stay, of fewer than 10",
		},
		{
			name: "fifty lines of one call", fill: ended(manyLinesEach(1), cut(1, 1, 1, 919), leftBehind(4, feed, "select")...), met: check.Unknown,
			seen: "1 to 20 calls failed, and 4 goroutines more than in the baseline stay, of fewer than 4 to 10, most of them, 4, in " + feed + " (created by " + deleteCollection + "); how many calls failed is not known",
		},
		{
			name: "more than all calls of the load explain", fill: ended(manyLinesEach(1), cut(1, 1, 1, 919), leftBehind(10, feed, "select")...), met: check.False, detail: feed,
			seen: "1 to 20 calls failed, and 10 goroutines more",
		},
		{
			name: "as few as any client adds", fill: ended(manyLinesEach(1), cut(1, 1, 1, 919), leftBehind(3, feed, "select")...), met: check.True,
			seen: "1 to 20 calls failed, and 3 goroutines more",
		},
		{
			name: "collections that the namespace controller tries again and again", fill: byController, met: check.True,
			seen: "12 to 600 calls failed, and 5 goroutines more than in the baseline stay, of fewer than 6 to 300",
		},
		{
			name: "no record of the load", met: check.Unknown, seen: "no load deletes summed up what it did", evidence: append(times(5, bundle.Goroutines2), bundle.Logs),
			fill: func(tr *trial) {
				tr.phases()
				tr.process(arm, 312, 0, 394)
				tr.log(arm, "kube-apiserver", 0, 394, manyLinesEach(20)...)
				tr.shoot(arm, leftBehind(0, feed, "select")...)
			},
		},
	}, func(q *question) {
		q.kind, q.scope = "nothingStuck", check.Scope{Arm: arm, Phase: check.Recovery}
		q.spec = `{"states":["chan send"],"dumps":3,"lastAfter":"60s","load":"deletes","failed":{"component":"kube-apiserver","pattern":"Delete object in DeleteCollection failed"},"share":"50%"}`
		if q.evidence == nil {
			q.evidence = append(times(5, bundle.Goroutines2), bundle.Logs, bundle.LoadSummary)
		}
	})
}

// What the incident's own function made, or stands in, is never taken for noise.
func TestNothingOfTheIncidentsOwnIsTolerated(t *testing.T) {
	const feed = "k8s.io/apiserver/pkg/registry/generic/registry.feed"
	const made = "9 goroutines that registry.(*Store).DeleteCollection made or that are in it stay"
	in := func(n int, stack, state string) []shot {
		shots := leftBehind(n, stack, state)
		for i := range shots {
			shots[i].madeBy = "net/http.(*http2serverConn).processHeaders"
		}
		return shots
	}
	questions := []question{
		{name: "one of twenty", fill: cutShort(20, leftBehind(1, feed, "select")...), met: check.False, detail: "created by " + deleteCollection, seen: "; 1 goroutines that registry.(*Store).DeleteCollection made"},
		{name: "it stands in it", fill: cutShort(20, in(2, "time.Sleep()\n\t/time.go:1 +0x1\n"+deleteCollection+".func3", "sleep")...), met: check.False, detail: deleteCollection + ".func3", seen: "; 2 goroutines that"},
		{name: "others are noise", fill: cutShort(20, in(9, feed, "select")...), met: check.True, seen: "; 0 goroutines that registry.(*Store).DeleteCollection made or that are in it stay; 20 calls failed, and 9 goroutines more"},
		{
			name: "the baseline had them", met: check.True, seen: "; 0 goroutines that",
			fill: cutShort(20, shot{second: 22, others: []sameStack{{n: 2, in: feed, state: "select", first: 3000}}}, shot{second: 35}, leftBehind(2, feed, "select")[2], leftBehind(2, feed, "select")[3], leftBehind(2, feed, "select")[4]),
		},
		{
			name: "those of calls that are served come and go", met: check.True, seen: "; 0 goroutines that",
			fill: cutShort(20, shot{second: 22}, shot{second: 35}, leftBehind(2, feed, "select")[2], shot{second: 330, others: []sameStack{{n: 2, in: feed, state: "select", first: 4000}}}, shot{second: 360}),
		},
		{
			name: "the state changes, and it stays", met: check.False, seen: "; 1 goroutines that", detail: feed,
			fill: cutShort(20, shot{second: 22}, shot{second: 35}, leftBehind(1, feed, "select")[2], shot{second: 330, others: []sameStack{{n: 1, in: feed, state: "sleep", first: 3000}}}, leftBehind(1, feed, "runnable")[4]),
		},
	}
	for _, state := range []string{"select", "chan receive", "sleep", "IO wait", "runnable", "sync.WaitGroup.Wait"} {
		questions = append(questions, question{name: "nine in " + state, fill: cutShort(20, leftBehind(9, feed, state)...), met: check.False, seen: made, detail: "[" + state})
	}
	run(t, questions, func(q *question) {
		q.kind, q.scope = "nothingStuck", check.Scope{Arm: arm, Phase: check.Recovery}
		q.spec = `{"states":["chan send"],"own":["registry.(*Store).DeleteCollection"],"dumps":3,"lastAfter":"60s","load":"deletes",` +
			`"failed":{"component":"kube-apiserver","pattern":"Delete object in DeleteCollection failed"},"share":"50%"}`
		q.wanted = "none, in any state, that registry.(*Store).DeleteCollection made or that is in it"
		q.evidence = append(times(5, bundle.Goroutines2), bundle.Logs, bundle.LoadSummary)
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
		c := &check.NothingStuck{}
		if err := json.Unmarshal([]byte(tt.spec), c); err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: the error is %v, want %q in it", tt.spec, err, tt.want)
		}
	}
}

package kinds_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

const leakSpec = `{"func":"registry.(*Store).DeleteCollection","state":"chan send","inFlight":["restfulDeleteCollection"],"snapshots":3,"lastAfter":"60s"}`

const leakCalls = `{"load":"deletes","moreThan":256,"failed":{"component":"kube-apiserver","pattern":"delete object in DeleteCollection failed.*/item-(?P<index>[0-9]+)"}}`

func TestLeakedGoroutines(t *testing.T) {
	two := checktest.Failed(100, 33, 39)
	thrice := []checktest.Shot{checktest.Leaks(300, 2), checktest.Leaks(330, 2), checktest.Leaks(360, 2)}
	all := checktest.Pairs(3, bundle.LoadSummary, bundle.Logs)
	cut := func(s checktest.Shot, lacks string) checktest.Shot { s.Lacks = lacks; return s }
	with := func(s checktest.Shot, extra string) checktest.Shot { s.Extra = extra; return s }
	checktest.Run(t, []checktest.Question{
		{
			Name: "as many as the calls, for good", Fill: checktest.Apiserver(checktest.Arm, two, thrice...), Met: check.True, Evidence: all,
			Seen: "2 such goroutines, the same in 3 quiet snapshots of 3, the last 1m5s after recovery began; " +
				"1 calls with a failed delete (2 at most), 1 of them with more than 256 items left (961..967 of 1001)",
			Wanted: "no more than the calls with a failed delete and more than 256 items left", Detail: "\nitems left: 961..967 of 1001",
		},
		{
			Name: "a line while the fault was being lifted counts", Fill: checktest.Apiserver(checktest.Arm, append(checktest.Failed(100, 33), checktest.Failed(292, 39)...), thrice...),
			Met: check.True, Seen: "1 calls with a failed delete (2 at most)", Evidence: all, Detail: "[chan send, 3 minutes]",
		},
		{
			Name: "a call with no more items left than the channel holds leaves nothing behind",
			Fill: checktest.Apiserver(checktest.Arm, checktest.Failed(100, 33, 39, 744), thrice...), Met: check.True, Evidence: all,
			Seen: "1 calls with a failed delete (3 at most), 0 of them with more than 256 items left (256..967 of 1001)", Detail: "items left: 256",
		},
		{
			Name: "one item more than it holds blocks", Fill: checktest.Apiserver(checktest.Arm, checktest.Failed(100, 33, 743), thrice...), Met: check.True, Evidence: all,
			Seen: "1 of them with more than 256 items left (257..967", Detail: "items left: 257",
		},
		{
			Name: "some of the calls", Fill: checktest.Apiserver(checktest.Arm, checktest.Failed(100, 33, 34, 39), thrice...), Met: check.True, Evidence: all,
			Seen: "1 calls with a failed delete (3 at most)", Detail: "items left",
		},
		{
			Name: "one call in ten", Fill: cutShort(20, thrice...), Met: check.True, Evidence: all, Detail: "items left: 981..1000 of 1001",
			Seen: "2 such goroutines, the same in 3 quiet snapshots of 3, the last 1m5s after recovery began; 1 calls with a failed delete (20 at most)",
		},
		{
			Name: "more lines than the load made calls", Fill: ended(manyLinesEach(1), checktest.Succeeded(0, 20, 919), checktest.Leaks(300, 21), checktest.Leaks(330, 21), checktest.Leaks(360, 21)), Met: check.Unknown,
			Evidence: all, Seen: "the numbers differ, 21 goroutines and 20 such calls", Detail: "items left",
		},
		{
			Name: "more than the calls", Fill: checktest.Apiserver(checktest.Arm, checktest.Failed(100, 33), thrice...), Met: check.Unknown, Evidence: all,
			Seen: "the numbers differ, 2 goroutines and 1 such calls", Detail: "items left",
		},
		{
			Name: "no line at all", Fill: checktest.Apiserver(checktest.Arm, nil, thrice...), Met: check.Unknown, Evidence: all,
			Seen: "0 calls with a failed delete: the numbers differ, 2 goroutines and 0 such calls", Detail: "chan send",
		},
		{
			Name: "a line from before the fault is of another call", Fill: checktest.Apiserver(checktest.Arm, append(checktest.Failed(30, 12), checktest.Failed(100, 33)...), thrice...),
			Met: check.Unknown, Seen: "1 calls", Evidence: all, Detail: "chan send",
		},
		{
			Name: "a line about something that the load didn't make", Fill: checktest.Apiserver(checktest.Arm, checktest.Failed(100, 33, 1000), thrice...),
			Met: check.Unknown, Seen: `a line of 10:01:41 names object "01000", and load deletes made 1000`, Evidence: all, Detail: "chan send",
		},
		{
			Name: "a log with a gap", Met: check.Unknown, Code: check.Gap, Seen: "does not cover 10:00:40.0 to 10:06:35.0", Evidence: all, Detail: "chan send",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Process(checktest.Arm, 312, 0, 394)
				tr.Log(checktest.Arm, "kube-apiserver", 0, 394, two...).Gap(tr.At(110), tr.At(125), "the file was gone")
				tr.Loaded(checktest.Arm, "deletes", 1000)
				tr.Shoot(checktest.Arm, thrice...)
			},
		},
		{
			Name: "another component's log, another load", Met: check.Unknown, Evidence: checktest.Pairs(3), Detail: "chan send",
			Seen: "no load deletes summed up what it did",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Process(checktest.Arm, 312, 0, 394)
				tr.Log(checktest.Arm, "etcd", 0, 394, two...)
				tr.Loaded(checktest.Arm, "others", 1000)
				tr.Shoot(checktest.Arm, thrice...)
			},
		},
		{
			Name: "they come and go", Fill: checktest.Apiserver(checktest.Arm, two, checktest.Leaks(300, 2), checktest.Shot{Second: 330, Leaked: []int{103, 104}}, checktest.Leaks(360, 2)),
			Met: check.Unknown, Code: check.NotConclusive, Seen: "2 such goroutines in each of 3 quiet snapshots of 3, the last 1m5s after recovery began: they are not the same ones in each",
			Evidence: checktest.Pairs(3), Detail: "chan send",
		},
		{
			Name: "they grow in number", Fill: checktest.Apiserver(checktest.Arm, two, checktest.Leaks(300, 1), checktest.Leaks(330, 2), checktest.Leaks(360, 2)),
			Met: check.Unknown, Seen: "2 such goroutines in the last, 1 to 2 in 3 quiet snapshots", Evidence: checktest.Pairs(3), Detail: "chan send",
		},
		{
			Name: "two snapshots are too few", Fill: checktest.Apiserver(checktest.Arm, two, checktest.Leaks(330, 2), checktest.Leaks(360, 2)),
			Met: check.Unknown, Code: check.TooFew, Seen: "the same in 2 quiet snapshots of 2, the last 1m5s after recovery began: too few to answer by", Evidence: checktest.Pairs(2), Detail: "chan send",
		},
		{
			Name: "the last is too early", Fill: checktest.Apiserver(checktest.Arm, two, checktest.Leaks(300, 2), checktest.Leaks(330, 2), checktest.Leaks(354, 2)),
			Met: check.Unknown, Code: check.TooFew, Seen: "too few to answer by", Evidence: checktest.Pairs(3), Detail: "chan send",
		},
		{
			Name: "snapshots with a call in flight don't count", Met: check.Unknown, Detail: "chan send", Evidence: checktest.Pairs(4),
			Fill: checktest.Apiserver(checktest.Arm, two, checktest.Leaks(300, 2), with(checktest.Leaks(320, 2), "handler"), with(checktest.Leaks(340, 2), "worker"), checktest.Leaks(360, 2)),
			Seen: "the same in 2 quiet snapshots of 4", Differs: []string{"10:05:20: 2 blocked, and 1 goroutines serve calls in flight", "10:05:40: 2 blocked, and 1"},
		},
		{
			Name: "with enough quiet ones, those are only noted", Met: check.True, Detail: "chan send", Evidence: checktest.Pairs(5, bundle.LoadSummary, bundle.Logs),
			Fill: checktest.Apiserver(checktest.Arm, two, with(checktest.Leaks(296, 3), "handler"), checktest.Leaks(300, 2), checktest.Leaks(330, 2), with(checktest.Leaks(340, 2), "receiver"), checktest.Leaks(360, 2)),
			Seen: "the same in 3 quiet snapshots of 5", Differs: []string{"3 blocked, and 1", "2 blocked, and 1"},
		},
		{
			Name: "other requests may be in flight", Fill: checktest.Apiserver(checktest.Arm, two, with(checktest.Leaks(300, 2), "get"), checktest.Leaks(330, 2), checktest.Leaks(360, 2)),
			Met: check.True, Seen: "the same in 3 quiet snapshots of 3", Evidence: all, Detail: "chan send",
		},
		{
			Name: "debug=1 counts others", Met: check.Unknown, Evidence: checktest.Pairs(3), Detail: "chan send",
			Fill: checktest.Apiserver(checktest.Arm, two, checktest.Leaks(300, 2), checktest.Shot{Second: 330, Leaked: []int{101, 102}, Top: 1}, checktest.Leaks(360, 2)),
			Seen: "2 quiet snapshots of 3", Differs: []string{"10:05:30: 2 blocked by debug=2, 3 by debug=1"},
		},
		{
			Name: "half a pair is none", Met: check.Unknown, Evidence: checktest.Pairs(2), Detail: "chan send",
			Fill: checktest.Apiserver(checktest.Arm, two, checktest.Leaks(300, 2), cut(checktest.Leaks(330, 2), "1"), cut(checktest.Leaks(340, 2), "2"), checktest.Leaks(360, 2)),
			Seen: "the same in 2 quiet snapshots of 2", Differs: []string{"the debug=1 of 10:05:30 failed: connection refused", "the dump of 10:05:40 failed"},
		},
		{
			Name: "a cut dump could hide some", Fill: checktest.Apiserver(checktest.Arm, two, append(thrice, cut(checktest.Leaks(370, 2), "~2"))...),
			Met: check.Unknown, Code: check.Unreadable, Seen: "is cut short", Evidence: checktest.Pairs(3),
		},
		{
			Name: "missing files", Fill: checktest.Apiserver(checktest.Arm, two, thrice...), Damage: checktest.Remove(t, bundle.Goroutines1),
			Met: check.Unknown, Seen: "0 quiet snapshots of 0; the file artifacts/",
		},
		{
			Name: "none was left", Fill: checktest.Apiserver(checktest.Arm, two, checktest.Leaks(300, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0)),
			Met: check.False, Seen: "no such goroutine in 3 quiet snapshots of 3, the last 1m5s after recovery began", Evidence: checktest.Pairs(3),
		},
		{
			Name: "too few to say that none was left", Fill: checktest.Apiserver(checktest.Arm, two, checktest.Leaks(330, 0), checktest.Leaks(360, 0)),
			Met: check.Unknown, Code: check.TooFew, Seen: "too few to answer by", Evidence: checktest.Pairs(2),
		},
		{
			Name: "they went away by themselves", Fill: checktest.Apiserver(checktest.Arm, two, checktest.Leaks(300, 2), checktest.Leaks(320, 0), checktest.Leaks(340, 0), checktest.Leaks(360, 0)),
			Met: check.False, Seen: "0 such goroutines in the last, 0 to 2 in 4 quiet snapshots", Evidence: checktest.Pairs(4),
		},
		{
			Name: "a restart took them away", Met: check.Unknown, Code: check.OtherProcess, Evidence: checktest.Pairs(3), Seen: "the process was not the same any more at 10:04:10",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.LookAt(tr.Process(checktest.Arm, 312, 0, 248), 400, 250, 394)
				tr.Shoot(checktest.Arm, checktest.Leaks(300, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0))
			},
		},
		{
			Name: "nobody looked which process it was", Met: check.Unknown, Code: check.NotRecorded, Evidence: checktest.Pairs(3), Seen: "no identity was recorded for vulnerable",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Shoot(checktest.Arm, checktest.Leaks(300, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0))
			},
		},
		{
			Name: "the other arm's goroutines", Fill: checktest.Apiserver(checktest.Other, two, thrice...), Met: check.Unknown,
			Seen: "0 quiet snapshots of 0; no identity was recorded for vulnerable",
		},
		{
			Name: "those of the fault don't count", Fill: checktest.Apiserver(checktest.Arm, two, checktest.Leaks(200, 2), checktest.Leaks(250, 2), checktest.Leaks(291, 2)),
			Met: check.Unknown, Seen: "0 quiet snapshots of 0: nothing to answer by",
		},
		{Name: "no function", Spec: `{"func":""}`, Fill: checktest.Apiserver(checktest.Arm, nil), Met: check.Unknown, Code: check.BadCheck, Seen: "func is empty"},
		{Name: "no state", Spec: `{"state":""}`, Fill: checktest.Apiserver(checktest.Arm, nil), Met: check.Unknown, Code: check.BadCheck, Seen: "state is empty"},
		{Name: "no load", Spec: `{"load":""}`, Fill: checktest.Apiserver(checktest.Arm, nil), Met: check.Unknown, Code: check.BadCheck, Seen: "load is empty"},
		{Name: "no number in the line", Spec: `{"failed":{"component":"c","pattern":"failed"}}`, Fill: checktest.Apiserver(checktest.Arm, nil), Met: check.Unknown, Seen: "failed.pattern has no group index"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.Spec = "leakedGoroutines", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}, checktest.Over(t, checktest.Over(t, leakSpec, leakCalls), q.Spec)
	})
}

// Before any fault it only has to be shown that none is there yet.
func TestLeakedGoroutinesInBaseline(t *testing.T) {
	checktest.Run(t, []checktest.Question{
		{
			Name: "one quiet snapshot", Fill: checktest.Apiserver(checktest.Arm, checktest.Failed(100, 33), checktest.Leaks(30, 0), checktest.Leaks(300, 1), checktest.Leaks(330, 1), checktest.Leaks(360, 1)),
			Met: check.False, Seen: "no such goroutine in 1 quiet snapshots of 1, the last 10s after baseline began", Evidence: checktest.Pairs(1),
		},
		{
			Name: "there already", Fill: checktest.Apiserver(checktest.Arm, checktest.Failed(100, 33), checktest.Leaks(25, 1), checktest.Leaks(30, 1), checktest.Leaks(38, 1)),
			Met: check.Unknown, Seen: "they are there before any fault", Evidence: checktest.Pairs(3), Detail: "chan send",
		},
		{
			Name: "a call in flight is no quiet snapshot", Fill: checktest.Apiserver(checktest.Arm, nil, checktest.Shot{Second: 30, Leaked: []int{5}, Extra: "handler"}),
			Met: check.Unknown, Seen: "0 quiet snapshots of 1: nothing to answer by", Evidence: checktest.Pairs(1), Differs: []string{"1 blocked, and 1 goroutines serve"},
		},
		{Name: "no snapshot", Fill: checktest.Apiserver(checktest.Arm, nil), Met: check.Unknown, Seen: "nothing to answer by"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.Spec = "leakedGoroutines", check.Scope{Arm: checktest.Arm, Phase: check.Baseline}, checktest.Over(t, leakSpec, leakCalls)
	})
}

func TestNoLeakedGoroutines(t *testing.T) {
	checktest.Run(t, []checktest.Question{
		{
			Name: "none", Fill: checktest.Apiserver(checktest.Arm, nil, checktest.Leaks(300, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0)), Met: check.True, Evidence: checktest.Pairs(3),
			Seen: "no such goroutine in 3 quiet snapshots of 3, the last 1m5s", Wanted: "no goroutine [chan send] in registry.(*Store).DeleteCollection in at least 3 quiet snapshots",
		},
		{Name: "none, whatever the calls", Spec: leakCalls, Fill: checktest.Apiserver(checktest.Arm, checktest.Failed(100, 33), checktest.Leaks(300, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0)), Met: check.True, Seen: "no such", Evidence: checktest.Pairs(3)},
		{Name: "one", Fill: checktest.Apiserver(checktest.Arm, nil, checktest.Leaks(300, 1)), Met: check.False, Seen: "1 such goroutines", Evidence: checktest.Pairs(1), Detail: "store.go:1132"},
		{Name: "too few", Fill: checktest.Apiserver(checktest.Arm, nil, checktest.Leaks(330, 0), checktest.Leaks(360, 0)), Met: check.Unknown, Code: check.TooFew, Seen: "too few to answer by", Evidence: checktest.Pairs(2)},
		{
			Name: "those of a call in flight", Fill: checktest.Apiserver(checktest.Arm, nil, checktest.Leaks(300, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0), checktest.Shot{Second: 370, Leaked: []int{5}, Extra: "handler"}),
			Met: check.True, Seen: "no such goroutine in 3 quiet snapshots of 4", Evidence: checktest.Pairs(4), Differs: []string{"1 blocked, and 1"},
		},
		{
			Name: "a restart is no cure", Met: check.Unknown, Code: check.OtherProcess, Evidence: checktest.Pairs(3), Seen: "the process was not the same any more at 10:05:10",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.LookAt(tr.Process(checktest.Arm, 312, 0, 308), 400, 310, 394)
				tr.Shoot(checktest.Arm, checktest.Leaks(320, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0))
			},
		},
		{
			Name: "nobody looked for a while, but it is the same one", Met: check.True, Evidence: checktest.Pairs(3), Seen: "no such goroutine",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				st := tr.Process(checktest.Arm, 312, 0, 198)
				tr.LookAt(st, 312, 230, 394)
				st.Gap(tr.At(200), tr.At(230), "exec failed")
				tr.Shoot(checktest.Arm, checktest.Leaks(320, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0))
			},
		},
		{
			Name: "nobody looked in the end", Met: check.Unknown, Code: check.Gap, Evidence: checktest.Pairs(3), Seen: "but nobody looked which process it was from 10:05:50.0 to 10:06:35.0",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Process(checktest.Arm, 312, 0, 350).Gap(tr.At(350), tr.At(394), "exec failed")
				tr.Shoot(checktest.Arm, checktest.Leaks(320, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0))
			},
		},
		{
			Name: "the fault began between two looks at the same process", Met: check.True, Evidence: checktest.Pairs(3), Seen: "no such goroutine",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.LookAt(tr.Process(checktest.Arm, 312, 0, 34), 312, 60, 394)
				tr.Shoot(checktest.Arm, checktest.Leaks(320, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0))
			},
		},
		{
			Name: "the fault began between looks at two processes", Met: check.Unknown, Code: check.Gap, Evidence: checktest.Pairs(3), Seen: "nobody looked which process it was from 10:00:40.0 to 10:01:00.0",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.LookAt(tr.Process(checktest.Arm, 312, 0, 34), 400, 60, 394)
				tr.Shoot(checktest.Arm, checktest.Leaks(320, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0))
			},
		},
		{
			Name: "nobody looked in the beginning", Met: check.Unknown, Code: check.Gap, Evidence: checktest.Pairs(3), Seen: "nobody looked which process it was from 10:00:40.0 to 10:04:20.0",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Process(checktest.Arm, 312, 260, 394)
				tr.Shoot(checktest.Arm, checktest.Leaks(320, 0), checktest.Leaks(330, 0), checktest.Leaks(360, 0))
			},
		},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.Spec = "leakedGoroutines", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}, checktest.Over(t, checktest.Over(t, leakSpec, `{"none":true}`), q.Spec)
	})
}

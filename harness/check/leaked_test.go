package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

const leakSpec = `{"func":"registry.(*Store).DeleteCollection","state":"chan send","inFlight":["restfulDeleteCollection"],"snapshots":3,"lastAfter":"60s"}`

const leakCalls = `{"load":"deletes","moreThan":256,"failed":{"component":"kube-apiserver","pattern":"delete object in DeleteCollection failed.*/item-(?P<index>[0-9]+)"}}`

func TestLeakedGoroutines(t *testing.T) {
	two := failed(100, 33, 39)
	thrice := []shot{leaks(300, 2), leaks(330, 2), leaks(360, 2)}
	all := pairs(3, bundle.LoadSummary, bundle.Logs)
	cut := func(s shot, lacks string) shot { s.lacks = lacks; return s }
	with := func(s shot, extra string) shot { s.extra = extra; return s }
	run(t, []question{
		{
			name: "as many as the calls, for good", fill: apiserver(arm, two, thrice...), met: check.True, evidence: all,
			seen: "2 such goroutines, the same in 3 quiet snapshots of 3, the last 1m5s after recovery began; " +
				"1 calls with a failed delete (2 at most), 1 of them with more than 256 items left (961..967 of 1001)",
			wanted: "no more than the calls with a failed delete and more than 256 items left", detail: "\nitems left: 961..967 of 1001",
		},
		{
			name: "a line while the fault was being lifted counts", fill: apiserver(arm, append(failed(100, 33), failed(292, 39)...), thrice...),
			met: check.True, seen: "1 calls with a failed delete (2 at most)", evidence: all, detail: "[chan send, 3 minutes]",
		},
		{
			name: "a call with no more items left than the channel holds leaves nothing behind",
			fill: apiserver(arm, failed(100, 33, 39, 744), thrice...), met: check.True, evidence: all,
			seen: "1 calls with a failed delete (3 at most), 0 of them with more than 256 items left (256..967 of 1001)", detail: "items left: 256",
		},
		{
			name: "one item more than it holds blocks", fill: apiserver(arm, failed(100, 33, 743), thrice...), met: check.True, evidence: all,
			seen: "1 of them with more than 256 items left (257..967", detail: "items left: 257",
		},
		{
			name: "some of the calls", fill: apiserver(arm, failed(100, 33, 34, 39), thrice...), met: check.True, evidence: all,
			seen: "1 calls with a failed delete (3 at most)", detail: "items left",
		},
		{
			name: "one call in ten", fill: cutShort(20, thrice...), met: check.True, evidence: all, detail: "items left: 981..1000 of 1001",
			seen: "2 such goroutines, the same in 3 quiet snapshots of 3, the last 1m5s after recovery began; 1 calls with a failed delete (20 at most)",
		},
		{
			name: "more lines than the load made calls", fill: ended(manyLinesEach(1), succeeded(0, 20, 919), leaks(300, 21), leaks(330, 21), leaks(360, 21)), met: check.Unknown,
			evidence: all, seen: "the numbers differ, 21 goroutines and 20 such calls", detail: "items left",
		},
		{
			name: "more than the calls", fill: apiserver(arm, failed(100, 33), thrice...), met: check.Unknown, evidence: all,
			seen: "the numbers differ, 2 goroutines and 1 such calls", detail: "items left",
		},
		{
			name: "no line at all", fill: apiserver(arm, nil, thrice...), met: check.Unknown, evidence: all,
			seen: "0 calls with a failed delete: the numbers differ, 2 goroutines and 0 such calls", detail: "chan send",
		},
		{
			name: "a line from before the fault is of another call", fill: apiserver(arm, append(failed(30, 12), failed(100, 33)...), thrice...),
			met: check.Unknown, seen: "1 calls", evidence: all, detail: "chan send",
		},
		{
			name: "a line about something that the load didn't make", fill: apiserver(arm, failed(100, 33, 1000), thrice...),
			met: check.Unknown, seen: `a line of 10:01:41 names object "01000", and load deletes made 1000`, evidence: all, detail: "chan send",
		},
		{
			name: "a log with a gap", met: check.Unknown, seen: "does not cover 10:00:40.0 to 10:06:35.0", evidence: all, detail: "chan send",
			fill: func(tr *trial) {
				tr.phases()
				tr.process(arm, 312, 0, 394)
				tr.log(arm, "kube-apiserver", 0, 394, two...).Gap(tr.at(110), tr.at(125), "the file was gone")
				tr.loaded(arm, "deletes", 1000)
				tr.shoot(arm, thrice...)
			},
		},
		{
			name: "another component's log, another load", met: check.Unknown, evidence: pairs(3), detail: "chan send",
			seen: "no load deletes summed up what it did",
			fill: func(tr *trial) {
				tr.phases()
				tr.process(arm, 312, 0, 394)
				tr.log(arm, "etcd", 0, 394, two...)
				tr.loaded(arm, "others", 1000)
				tr.shoot(arm, thrice...)
			},
		},
		{
			name: "they come and go", fill: apiserver(arm, two, leaks(300, 2), shot{second: 330, leaked: []int{103, 104}}, leaks(360, 2)),
			met: check.Unknown, seen: "2 such goroutines in each of 3 quiet snapshots of 3, the last 1m5s after recovery began: they are not the same ones in each",
			evidence: pairs(3), detail: "chan send",
		},
		{
			name: "they grow in number", fill: apiserver(arm, two, leaks(300, 1), leaks(330, 2), leaks(360, 2)),
			met: check.Unknown, seen: "2 such goroutines in the last, 1 to 2 in 3 quiet snapshots", evidence: pairs(3), detail: "chan send",
		},
		{
			name: "two snapshots are too few", fill: apiserver(arm, two, leaks(330, 2), leaks(360, 2)),
			met: check.Unknown, seen: "the same in 2 quiet snapshots of 2, the last 1m5s after recovery began: too few to answer by", evidence: pairs(2), detail: "chan send",
		},
		{
			name: "the last is too early", fill: apiserver(arm, two, leaks(300, 2), leaks(330, 2), leaks(354, 2)),
			met: check.Unknown, seen: "too few to answer by", evidence: pairs(3), detail: "chan send",
		},
		{
			name: "snapshots with a call in flight don't count", met: check.Unknown, detail: "chan send", evidence: pairs(4),
			fill: apiserver(arm, two, leaks(300, 2), with(leaks(320, 2), "handler"), with(leaks(340, 2), "worker"), leaks(360, 2)),
			seen: "the same in 2 quiet snapshots of 4", differs: []string{"10:05:20: 2 blocked, and 1 goroutines serve calls in flight", "10:05:40: 2 blocked, and 1"},
		},
		{
			name: "with enough quiet ones, those are only noted", met: check.True, detail: "chan send", evidence: pairs(5, bundle.LoadSummary, bundle.Logs),
			fill: apiserver(arm, two, with(leaks(296, 3), "handler"), leaks(300, 2), leaks(330, 2), with(leaks(340, 2), "receiver"), leaks(360, 2)),
			seen: "the same in 3 quiet snapshots of 5", differs: []string{"3 blocked, and 1", "2 blocked, and 1"},
		},
		{
			name: "other requests may be in flight", fill: apiserver(arm, two, with(leaks(300, 2), "get"), leaks(330, 2), leaks(360, 2)),
			met: check.True, seen: "the same in 3 quiet snapshots of 3", evidence: all, detail: "chan send",
		},
		{
			name: "debug=1 counts others", met: check.Unknown, evidence: pairs(3), detail: "chan send",
			fill: apiserver(arm, two, leaks(300, 2), shot{second: 330, leaked: []int{101, 102}, top: 1}, leaks(360, 2)),
			seen: "2 quiet snapshots of 3", differs: []string{"10:05:30: 2 blocked by debug=2, 3 by debug=1"},
		},
		{
			name: "half a pair is none", met: check.Unknown, evidence: pairs(2), detail: "chan send",
			fill: apiserver(arm, two, leaks(300, 2), cut(leaks(330, 2), "1"), cut(leaks(340, 2), "2"), leaks(360, 2)),
			seen: "the same in 2 quiet snapshots of 2", differs: []string{"the debug=1 of 10:05:30 failed: connection refused", "the dump of 10:05:40 failed"},
		},
		{
			name: "a cut dump could hide some", fill: apiserver(arm, two, append(thrice, cut(leaks(370, 2), "~2"))...),
			met: check.Unknown, seen: "is cut short", evidence: pairs(3),
		},
		{
			name: "missing files", fill: apiserver(arm, two, thrice...), damage: remove(t, bundle.Goroutines1),
			met: check.Unknown, seen: "0 quiet snapshots of 0; the file artifacts/",
		},
		{
			name: "none was left", fill: apiserver(arm, two, leaks(300, 0), leaks(330, 0), leaks(360, 0)),
			met: check.False, seen: "no such goroutine in 3 quiet snapshots of 3, the last 1m5s after recovery began", evidence: pairs(3),
		},
		{
			name: "too few to say that none was left", fill: apiserver(arm, two, leaks(330, 0), leaks(360, 0)),
			met: check.Unknown, seen: "too few to answer by", evidence: pairs(2),
		},
		{
			name: "they went away by themselves", fill: apiserver(arm, two, leaks(300, 2), leaks(320, 0), leaks(340, 0), leaks(360, 0)),
			met: check.False, seen: "0 such goroutines in the last, 0 to 2 in 4 quiet snapshots", evidence: pairs(4),
		},
		{
			name: "a restart took them away", met: check.Unknown, evidence: pairs(3), seen: "the process was not the same any more at 10:04:10",
			fill: func(tr *trial) {
				tr.phases()
				tr.lookAt(tr.process(arm, 312, 0, 248), 400, 250, 394)
				tr.shoot(arm, leaks(300, 0), leaks(330, 0), leaks(360, 0))
			},
		},
		{
			name: "nobody looked which process it was", met: check.Unknown, evidence: pairs(3), seen: "no identity was recorded for vulnerable",
			fill: func(tr *trial) { tr.phases(); tr.shoot(arm, leaks(300, 0), leaks(330, 0), leaks(360, 0)) },
		},
		{
			name: "the other arm's goroutines", fill: apiserver(other, two, thrice...), met: check.Unknown,
			seen: "0 quiet snapshots of 0; no identity was recorded for vulnerable",
		},
		{
			name: "those of the fault don't count", fill: apiserver(arm, two, leaks(200, 2), leaks(250, 2), leaks(291, 2)),
			met: check.Unknown, seen: "0 quiet snapshots of 0: nothing to answer by",
		},
		{name: "no function", spec: `{"func":""}`, fill: apiserver(arm, nil), met: check.Unknown, seen: "func is empty"},
		{name: "no state", spec: `{"state":""}`, fill: apiserver(arm, nil), met: check.Unknown, seen: "state is empty"},
		{name: "no load", spec: `{"load":""}`, fill: apiserver(arm, nil), met: check.Unknown, seen: "load is empty"},
		{name: "no number in the line", spec: `{"failed":{"component":"c","pattern":"failed"}}`, fill: apiserver(arm, nil), met: check.Unknown, seen: "failed.pattern has no group index"},
	}, func(q *question) {
		q.kind, q.scope, q.spec = "leakedGoroutines", check.Scope{Arm: arm, Phase: check.Recovery}, over(t, over(t, leakSpec, leakCalls), q.spec)
	})
}

// Before any fault it only has to be shown that none is there yet.
func TestLeakedGoroutinesInBaseline(t *testing.T) {
	run(t, []question{
		{
			name: "one quiet snapshot", fill: apiserver(arm, failed(100, 33), leaks(30, 0), leaks(300, 1), leaks(330, 1), leaks(360, 1)),
			met: check.False, seen: "no such goroutine in 1 quiet snapshots of 1, the last 10s after baseline began", evidence: pairs(1),
		},
		{
			name: "there already", fill: apiserver(arm, failed(100, 33), leaks(25, 1), leaks(30, 1), leaks(38, 1)),
			met: check.Unknown, seen: "they are there before any fault", evidence: pairs(3), detail: "chan send",
		},
		{
			name: "a call in flight is no quiet snapshot", fill: apiserver(arm, nil, shot{second: 30, leaked: []int{5}, extra: "handler"}),
			met: check.Unknown, seen: "0 quiet snapshots of 1: nothing to answer by", evidence: pairs(1), differs: []string{"1 blocked, and 1 goroutines serve"},
		},
		{name: "no snapshot", fill: apiserver(arm, nil), met: check.Unknown, seen: "nothing to answer by"},
	}, func(q *question) {
		q.kind, q.scope, q.spec = "leakedGoroutines", check.Scope{Arm: arm, Phase: check.Baseline}, over(t, leakSpec, leakCalls)
	})
}

func TestNoLeakedGoroutines(t *testing.T) {
	run(t, []question{
		{
			name: "none", fill: apiserver(arm, nil, leaks(300, 0), leaks(330, 0), leaks(360, 0)), met: check.True, evidence: pairs(3),
			seen: "no such goroutine in 3 quiet snapshots of 3, the last 1m5s", wanted: "no goroutine [chan send] in registry.(*Store).DeleteCollection in at least 3 quiet snapshots",
		},
		{name: "none, whatever the calls", spec: leakCalls, fill: apiserver(arm, failed(100, 33), leaks(300, 0), leaks(330, 0), leaks(360, 0)), met: check.True, seen: "no such", evidence: pairs(3)},
		{name: "one", fill: apiserver(arm, nil, leaks(300, 1)), met: check.False, seen: "1 such goroutines", evidence: pairs(1), detail: "store.go:1132"},
		{name: "too few", fill: apiserver(arm, nil, leaks(330, 0), leaks(360, 0)), met: check.Unknown, seen: "too few to answer by", evidence: pairs(2)},
		{
			name: "those of a call in flight", fill: apiserver(arm, nil, leaks(300, 0), leaks(330, 0), leaks(360, 0), shot{second: 370, leaked: []int{5}, extra: "handler"}),
			met: check.True, seen: "no such goroutine in 3 quiet snapshots of 4", evidence: pairs(4), differs: []string{"1 blocked, and 1"},
		},
		{
			name: "a restart is no cure", met: check.Unknown, evidence: pairs(3), seen: "the process was not the same any more at 10:05:10",
			fill: func(tr *trial) {
				tr.phases()
				tr.lookAt(tr.process(arm, 312, 0, 308), 400, 310, 394)
				tr.shoot(arm, leaks(320, 0), leaks(330, 0), leaks(360, 0))
			},
		},
		{
			name: "nobody looked for a while, but it is the same one", met: check.True, evidence: pairs(3), seen: "no such goroutine",
			fill: func(tr *trial) {
				tr.phases()
				st := tr.process(arm, 312, 0, 198)
				tr.lookAt(st, 312, 230, 394)
				st.Gap(tr.at(200), tr.at(230), "exec failed")
				tr.shoot(arm, leaks(320, 0), leaks(330, 0), leaks(360, 0))
			},
		},
		{
			name: "nobody looked in the end", met: check.Unknown, evidence: pairs(3), seen: "but nobody looked which process it was from 10:05:50.0 to 10:06:35.0",
			fill: func(tr *trial) {
				tr.phases()
				tr.process(arm, 312, 0, 350).Gap(tr.at(350), tr.at(394), "exec failed")
				tr.shoot(arm, leaks(320, 0), leaks(330, 0), leaks(360, 0))
			},
		},
		{
			name: "the fault began between two looks at the same process", met: check.True, evidence: pairs(3), seen: "no such goroutine",
			fill: func(tr *trial) {
				tr.phases()
				tr.lookAt(tr.process(arm, 312, 0, 34), 312, 60, 394)
				tr.shoot(arm, leaks(320, 0), leaks(330, 0), leaks(360, 0))
			},
		},
		{
			name: "the fault began between looks at two processes", met: check.Unknown, evidence: pairs(3), seen: "nobody looked which process it was from 10:00:40.0 to 10:01:00.0",
			fill: func(tr *trial) {
				tr.phases()
				tr.lookAt(tr.process(arm, 312, 0, 34), 400, 60, 394)
				tr.shoot(arm, leaks(320, 0), leaks(330, 0), leaks(360, 0))
			},
		},
		{
			name: "nobody looked in the beginning", met: check.Unknown, evidence: pairs(3), seen: "nobody looked which process it was from 10:00:40.0 to 10:04:20.0",
			fill: func(tr *trial) {
				tr.phases()
				tr.process(arm, 312, 260, 394)
				tr.shoot(arm, leaks(320, 0), leaks(330, 0), leaks(360, 0))
			},
		},
	}, func(q *question) {
		q.kind, q.scope, q.spec = "leakedGoroutines", check.Scope{Arm: arm, Phase: check.Recovery}, over(t, over(t, leakSpec, `{"none":true}`), q.spec)
	})
}

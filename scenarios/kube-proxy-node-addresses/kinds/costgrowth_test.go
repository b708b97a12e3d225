package kinds_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// sizes are 2 in the baseline, and then 500 and 1000, or what last says.
func sizes(last float64) func(s float64) float64 {
	return func(s float64) float64 {
		switch {
		case s < checktest.FaultAt:
			return 2
		case s < 150:
			return 500
		}
		return last
	}
}

// growing is a subject that makes a sync each two seconds, for so much CPU time with each size.
func growing(size func(float64) float64, cost func(size float64) float64) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		used, then := 1.0, 0.0
		checktest.Looks(0, 0, func(one *bundle.IdentitySample, s float64) {
			used, then = used+(s-then)/2*cost(size(s)), s
			one.CPUSeconds = used
		})(tr)
		st := tr.Stream(bundle.MetricSamples, checktest.Arm)
		tr.Series(st, checktest.Syncs, 0, 400, func(s float64) float64 { return 10 + s/2 })
		tr.Series(st, "addresses", 0, 400, size)
	}
}

// children is growing, at 10 ms for each sync, whose children take as long at each size and as much more at 1000 as
// said.
func children(size func(float64) float64, always, more float64) func(*checktest.Trial) {
	return parent(size, func(float64) float64 { return 0.01 }, func(size float64) float64 { return always + more*size/1000 })
}

// parent is growing, for so much CPU time of its own with each size, and so much of its children.
func parent(size func(float64) float64, own, childs func(size float64) float64) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		used, waited, then := 1.0, 1.0, 0.0
		checktest.Looks(0, 0, func(one *bundle.IdentitySample, s float64) {
			syncs := (s - then) / 2
			used, waited, then = used+syncs*own(size(s)), waited+syncs*childs(size(s)), s
			one.CPUSeconds, one.ChildSeconds = used, waited
		})(tr)
		st := tr.Stream(bundle.MetricSamples, checktest.Arm)
		tr.Series(st, checktest.Syncs, 0, 400, func(s float64) float64 { return 10 + s/2 })
		tr.Series(st, "addresses", 0, 400, size)
	}
}

func TestCostGrowth(t *testing.T) {
	const stays = `{"of":"cpu","counter":"syncs_count","units":4,"with":"addresses","sizes":2,"atMostMore":3}`
	read := []bundle.Kind{bundle.Identity, bundle.MetricSamples}
	rising := func(size float64) float64 { return 0.02 + size/2000 }
	checktest.Run(t, []checktest.Question{
		{Name: "it grows", Fill: growing(sizes(1000), rising), Met: check.True, Evidence: read, Seen: "by addresses: 2: "},
		{Name: "it stays", Fill: growing(sizes(1000), func(float64) float64 { return 0.02 }), Met: check.False, Evidence: read, Seen: "; 1000: 0.0"},
		{Name: "it jumps at once", Fill: growing(sizes(1000), func(size float64) float64 { return min(0.5, size/20) }), Met: check.Unknown, Evidence: read,
			Seen: "that is neither growth nor none"},
		{Name: "two sizes", Fill: growing(sizes(500), rising), Met: check.Unknown, Code: check.TooFew, Evidence: read, Seen: "the cost is known at 2 sizes, want 3; by addresses: 2: "},
		{Name: "a size that comes and goes", Fill: growing(func(s float64) float64 {
			if s >= 145 && s < 155 {
				return 700
			}
			return sizes(1000)(s)
		}, rising), Met: check.True, Evidence: read, Seen: "; 1000: "},
		{Name: "a size that grows a little on", Fill: growing(func(s float64) float64 {
			if s >= 230 {
				return 1010
			}
			return sizes(1000)(s)
		}, rising), Met: check.True, Evidence: read, Seen: "; 1000: "},
		{Name: "another process in the middle", Met: check.Unknown, Evidence: read, Seen: "500: process 7 was followed by process 8",
			Fill: func(tr *checktest.Trial) {
				checktest.Looks(0, 0, func(one *bundle.IdentitySample, s float64) {
					if one.CPUSeconds = 1 + s; s > 100 {
						one.PID = 8
					}
				})(tr)
				st := tr.Stream(bundle.MetricSamples, checktest.Arm)
				tr.Series(st, checktest.Syncs, 0, 400, func(s float64) float64 { return s })
				tr.Series(st, "addresses", 0, 400, sizes(1000))
			}},
		{Name: "it does nothing at one of them", Met: check.Unknown, Code: check.TooFew, Evidence: read, Seen: "while syncs_count grew by 0: too little work to answer by, want 4; 500: ",
			Fill: func(tr *checktest.Trial) {
				checktest.Looks(0, 0.1, nil)(tr)
				st := tr.Stream(bundle.MetricSamples, checktest.Arm)
				tr.Series(st, checktest.Syncs, 0, 400, func(s float64) float64 { return max(checktest.FaultAt, s) })
				tr.Series(st, "addresses", 0, 400, sizes(1000))
			}},
		{Name: "the size was never seen", Met: check.Unknown, Seen: "the cost is known at 0 sizes", Fill: checktest.Looks(0, 0.1, nil)},
		{Name: "it costs about as much", Spec: stays, Fill: growing(sizes(1000), func(size float64) float64 { return 0.02 + size/25000 }), Met: check.True, Evidence: read,
			Seen: "; the process alone: 2: 0.0", Wanted: "at none more than at the smallest by over 3 times what it costs the process alone there, with its children or without"},
		{Name: "it costs 14 times as much, and is cheap", Spec: stays, Fill: growing(sizes(1000), func(size float64) float64 { return 0.01 + size*0.13/1000 }), Met: check.False, Evidence: read,
			Seen: "; the process alone: 2: 0.0"},
		{Name: "its children cost 14 times as much", Spec: stays, Fill: children(sizes(1000), 0, 0.13), Met: check.False, Evidence: read, Seen: "; the process alone: 2: 0.0"},
		{Name: "what its children always cost hides nothing", Spec: stays, Fill: children(sizes(1000), 0.1, 0.13), Met: check.False, Evidence: read,
			Seen: "; the process alone: 2: 0.0"},
		{Name: "children that always cost as much", Spec: stays, Fill: children(sizes(1000), 0.1, 0.01), Met: check.True, Evidence: read, Seen: "; the process alone: 2: 0.0"},
		{Name: "it grows while its children happen to take less", Spec: stays, Met: check.False, Evidence: read, Seen: "; the process alone: 2: 0.0",
			Fill: parent(sizes(1000), func(size float64) float64 { return 0.01 + size*0.06/1000 }, func(size float64) float64 { return 0.15 - size*0.06/1000 })},
		{Name: "it hardly grows while its children happen to take less", Spec: stays, Met: check.True, Evidence: read, Seen: "; the process alone: 2: 0.0",
			Fill: parent(sizes(1000), func(size float64) float64 { return 0.01 + size*0.01/1000 }, func(size float64) float64 { return 0.15 - size*0.06/1000 })},
		{Name: "it may grow while its children happen to take less", Spec: stays, Met: check.Unknown, Code: check.NotConclusive, Evidence: read, Seen: "that is neither growth nor none",
			Fill: parent(sizes(1000), func(size float64) float64 { return 0.01 + size*0.03/1000 }, func(size float64) float64 { return 0.15 - size*0.06/1000 })},
		{Name: "it does nothing at the largest", Spec: stays, Met: check.Unknown, Evidence: read, Seen: "the cost is not known at the smallest and the largest size; by addresses: ",
			Fill: func(tr *checktest.Trial) {
				checktest.Looks(0.01, 0.01, nil)(tr)
				st := tr.Stream(bundle.MetricSamples, checktest.Arm)
				tr.Series(st, checktest.Syncs, 0, 400, func(s float64) float64 { return min(s, 150) })
				tr.Series(st, "addresses", 0, 400, sizes(1000))
			}},
		{Name: "one size is no growth", Spec: `{"of":"cpu","counter":"c","with":"s","sizes":1,"times":2}`, Fill: (*checktest.Trial).Phases, Met: check.Unknown, Seen: "sizes is 1"},
		{Name: "no limit", Spec: `{"of":"cpu","counter":"c","with":"s"}`, Fill: (*checktest.Trial).Phases, Met: check.Unknown, Code: check.BadCheck, Seen: "want one of times and atMostMore"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "costGrowth", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		if q.Spec == "" {
			q.Spec = `{"of":"cpu","counter":"syncs_count","units":4,"with":"addresses","times":4}`
		}
	})
}

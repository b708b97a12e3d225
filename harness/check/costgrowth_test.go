package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// sizes are 2 in the baseline, and then 500 and 1000, or what last says.
func sizes(last float64) func(s float64) float64 {
	return func(s float64) float64 {
		switch {
		case s < faultAt:
			return 2
		case s < 150:
			return 500
		}
		return last
	}
}

// growing is a subject that makes a sync each two seconds, for so much CPU time with each size.
func growing(size func(float64) float64, cost func(size float64) float64) func(*trial) {
	return func(tr *trial) {
		used, then := 1.0, 0.0
		looks(0, 0, func(one *bundle.IdentitySample, s float64) {
			used, then = used+(s-then)/2*cost(size(s)), s
			one.CPUSeconds = used
		})(tr)
		st := tr.stream(bundle.MetricSamples, arm)
		tr.series(st, syncs, 0, 400, func(s float64) float64 { return 10 + s/2 })
		tr.series(st, "addresses", 0, 400, size)
	}
}

// children is growing, at 10 ms for each sync, whose children take as long at each size and as much more at 1000 as said.
func children(size func(float64) float64, always, more float64) func(*trial) {
	return func(tr *trial) {
		used, then := 1.0, 0.0
		looks(0, 0, func(one *bundle.IdentitySample, s float64) {
			used, then = used+(s-then)/2*(always+more*size(s)/1000), s
			one.CPUSeconds, one.ChildSeconds = 1+s/2*0.01, used
		})(tr)
		st := tr.stream(bundle.MetricSamples, arm)
		tr.series(st, syncs, 0, 400, func(s float64) float64 { return 10 + s/2 })
		tr.series(st, "addresses", 0, 400, size)
	}
}

func TestCostGrowth(t *testing.T) {
	const stays = `{"of":"cpu","counter":"syncs_count","units":4,"with":"addresses","sizes":2,"atMostMore":3}`
	read := []bundle.Kind{bundle.Identity, bundle.MetricSamples}
	rising := func(size float64) float64 { return 0.02 + size/2000 }
	run(t, []question{
		{name: "it grows", fill: growing(sizes(1000), rising), met: check.True, evidence: read, seen: "by addresses: 2: "},
		{name: "it stays", fill: growing(sizes(1000), func(float64) float64 { return 0.02 }), met: check.False, evidence: read, seen: "; 1000: 0.0"},
		{name: "it jumps at once", fill: growing(sizes(1000), func(size float64) float64 { return min(0.5, size/20) }), met: check.Unknown, evidence: read,
			seen: "that is neither growth nor none"},
		{name: "two sizes", fill: growing(sizes(500), rising), met: check.Unknown, evidence: read, seen: "the cost is known at 2 sizes, want 3; by addresses: 2: "},
		{name: "a size that comes and goes", fill: growing(func(s float64) float64 {
			if s >= 145 && s < 155 {
				return 700
			}
			return sizes(1000)(s)
		}, rising), met: check.True, evidence: read, seen: "; 1000: "},
		{name: "a size that grows a little on", fill: growing(func(s float64) float64 {
			if s >= 230 {
				return 1010
			}
			return sizes(1000)(s)
		}, rising), met: check.True, evidence: read, seen: "; 1000: "},
		{name: "another process in the middle", met: check.Unknown, evidence: read, seen: "500: process 7 was followed by process 8",
			fill: func(tr *trial) {
				looks(0, 0, func(one *bundle.IdentitySample, s float64) {
					if one.CPUSeconds = 1 + s; s > 100 {
						one.PID = 8
					}
				})(tr)
				st := tr.stream(bundle.MetricSamples, arm)
				tr.series(st, syncs, 0, 400, func(s float64) float64 { return s })
				tr.series(st, "addresses", 0, 400, sizes(1000))
			}},
		{name: "it does nothing at one of them", met: check.Unknown, evidence: read, seen: "while syncs_count grew by 0: too little work to answer by, want 4; 500: ",
			fill: func(tr *trial) {
				looks(0, 0.1, nil)(tr)
				st := tr.stream(bundle.MetricSamples, arm)
				tr.series(st, syncs, 0, 400, func(s float64) float64 { return max(faultAt, s) })
				tr.series(st, "addresses", 0, 400, sizes(1000))
			}},
		{name: "the size was never seen", met: check.Unknown, seen: "the cost is known at 0 sizes", fill: looks(0, 0.1, nil)},
		{name: "it costs about as much", spec: stays, fill: growing(sizes(1000), func(size float64) float64 { return 0.02 + size/25000 }), met: check.True, evidence: read,
			seen: "; the process alone at the smallest: 0.0", wanted: "at none more than at the smallest by over 3 times what it costs the process alone there"},
		{name: "it costs 14 times as much, and is cheap", spec: stays, fill: growing(sizes(1000), func(size float64) float64 { return 0.01 + size*0.13/1000 }), met: check.False, evidence: read,
			seen: "; the process alone at the smallest: 0.0"},
		{name: "its children cost 14 times as much", spec: stays, fill: children(sizes(1000), 0, 0.13), met: check.False, evidence: read, seen: "; the process alone at the smallest: 0.0"},
		{name: "what its children always cost hides nothing", spec: stays, fill: children(sizes(1000), 0.1, 0.13), met: check.False, evidence: read,
			seen: "; the process alone at the smallest: 0.0"},
		{name: "children that always cost as much", spec: stays, fill: children(sizes(1000), 0.1, 0.01), met: check.True, evidence: read, seen: "; the process alone at the smallest: 0.0"},
		{name: "it does nothing at the largest", spec: stays, met: check.Unknown, evidence: read, seen: "the cost is not known at the smallest and the largest size; by addresses: ",
			fill: func(tr *trial) {
				looks(0.01, 0.01, nil)(tr)
				st := tr.stream(bundle.MetricSamples, arm)
				tr.series(st, syncs, 0, 400, func(s float64) float64 { return min(s, 150) })
				tr.series(st, "addresses", 0, 400, sizes(1000))
			}},
		{name: "one size is no growth", spec: `{"of":"cpu","counter":"c","with":"s","sizes":1,"times":2}`, fill: (*trial).phases, met: check.Unknown, seen: "sizes is 1"},
		{name: "no limit", spec: `{"of":"cpu","counter":"c","with":"s"}`, fill: (*trial).phases, met: check.Unknown, seen: "want one of times and atMostMore"},
	}, func(q *question) {
		q.kind, q.scope = "costGrowth", check.Scope{Arm: arm, Phase: check.Fault}
		if q.spec == "" {
			q.spec = `{"of":"cpu","counter":"syncs_count","units":4,"with":"addresses","times":4}`
		}
	})
}

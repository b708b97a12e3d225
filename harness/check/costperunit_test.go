package check_test

import (
	"bytes"
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// working is a subject that makes a sync each two seconds from the fault on, of which each takes so much CPU time and
// allocates so many megabytes; more may add to it.
func working(seconds, megabytes float64, more func(*trial)) func(*trial) {
	return func(tr *trial) {
		looks(0, 0, func(one *bundle.IdentitySample, s float64) { one.CPUSeconds = 1 + max(0, s-faultAt)/2*seconds })(tr)
		tr.series(tr.stream(bundle.MetricSamples, arm), syncs, 0, 400, func(s float64) float64 { return 10 + max(0, s-faultAt)/2 })
		for s := 25.0; s < 390; s += 20 {
			tr.allocs(s, 5+max(0, s-faultAt)/2*megabytes, s)
		}
		if more != nil {
			more(tr)
		}
	}
}

func TestCostPerUnit(t *testing.T) {
	cpu := []bundle.Kind{bundle.Identity, bundle.MetricSamples}
	profiles := append(slices.Repeat([]bundle.Kind{bundle.Heap}, 13), bundle.MetricSamples)
	const ofCPU = `{"of":"cpu","counter":"syncs_count","units":20,"atLeast":"200ms"}`
	const cheap = `{"of":"cpu","counter":"syncs_count","units":20,"below":"200ms"}`
	const each = `"of":"allocated","under":["net.interfaceAddrTable"],"counter":"syncs_count","units":20,"each":100`
	const byLoad = `"of":"allocated","under":["net.interfaceAddrTable"],"load":"changes","each":100`
	calledFor := append(slices.Repeat([]bundle.Kind{bundle.Heap}, 13), bundle.LoadSummary)
	alsoCalled := func(fill func(*trial), calls int, at float64) func(*trial) {
		return func(tr *trial) {
			fill(tr)
			called("changes", map[string]int{"200": calls}, at)(tr)
		}
	}
	run(t, []question{
		{name: "costly", spec: ofCPU, fill: working(0.4, 0, nil), met: check.True, evidence: cpu, seen: "syncs_count grew by 122 to 124: 0.397 s of CPU to 0.403 s of CPU each"},
		{name: "cheap", spec: ofCPU, fill: working(0.02, 0, nil), met: check.False, evidence: cpu, seen: ": 0.0198 s of CPU to 0.0202 s of CPU each"},
		{name: "cheap, as wanted", spec: cheap, fill: working(0.02, 0, nil), met: check.True, evidence: cpu, seen: ": 0.0198 s of CPU to 0.0202 s of CPU each"},
		{name: "costly, as not wanted", spec: cheap, fill: working(0.4, 0, nil), met: check.False, evidence: cpu, seen: ": 0.397 s of CPU to 0.403 s of CPU each"},
		{name: "it does nothing", spec: cheap, met: check.Unknown, evidence: cpu, seen: "grew by 0: too little work to answer by, want 20",
			fill: func(tr *trial) {
				looks(0, 0, nil)(tr)
				tr.series(tr.stream(bundle.MetricSamples, arm), syncs, 0, 400, func(float64) float64 { return 10 })
			}},
		{name: "before there is work", spec: cheap, scope: check.Scope{Arm: arm, Phase: check.Baseline}, fill: working(0.02, 0, nil), met: check.Unknown,
			evidence: cpu, seen: "too little work"},
		{name: "another process", spec: cheap, met: check.Unknown, evidence: cpu, seen: "process 7 was followed by process 8",
			fill: func(tr *trial) {
				looks(0, 0.1, func(one *bundle.IdentitySample, s float64) {
					if s > 200 {
						one.PID = 8
					}
				})(tr)
				tr.series(tr.stream(bundle.MetricSamples, arm), syncs, 0, 400, func(s float64) float64 { return s })
			}},
		{name: "the counter began anew", spec: cheap, met: check.Unknown, evidence: cpu, seen: "syncs_count fell at 10:03:22: it was reset",
			fill: func(tr *trial) {
				looks(0, 0.1, nil)(tr)
				tr.series(tr.stream(bundle.MetricSamples, arm), syncs, 0, 400, func(s float64) float64 {
					if s > 200 {
						return s - 200
					}
					return s
				})
			}},
		{name: "nobody looked for a minute in between", spec: cheap, met: check.True, evidence: cpu, seen: "each",
			fill: func(tr *trial) {
				looks(0, 0, func(one *bundle.IdentitySample, s float64) {
					if one.CPUSeconds = 1 + s/100; s > 120 && s < 180 {
						one.PID = -1
					}
				})(tr)
				st := tr.stream(bundle.MetricSamples, arm)
				tr.series(st, syncs, 0, 130, func(s float64) float64 { return s })
				tr.series(st, syncs, 190, 400, func(s float64) float64 { return s })
			}},
		{name: "nobody looked in the end", spec: cheap, met: check.Unknown, evidence: cpu, seen: "lie within 1m2s of",
			fill: func(tr *trial) {
				looks(0, 0.1, nil)(tr)
				tr.series(tr.stream(bundle.MetricSamples, arm), syncs, 0, 104, func(s float64) float64 { return s })
			}},
		{name: "nobody counted the work", spec: cheap, fill: looks(0, 0.1, nil), met: check.Unknown, evidence: cpu[:1], seen: "no metrics.samples was recorded"},
		{name: "another metric", spec: `{"of":"cpu","counter":"other_count","below":"1s"}`, fill: working(0.02, 0, nil), met: check.Unknown, evidence: cpu,
			seen: "never showed other_count", wanted: "other_count"},
		{name: "nobody looked at the process", spec: cheap, met: check.Unknown, evidence: cpu[1:], seen: "no identity was recorded",
			fill: func(tr *trial) {
				tr.phases()
				tr.series(tr.stream(bundle.MetricSamples, arm), syncs, 0, 400, func(s float64) float64 { return s })
			}},

		// 120 syncs lie between the first and the last profile, give or take what a profile's own time leaves open.
		{name: "garbage for each", spec: `{` + each + `,"atLeast":"200k"}`, fill: working(0, 100, nil), met: check.True, evidence: profiles,
			seen: "grew by 119 to 121: 991.7 kB to 1008.4 kB each"},
		{name: "little garbage", spec: `{` + each + `,"atLeast":"200k"}`, fill: working(0, 1, nil), met: check.False, evidence: profiles, seen: ": 9.9 kB to 10.1 kB each"},
		{name: "little, as wanted", spec: `{` + each + `,"below":"20k"}`, fill: working(0, 1, nil), met: check.True, evidence: profiles, seen: "each"},
		{name: "garbage that is not wanted", spec: `{` + each + `,"below":"20k"}`, fill: working(0, 100, nil), met: check.False, evidence: profiles, seen: "each"},
		{name: "on the limit", spec: `{` + each + `,"atLeast":"1M"}`, fill: working(0, 100, nil), met: check.Unknown, evidence: profiles, seen: "on both sides of the limit"},
		{name: "what is elsewhere doesn't count", spec: `{"of":"allocated","under":["nobody"],"counter":"syncs_count","atLeast":"1"}`, fill: working(0, 100, nil),
			met: check.False, evidence: profiles, seen: "0.0 kB in", wanted: `allocated below ["nobody"] for syncs_count`},
		{name: "callers count as well", spec: `{"of":"allocated","under":["Proxier).Sync"],"counter":"syncs_count","each":100,"atLeast":"200k"}`,
			fill: working(0, 100, nil), met: check.True, evidence: profiles, seen: "each", wanted: "bytes allocated below"},
		// 120 syncs of 50 MB, or so a subject says that counts 30 for each: 2 MB for each of 100 in 30 calls, whatever it says.
		{name: "by a load's calls", spec: `{` + byLoad + `,"units":30,"below":"20k"}`, fill: alsoCalled(working(0, 50, nil), 30, 100), met: check.False,
			evidence: calledFor, seen: "for 30 calls of load changes: 2000.0 kB each", wanted: "for each of 100 in one of what load changes did"},
		{name: "little for each call", spec: `{` + byLoad + `,"units":30,"below":"20k"}`, fill: alsoCalled(working(0, 0.1, nil), 30, 100), met: check.True,
			evidence: calledFor, seen: ": 4.0 kB each"},
		{name: "too few calls", spec: `{` + byLoad + `,"units":30,"below":"20k"}`, fill: alsoCalled(working(0, 0.1, nil), 29, 100), met: check.Unknown,
			evidence: calledFor, seen: "too little work to answer by, want 30"},
		{name: "calls of another phase", spec: `{` + byLoad + `,"units":30,"below":"20k"}`, fill: alsoCalled(working(0, 0.1, nil), 30, 25), met: check.Unknown,
			evidence: calledFor, seen: "round 1 of load changes began at 10:00:25, not in"},
		{name: "calls from long before the window", spec: `{` + byLoad + `,"units":30,"below":"20k"}`, fill: alsoCalled(working(0, 0.1, nil), 30, 45),
			scope: check.Scope{Arm: arm, Phase: check.Fault, After: time.Minute}, met: check.Unknown,
			evidence: append(slices.Repeat([]bundle.Kind{bundle.Heap}, 10), bundle.LoadSummary), seen: "round 1 of load changes began at 10:00:45, not in"},
		{name: "no load", spec: `{` + byLoad + `,"units":30,"below":"20k"}`, fill: working(0, 0.1, nil), met: check.Unknown,
			evidence: calledFor[:13], seen: "no load changes summed up what it did"},
		{name: "a counter and a load", spec: `{"of":"cpu","counter":"c","load":"l","below":"1s"}`, fill: (*trial).phases, met: check.Unknown, seen: "want one of counter and load"},
		{name: "one profile", spec: `{` + each + `,"below":"20k"}`, met: check.Unknown, evidence: []bundle.Kind{bundle.Heap, bundle.MetricSamples}, seen: "there are 1 samples of what was allocated",
			fill: func(tr *trial) {
				looks(0, 0, nil)(tr)
				tr.series(tr.stream(bundle.MetricSamples, arm), syncs, 0, 400, func(s float64) float64 { return s })
				tr.allocs(100, 5, 5)
			}},
		{name: "profiles of the beginning only", spec: `{` + each + `,"below":"20k"}`, met: check.Unknown, evidence: append(times(2, bundle.Heap), bundle.MetricSamples),
			seen: "the samples of what was allocated lie within 30s",
			fill: func(tr *trial) {
				looks(0, 0, nil)(tr)
				tr.series(tr.stream(bundle.MetricSamples, arm), syncs, 0, 400, func(s float64) float64 { return s })
				tr.allocs(50, 5, 5)
				tr.allocs(80, 5, 5)
			}},
		{name: "no profile", spec: `{` + each + `,"below":"20k"}`, met: check.Unknown, evidence: cpu[1:], seen: "there is no heap profile in",
			fill: func(tr *trial) {
				looks(0, 0, nil)(tr)
				tr.series(tr.stream(bundle.MetricSamples, arm), syncs, 0, 400, func(s float64) float64 { return s })
			}},
		{name: "another process allocated", spec: `{` + each + `,"below":"20k"}`, met: check.Unknown, evidence: profiles, seen: "the process was not the same any more",
			fill: func(tr *trial) {
				working(0, 1, nil)(tr)
				st := tr.stream(bundle.Identity, arm)
				tr.must(st.JSON(bundle.IdentitySample{Time: tr.at(151), PID: 9, StartTicks: 90}))
			}},
		{name: "a damaged profile", spec: `{` + each + `,"below":"20k"}`, met: check.Unknown, evidence: profiles, seen: "reading heap profile",
			fill: working(0, 1, func(tr *trial) {
				_, err := tr.w.Write(bundle.Meta{Kind: bundle.Heap, Arm: arm, Time: tr.at(150)}, "pb.gz", bytes.NewReader([]byte("Unauthorized\n")))
				tr.must(err)
			})},
	}, func(q *question) {
		q.kind = "costPerUnit"
		q.wanted = cmp.Or(q.wanted, "for ")
		q.scope = cmp.Or(q.scope, check.Scope{Arm: arm, Phase: check.Fault})
	})
}

func TestCostPerUnitRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		`{"of":"wall","counter":"c","below":"1"}`:                                   `of is "wall" (want cpu or allocated)`,
		`{"of":"cpu","counter":"c","below":"1"}`:                                    `below is "1" (want a duration with its unit: 3m)`,
		`{"of":"cpu","counter":"c","atLeast":"1s","below":"1s"}`:                    `want one of atLeast and below`,
		`{"of":"cpu","counter":"c"}`:                                                `want one of atLeast and below`,
		`{"of":"cpu","below":"1s"}`:                                                 `want one of counter and load`,
		`{"of":"cpu","counter":"c","under":["f"],"below":"1s"}`:                     `under is ["f"] (want names with allocated`,
		`{"of":"allocated","counter":"c","below":"1k"}`:                             `under is [] (want names with allocated`,
		`{"of":"allocated","counter":"c","under":["f"],"below":"0"}`:                `below is "0" (want bytes above 0, with a suffix: 200k)`,
		`{"of":"allocated","counter":"c","under":["f"],"below":"1s"}`:               `below is "1s" (want bytes above 0, with a suffix: 200k)`,
		`{"of":"allocated","counter":"c","under":["f"],"below":"1k","each":0}`:      `each is 0 (want at least 1)`,
		`{"of":"allocated","counter":"c","under":["f"],"below":"1k","units":0}`:     `units is 0 (want at least 1)`,
		`{"of":"allocated","counter":"c","under":["f",""],"below":"1k"}`:            `none of them empty`,
		`{"of":"allocated","counter":"c","under":["f"],"below":"1k","atLeast":"1"}`: `want one of atLeast and below`,
	} {
		refused(t, "costPerUnit", spec, want)
	}
}

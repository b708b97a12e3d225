package kinds_test

import (
	"bytes"
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// working is a subject that makes a sync each two seconds from the fault on, of which each takes so much CPU time and
// allocates so many megabytes; more may add to it.
func working(seconds, megabytes float64, more func(*checktest.Trial)) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		checktest.Looks(0, 0, func(one *bundle.IdentitySample, s float64) {
			one.CPUSeconds = 1 + max(0, s-checktest.FaultAt)/2*seconds
		})(tr)
		tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), checktest.Syncs, 0, 400, func(s float64) float64 { return 10 + max(0, s-checktest.FaultAt)/2 })
		for s := 25.0; s < 390; s += 20 {
			tr.Allocs(s, 5+max(0, s-checktest.FaultAt)/2*megabytes, s)
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
	alsoCalled := func(fill func(*checktest.Trial), calls int, at float64) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			fill(tr)
			checktest.Called("changes", map[string]int{"200": calls}, at)(tr)
		}
	}
	checktest.Run(t, []checktest.Question{
		{Name: "costly", Spec: ofCPU, Fill: working(0.4, 0, nil), Met: check.True, Evidence: cpu, Seen: "syncs_count grew by 122 to 124: 0.397 s of CPU to 0.403 s of CPU each"},
		{Name: "cheap", Spec: ofCPU, Fill: working(0.02, 0, nil), Met: check.False, Evidence: cpu, Seen: ": 0.0198 s of CPU to 0.0202 s of CPU each"},
		{Name: "cheap, as wanted", Spec: cheap, Fill: working(0.02, 0, nil), Met: check.True, Evidence: cpu, Seen: ": 0.0198 s of CPU to 0.0202 s of CPU each"},
		{Name: "costly, as not wanted", Spec: cheap, Fill: working(0.4, 0, nil), Met: check.False, Evidence: cpu, Seen: ": 0.397 s of CPU to 0.403 s of CPU each"},
		{Name: "it does nothing", Spec: cheap, Met: check.Unknown, Code: check.TooFew, Evidence: cpu, Seen: "grew by 0: too little work to answer by, want 20",
			Fill: func(tr *checktest.Trial) {
				checktest.Looks(0, 0, nil)(tr)
				tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), checktest.Syncs, 0, 400, func(float64) float64 { return 10 })
			}},
		{Name: "before there is work", Spec: cheap, Scope: check.Scope{Arm: checktest.Arm, Phase: check.Baseline}, Fill: working(0.02, 0, nil), Met: check.Unknown,
			Evidence: cpu, Seen: "too little work"},
		{Name: "another process", Spec: cheap, Met: check.Unknown, Evidence: cpu, Seen: "process 7 was followed by process 8",
			Fill: func(tr *checktest.Trial) {
				checktest.Looks(0, 0.1, func(one *bundle.IdentitySample, s float64) {
					if s > 200 {
						one.PID = 8
					}
				})(tr)
				tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), checktest.Syncs, 0, 400, func(s float64) float64 { return s })
			}},
		{Name: "the counter began anew", Spec: cheap, Met: check.Unknown, Code: check.OtherProcess, Evidence: cpu, Seen: "syncs_count fell at 10:03:22: it was reset",
			Fill: func(tr *checktest.Trial) {
				checktest.Looks(0, 0.1, nil)(tr)
				tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), checktest.Syncs, 0, 400, func(s float64) float64 {
					if s > 200 {
						return s - 200
					}
					return s
				})
			}},
		{Name: "nobody looked for a minute in between", Spec: cheap, Met: check.True, Evidence: cpu, Seen: "each",
			Fill: func(tr *checktest.Trial) {
				checktest.Looks(0, 0, func(one *bundle.IdentitySample, s float64) {
					if one.CPUSeconds = 1 + s/100; s > 120 && s < 180 {
						one.PID = -1
					}
				})(tr)
				st := tr.Stream(bundle.MetricSamples, checktest.Arm)
				tr.Series(st, checktest.Syncs, 0, 130, func(s float64) float64 { return s })
				tr.Series(st, checktest.Syncs, 190, 400, func(s float64) float64 { return s })
			}},
		{Name: "nobody looked in the end", Spec: cheap, Met: check.Unknown, Evidence: cpu, Seen: "lie within 1m2s of",
			Fill: func(tr *checktest.Trial) {
				checktest.Looks(0, 0.1, nil)(tr)
				tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), checktest.Syncs, 0, 104, func(s float64) float64 { return s })
			}},
		{Name: "nobody counted the work", Spec: cheap, Fill: checktest.Looks(0, 0.1, nil), Met: check.Unknown, Evidence: cpu[:1], Seen: "no metrics.samples was recorded"},
		{Name: "another metric", Spec: `{"of":"cpu","counter":"other_count","below":"1s"}`, Fill: working(0.02, 0, nil), Met: check.Unknown, Evidence: cpu,
			Seen: "never showed other_count", Wanted: "other_count"},
		{Name: "nobody looked at the process", Spec: cheap, Met: check.Unknown, Evidence: cpu[1:], Seen: "no identity was recorded",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), checktest.Syncs, 0, 400, func(s float64) float64 { return s })
			}},

		// 120 syncs lie between the first and the last profile, give or take what a profile's own time leaves open.
		{Name: "garbage for each", Spec: `{` + each + `,"atLeast":"200k"}`, Fill: working(0, 100, nil), Met: check.True, Evidence: profiles,
			Seen: "grew by 119 to 121: 991.7 kB to 1008.4 kB each"},
		{Name: "little garbage", Spec: `{` + each + `,"atLeast":"200k"}`, Fill: working(0, 1, nil), Met: check.False, Evidence: profiles, Seen: ": 9.9 kB to 10.1 kB each"},
		{Name: "little, as wanted", Spec: `{` + each + `,"below":"20k"}`, Fill: working(0, 1, nil), Met: check.True, Evidence: profiles, Seen: "each"},
		{Name: "garbage that is not wanted", Spec: `{` + each + `,"below":"20k"}`, Fill: working(0, 100, nil), Met: check.False, Evidence: profiles, Seen: "each"},
		{Name: "on the limit", Spec: `{` + each + `,"atLeast":"1M"}`, Fill: working(0, 100, nil), Met: check.Unknown, Evidence: profiles, Seen: "on both sides of the limit"},
		{Name: "what is elsewhere doesn't count", Spec: `{"of":"allocated","under":["nobody"],"counter":"syncs_count","atLeast":"1"}`, Fill: working(0, 100, nil),
			Met: check.False, Evidence: profiles, Seen: "0.0 kB in", Wanted: `allocated below ["nobody"] for syncs_count`},
		{Name: "callers count as well", Spec: `{"of":"allocated","under":["Proxier).Sync"],"counter":"syncs_count","each":100,"atLeast":"200k"}`,
			Fill: working(0, 100, nil), Met: check.True, Evidence: profiles, Seen: "each", Wanted: "bytes allocated below"},
		// 120 syncs of 50 MB, or so a subject says that counts 30 for each: 2 MB for each of 100 in 30 calls, whatever
		// it says.
		{Name: "by a load's calls", Spec: `{` + byLoad + `,"units":30,"below":"20k"}`, Fill: alsoCalled(working(0, 50, nil), 30, 100), Met: check.False,
			Evidence: calledFor, Seen: "for 30 calls of load changes: 2000.0 kB each", Wanted: "for each of 100 in one of what load changes did"},
		{Name: "little for each call", Spec: `{` + byLoad + `,"units":30,"below":"20k"}`, Fill: alsoCalled(working(0, 0.1, nil), 30, 100), Met: check.True,
			Evidence: calledFor, Seen: ": 4.0 kB each"},
		{Name: "too few calls", Spec: `{` + byLoad + `,"units":30,"below":"20k"}`, Fill: alsoCalled(working(0, 0.1, nil), 29, 100), Met: check.Unknown,
			Evidence: calledFor, Seen: "too little work to answer by, want 30"},
		{Name: "calls of another phase", Spec: `{` + byLoad + `,"units":30,"below":"20k"}`, Fill: alsoCalled(working(0, 0.1, nil), 30, 25), Met: check.Unknown,
			Evidence: calledFor, Seen: "round 1 of load changes began at 10:00:25, not in"},
		{Name: "calls from long before the window", Spec: `{` + byLoad + `,"units":30,"below":"20k"}`, Fill: alsoCalled(working(0, 0.1, nil), 30, 45),
			Scope: check.Scope{Arm: checktest.Arm, Phase: check.Fault, After: time.Minute}, Met: check.Unknown,
			Evidence: append(slices.Repeat([]bundle.Kind{bundle.Heap}, 10), bundle.LoadSummary), Seen: "round 1 of load changes began at 10:00:45, not in"},
		{Name: "no load", Spec: `{` + byLoad + `,"units":30,"below":"20k"}`, Fill: working(0, 0.1, nil), Met: check.Unknown,
			Evidence: calledFor[:13], Seen: "no load changes summed up what it did"},
		{Name: "a counter and a load", Spec: `{"of":"cpu","counter":"c","load":"l","below":"1s"}`, Fill: (*checktest.Trial).Phases, Met: check.Unknown, Code: check.BadCheck, Seen: "want one of counter and load"},
		{Name: "one profile", Spec: `{` + each + `,"below":"20k"}`, Met: check.Unknown, Evidence: []bundle.Kind{bundle.Heap, bundle.MetricSamples}, Seen: "there are 1 samples of what was allocated",
			Fill: func(tr *checktest.Trial) {
				checktest.Looks(0, 0, nil)(tr)
				tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), checktest.Syncs, 0, 400, func(s float64) float64 { return s })
				tr.Allocs(100, 5, 5)
			}},
		{Name: "profiles of the beginning only", Spec: `{` + each + `,"below":"20k"}`, Met: check.Unknown, Evidence: append(checktest.Times(2, bundle.Heap), bundle.MetricSamples),
			Seen: "the samples of what was allocated lie within 30s",
			Fill: func(tr *checktest.Trial) {
				checktest.Looks(0, 0, nil)(tr)
				tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), checktest.Syncs, 0, 400, func(s float64) float64 { return s })
				tr.Allocs(50, 5, 5)
				tr.Allocs(80, 5, 5)
			}},
		{Name: "no profile", Spec: `{` + each + `,"below":"20k"}`, Met: check.Unknown, Evidence: cpu[1:], Seen: "there is no heap profile in",
			Fill: func(tr *checktest.Trial) {
				checktest.Looks(0, 0, nil)(tr)
				tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), checktest.Syncs, 0, 400, func(s float64) float64 { return s })
			}},
		{Name: "another process allocated", Spec: `{` + each + `,"below":"20k"}`, Met: check.Unknown, Code: check.OtherProcess, Evidence: profiles, Seen: "the process was not the same any more",
			Fill: func(tr *checktest.Trial) {
				working(0, 1, nil)(tr)
				st := tr.Stream(bundle.Identity, checktest.Arm)
				tr.Must(st.JSON(bundle.IdentitySample{Time: tr.At(151), PID: 9, StartTicks: 90}))
			}},
		{Name: "a damaged profile", Spec: `{` + each + `,"below":"20k"}`, Met: check.Unknown, Evidence: profiles, Seen: "reading heap profile",
			Fill: working(0, 1, func(tr *checktest.Trial) {
				_, err := tr.W.Write(bundle.Meta{Kind: bundle.Heap, Arm: checktest.Arm, Time: tr.At(150)}, "pb.gz", bytes.NewReader([]byte("Unauthorized\n")))
				tr.Must(err)
			})},
	}, func(q *checktest.Question) {
		q.Kind = "costPerUnit"
		q.Wanted = cmp.Or(q.Wanted, "for ")
		q.Scope = cmp.Or(q.Scope, check.Scope{Arm: checktest.Arm, Phase: check.Fault})
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
		checktest.Refused(t, "costPerUnit", spec, want)
	}
}

package metrics_test

import (
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestProcessCPU(t *testing.T) {
	both := []bundle.Kind{bundle.Identity, bundle.Objects}
	all := append(slices.Clone(both), bundle.Host)
	limited := func(spec, name string, tasks int, busy float64, met check.Truth, seen string) checktest.Question {
		q := checktest.Question{Name: name, Kind: "processCPU", Evidence: []bundle.Kind{bundle.Identity, bundle.Host}, Wanted: "the process's CPU time growing", Scope: check.Scope{Arm: checktest.Arm, Phase: check.Fault}, Spec: spec, Met: met, Seen: seen,
			Fill: checktest.Among(tasks, checktest.LooksOf(0.002, busy, nil))}
		if busy == 0.2 { // it got more than the limit, so nobody asks how much it could have got
			q.Evidence = q.Evidence[:1]
		}
		return q
	}
	const atRest, busy, none = `{"atMostTimesBaseline":8,"floor":0.01,"atMost":0.2}`, `{"timesBaseline":10,"floor":0.01,"above":0.25}`, `with 84 tasks for 2 cores one that always wants a CPU may get no more than 0.024 of it`
	for _, q := range []checktest.Question{
		limited(atRest, "at rest", 3, 0.004, check.True, "0.0032 a second"),
		limited(atRest, "at rest, or a loop that got nothing", 84, 0.06, check.Unknown, none),
		limited(atRest, "busy all the same", 84, 0.2, check.False, "times the baseline's"),
		limited(busy, "a loop that got nothing", 84, 0.06, check.Unknown, none),
		limited(busy, "busy all the same", 84, 0.2, check.True, "times the baseline's"),
		limited(busy, "not busy", 3, 0.004, check.False, "0.0032 a second"),
		limited(`{"atMost":0.1}`, "below a number, or a loop that got nothing", 84, 0.06, check.Unknown, none),
		limited(`{"above":0.1}`, "not above a number, or a loop that got nothing", 84, 0.06, check.Unknown, none),
	} {
		t.Run(q.Name, func(t *testing.T) { checktest.Open(t, q) })
	}
	checktest.Run(t, []checktest.Question{
		{Name: "a loop on a fast machine", Fill: checktest.Looks(0.002, 0.05, nil), Met: check.True, Evidence: both,
			Seen: "0.05 a second in 10:01:56.0 to 10:02:54.0, 10 times the baseline's 0.002 (counted as 0.005)"},
		{Name: "a loop on a slow machine", Fill: checktest.Looks(0.05, 0.9, nil), Met: check.True, Evidence: both, Seen: "0.9 a second"},
		{Name: "an agent at rest", Fill: checktest.Looks(0.002, 0.004, nil), Met: check.False, Evidence: all, Seen: "0.8 times the baseline's 0.002 (counted as 0.005)"},
		{Name: "at rest on a slow machine", Fill: checktest.Looks(0.05, 0.05, nil), Met: check.False, Evidence: all, Seen: "1 times the baseline's 0.05"},
		{Name: "the host's load is gone", Met: check.Unknown, Evidence: both, Seen: "nobody knows how much it could have got: host of ",
			Fill: func(tr *checktest.Trial) {
				checktest.LooksOf(0.002, 0.004, nil)(tr)
				tr.Fail(bundle.Host, bundle.Shared, 0, "no such file")
			}},
		{Name: "another process in the window", Met: check.Unknown, Evidence: both, Seen: "process 7 was followed by process 8 at 10:02:20",
			Fill: checktest.Looks(0.002, 0.05, func(one *bundle.IdentitySample, s float64) {
				if s >= 140 {
					one.PID = 8
				}
			})},
		{Name: "another process since the baseline", Met: check.Unknown, Code: check.OtherProcess, Evidence: both, Seen: "in the baseline it was another process",
			Fill: checktest.Looks(0.5, 0.5, func(one *bundle.IdentitySample, s float64) {
				if s >= 50 {
					one.PID, one.CPUSeconds = 8, one.CPUSeconds-24
				}
			})},
		{Name: "nobody saw its CPU time", Met: check.Unknown, Evidence: both, Seen: "nobody recorded the CPU time of vulnerable",
			Fill: checktest.Looks(0.002, 0.05, func(one *bundle.IdentitySample, _ float64) { one.CPUSeconds = 0 })},
		{Name: "nobody saw it for a while", Met: check.Unknown, Code: check.Gap, Evidence: both, Seen: "there is no sample of the process's CPU time in 10:02:08.0 to 10:02:32.0",
			Fill: checktest.Looks(0.002, 0.05, func(one *bundle.IdentitySample, s float64) {
				if s > 128 && s < 152 {
					one.PID = 0
				}
			})},
		{Name: "nobody looked", Met: check.Unknown, Evidence: both[1:], Seen: "no identity was recorded", Fill: func(tr *checktest.Trial) { tr.Phases(); checktest.Outside(tr).Covers(0, 400) }},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "processCPU", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec = `{"timesBaseline":4,"above":0.5,"floor":0.005,"window":{"terminating":1}}`
		q.Wanted = "the process's CPU time growing at least 4 times as fast as in the baseline (counted as 0.005 a second at least)"
	})
	for spec, want := range map[string]string{
		`{}`:                  "0 limits are given (want one of above, atMost, timesBaseline and atMostTimesBaseline)",
		`{"timesBaseline":4}`: "floor is 0 (want above 0 with the baseline, and nothing without)",
	} {
		checktest.Open(t, checktest.Question{Kind: "processCPU", Spec: spec, Scope: check.Scope{Arm: checktest.Arm, Phase: check.Fault}, Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown,
			Seen: want, Wanted: "the process's CPU time"})
	}
}

func TestMetricAbsent(t *testing.T) {
	one := []bundle.Kind{bundle.MetricSamples}
	checktest.Run(t, []checktest.Question{
		{Name: "metrics of other names", Met: check.True, Evidence: one, Seen: "none in 10:00:40.0 to 10:04:50.0, where 125 samples have other names", Fill: func(tr *checktest.Trial) {
			tr.Phases()
			tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), "go_goroutines", 0, 400, func(float64) float64 { return 9 })
		}},
		{Name: "it was there before", Met: check.False, Evidence: one, Seen: "there is one, at 10:00:10", Fill: func(tr *checktest.Trial) {
			tr.Phases()
			st := tr.Stream(bundle.MetricSamples, checktest.Arm)
			tr.Sample(st, "writes_total", 10, 0, nil)
			tr.Series(st, "go_goroutines", 12, 400, func(float64) float64 { return 9 })
		}},
		{Name: "nobody could read them", Met: check.Unknown, Code: check.Gap, Evidence: one, Seen: "does not cover", Fill: func(tr *checktest.Trial) {
			tr.Phases()
			tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), "go_goroutines", 0, 100, func(float64) float64 { return 9 })
		}},
		{Name: "an endpoint that has nothing", Met: check.Unknown, Evidence: one, Seen: "no metric at all was recorded", Fill: func(tr *checktest.Trial) {
			tr.Phases()
			st := tr.Stream(bundle.MetricSamples, checktest.Arm)
			st.Alive(tr.At(0))
			st.Alive(tr.At(400))
		}},
		{Name: "nobody asked", Met: check.Unknown, Seen: "no metrics.samples was recorded", Fill: func(tr *checktest.Trial) { tr.Phases() }},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.Spec = "metricAbsent", check.Scope{Arm: checktest.Arm, Phase: check.Fault}, `{"metric":"writes_total"}`
		q.Wanted = "no writes_total among the metrics"
	})
	checktest.Refused(t, "metricAbsent", `{}`, "metric is empty")
}

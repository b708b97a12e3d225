package metrics_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

const cpu = "process_cpu_seconds_total"

// burns is a CPU that is used at one rate until the fault's window, and at another from there on.
func burns(idle, busy float64) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		tr.Phases()
		checktest.Outside(tr).Covers(0, 400)
		st := tr.Stream(bundle.MetricSamples, checktest.Arm)
		tr.Series(st, cpu, 0, 400, func(s float64) float64 { return 1 + idle*min(s, 100) + busy*max(0, s-100) })
	}
}

func TestMetricRate(t *testing.T) {
	samples := []bundle.Kind{bundle.MetricSamples}
	both := append(samples, bundle.Objects)
	const window = `,"window":{"terminating":1}`
	checktest.Run(t, []checktest.Question{
		{Name: "above in the window", Spec: `{"above":0.8` + window + `}`, Fill: burns(0.01, 0.9), Met: check.True, Evidence: both, Seen: "0.9 a second in 10:01:56.0 to 10:02:54.1", Wanted: cpu + " growing by more than 0.8 a second"},
		{Name: "not above in the window", Spec: `{"above":0.9` + window + `}`, Fill: burns(0.01, 0.8), Met: check.False, Evidence: both, Seen: "0.8 a second"},
		{Name: "at most", Spec: `{"atMost":0.05` + window + `}`, Fill: burns(0.01, 0.02), Met: check.True, Evidence: both, Seen: "0.02 a second", Wanted: "growing by at most 0.05"},
		{Name: "more than at most", Spec: `{"atMost":0.05}`, Fill: burns(0.01, 0.9), Met: check.False, Evidence: samples, Seen: "a second in 10:00:40.0 to 10:04:48.1", Wanted: "at most"},
		{
			Name: "times the baseline", Spec: `{"timesBaseline":5,"above":2,"floor":0.001` + window + `}`, Fill: burns(0.01, 0.9), Met: check.True, Evidence: both,
			Seen: "90 times the baseline's 0.01", Wanted: "at least 5 times as fast as in the baseline",
		},
		{
			Name: "times a floor", Spec: `{"timesBaseline":5,"above":2,"floor":0.2` + window + `}`, Fill: burns(0.01, 0.9), Met: check.False, Evidence: both,
			Seen: "4.5 times the baseline's 0.01 (counted as 0.2)", Wanted: "counted as 0.2 a second at least",
		},
		{
			Name: "at most times the baseline", Spec: `{"atMostTimesBaseline":2,"atMost":2,"floor":0.01` + window + `}`, Fill: burns(0.01, 0.015), Met: check.True, Evidence: both,
			Seen: "1.5 times the baseline's 0.01", Wanted: "at most 2 times as fast",
		},
		{
			Name: "more than at most times the baseline", Spec: `{"atMostTimesBaseline":2,"atMost":2,"floor":0.01` + window + `}`, Fill: burns(0.01, 0.03), Met: check.False, Evidence: both,
			Seen: "3 times the baseline's 0.01", Wanted: "at most 2 times as fast",
		},
		{
			Name: "the baseline itself", Spec: `{"timesBaseline":5,"above":2,"floor":0.001` + window + `}`, Scope: check.Scope{Arm: checktest.Arm, Phase: check.Baseline}, Fill: burns(0.5, 0.9),
			Met: check.False, Evidence: samples, Seen: "1 times the baseline's 0.5", Wanted: "at least 5 times",
		},
		{
			Name: "a reset", Spec: `{"above":0.1}`, Met: check.Unknown, Code: check.OtherProcess, Evidence: samples, Seen: "fell from",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), cpu, 0, 400, func(s float64) float64 {
					if s > 200 {
						return s - 200
					}
					return s
				})
			},
		},
		{
			Name: "a reset since the baseline", Spec: `{"timesBaseline":5,"above":2,"floor":0.001` + window + `}`, Met: check.Unknown, Evidence: both, Seen: "in the baseline to", Wanted: "times",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				checktest.Outside(tr).Covers(0, 400)
				tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), cpu, 0, 400, func(s float64) float64 {
					if s > 90 {
						return s - 90
					}
					return 500 + s
				})
			},
		},
		{
			Name: "no window", Spec: `{"above":0.1` + window + `}`, Met: check.Unknown, Code: check.NotRecorded, Seen: "the window never came: nobody followed nodes",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), cpu, 0, 400, func(s float64) float64 { return s })
			},
		},
		{
			Name: "no samples in the window", Spec: `{"above":0.1` + window + `}`, Met: check.Unknown, Code: check.Gap, Evidence: both, Seen: "there is no sample of " + cpu,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				checktest.Outside(tr).Covers(0, 400)
				st := tr.Stream(bundle.MetricSamples, checktest.Arm)
				tr.Series(st, cpu, 0, 116, func(s float64) float64 { return s })
				tr.Series(st, cpu, 160, 400, func(s float64) float64 { return s })
			},
		},
		{
			Name: "nobody sampled it in the baseline", Spec: `{"timesBaseline":5,"above":2,"floor":0.001}`, Met: check.Unknown, Code: check.Gap, Evidence: samples, Seen: "in the baseline metrics.samples of vulnerable does not cover", Wanted: "times",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), cpu, 40, 400, func(s float64) float64 { return s })
			},
		},
	}, func(q *checktest.Question) {
		q.Kind, q.Spec = "metricRate", checktest.Over(t, `{"metric":"`+cpu+`"}`, q.Spec)
		if q.Scope.Phase == "" {
			q.Scope = check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		}
	})
	for spec, want := range map[string]string{
		`{"above":1}`:                                        "metric is empty",
		`{"metric":"a"}`:                                     "0 limits are given (want one of above, atMost, timesBaseline and atMostTimesBaseline)",
		`{"metric":"a","above":1,"atMost":2}`:                "2 limits are given",
		`{"metric":"a","above":-1}`:                          "above is -1 (want 0 or more)",
		`{"metric":"a","atMost":-1}`:                         "atMost is -1 (want 0 or more)",
		`{"metric":"a","timesBaseline":1,"floor":1}`:         "timesBaseline is 1 (want above 1, or the baseline itself would meet it)",
		`{"metric":"a","atMostTimesBaseline":0.5,"floor":1}`: "atMostTimesBaseline is 0.5 (want 1 or more)",
		`{"metric":"a","timesBaseline":2}`:                   "floor is 0 (want above 0 with the baseline, and nothing without)",
		`{"metric":"a","above":2,"floor":1}`:                 "floor is 1 (want above 0 with the baseline, and nothing without)",
		`{"metric":"a","above":2,"window":{"for":"0s"}}`:     "window.for is 0s (want above 0)",
	} {
		checktest.Refused(t, "metricRate", spec, want)
	}
}

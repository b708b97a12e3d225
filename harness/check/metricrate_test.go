package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

const cpu = "process_cpu_seconds_total"

// burns is a CPU that is used at one rate until the fault's window, and at another from there on.
func burns(idle, busy float64) func(*trial) {
	return func(tr *trial) {
		tr.phases()
		outside(tr).covers(0, 400)
		st := tr.stream(bundle.MetricSamples, arm)
		tr.series(st, cpu, 0, 400, func(s float64) float64 { return 1 + idle*min(s, 100) + busy*max(0, s-100) })
	}
}

func TestMetricRate(t *testing.T) {
	samples := []bundle.Kind{bundle.MetricSamples}
	both := append(samples, bundle.Objects)
	const window = `,"window":{"terminating":1}`
	run(t, []question{
		{name: "above in the window", spec: `{"above":0.8` + window + `}`, fill: burns(0.01, 0.9), met: check.True, evidence: both, seen: "0.9 a second in 10:01:56.0 to 10:02:54.1", wanted: cpu + " growing by more than 0.8 a second"},
		{name: "not above in the window", spec: `{"above":0.9` + window + `}`, fill: burns(0.01, 0.8), met: check.False, evidence: both, seen: "0.8 a second"},
		{name: "at most", spec: `{"atMost":0.05` + window + `}`, fill: burns(0.01, 0.02), met: check.True, evidence: both, seen: "0.02 a second", wanted: "growing by at most 0.05"},
		{name: "more than at most", spec: `{"atMost":0.05}`, fill: burns(0.01, 0.9), met: check.False, evidence: samples, seen: "a second in 10:00:40.0 to 10:04:48.1", wanted: "at most"},
		{
			name: "times the baseline", spec: `{"timesBaseline":5,"above":2,"floor":0.001` + window + `}`, fill: burns(0.01, 0.9), met: check.True, evidence: both,
			seen: "90 times the baseline's 0.01", wanted: "at least 5 times as fast as in the baseline",
		},
		{
			name: "times a floor", spec: `{"timesBaseline":5,"above":2,"floor":0.2` + window + `}`, fill: burns(0.01, 0.9), met: check.False, evidence: both,
			seen: "4.5 times the baseline's 0.01 (counted as 0.2)", wanted: "counted as 0.2 a second at least",
		},
		{
			name: "at most times the baseline", spec: `{"atMostTimesBaseline":2,"atMost":2,"floor":0.01` + window + `}`, fill: burns(0.01, 0.015), met: check.True, evidence: both,
			seen: "1.5 times the baseline's 0.01", wanted: "at most 2 times as fast",
		},
		{
			name: "more than at most times the baseline", spec: `{"atMostTimesBaseline":2,"atMost":2,"floor":0.01` + window + `}`, fill: burns(0.01, 0.03), met: check.False, evidence: both,
			seen: "3 times the baseline's 0.01", wanted: "at most 2 times as fast",
		},
		{
			name: "the baseline itself", spec: `{"timesBaseline":5,"above":2,"floor":0.001` + window + `}`, scope: check.Scope{Arm: arm, Phase: check.Baseline}, fill: burns(0.5, 0.9),
			met: check.False, evidence: samples, seen: "1 times the baseline's 0.5", wanted: "at least 5 times",
		},
		{
			name: "a reset", spec: `{"above":0.1}`, met: check.Unknown, evidence: samples, seen: "fell from",
			fill: func(tr *trial) {
				tr.phases()
				tr.series(tr.stream(bundle.MetricSamples, arm), cpu, 0, 400, func(s float64) float64 {
					if s > 200 {
						return s - 200
					}
					return s
				})
			},
		},
		{
			name: "a reset since the baseline", spec: `{"timesBaseline":5,"above":2,"floor":0.001` + window + `}`, met: check.Unknown, evidence: both, seen: "in the baseline to", wanted: "times",
			fill: func(tr *trial) {
				tr.phases()
				outside(tr).covers(0, 400)
				tr.series(tr.stream(bundle.MetricSamples, arm), cpu, 0, 400, func(s float64) float64 {
					if s > 90 {
						return s - 90
					}
					return 500 + s
				})
			},
		},
		{
			name: "no window", spec: `{"above":0.1` + window + `}`, met: check.Unknown, seen: "the window never came: nobody followed nodes",
			fill: func(tr *trial) {
				tr.phases()
				tr.series(tr.stream(bundle.MetricSamples, arm), cpu, 0, 400, func(s float64) float64 { return s })
			},
		},
		{
			name: "no samples in the window", spec: `{"above":0.1` + window + `}`, met: check.Unknown, evidence: both, seen: "there is no sample of " + cpu,
			fill: func(tr *trial) {
				tr.phases()
				outside(tr).covers(0, 400)
				st := tr.stream(bundle.MetricSamples, arm)
				tr.series(st, cpu, 0, 116, func(s float64) float64 { return s })
				tr.series(st, cpu, 160, 400, func(s float64) float64 { return s })
			},
		},
		{
			name: "nobody sampled it in the baseline", spec: `{"timesBaseline":5,"above":2,"floor":0.001}`, met: check.Unknown, evidence: samples, seen: "in the baseline metrics.samples of vulnerable does not cover", wanted: "times",
			fill: func(tr *trial) {
				tr.phases()
				tr.series(tr.stream(bundle.MetricSamples, arm), cpu, 40, 400, func(s float64) float64 { return s })
			},
		},
	}, func(q *question) {
		q.kind, q.spec = "metricRate", over(t, `{"metric":"`+cpu+`"}`, q.spec)
		if q.scope.Phase == "" {
			q.scope = check.Scope{Arm: arm, Phase: check.Fault}
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
		refused(t, "metricRate", spec, want)
	}
}

package check_test

import (
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestProcessCPU(t *testing.T) {
	both := []bundle.Kind{bundle.Identity, bundle.Objects}
	all := append(slices.Clone(both), bundle.Host)
	limited := func(spec, name string, tasks int, busy float64, met check.Truth, seen string) question {
		q := question{name: name, kind: "processCPU", evidence: []bundle.Kind{bundle.Identity, bundle.Host}, wanted: "the process's CPU time growing", scope: check.Scope{Arm: arm, Phase: check.Fault}, spec: spec, met: met, seen: seen,
			fill: among(tasks, looksOf(0.002, busy, nil))}
		if busy == 0.2 { // it got more than the limit, so nobody asks how much it could have got
			q.evidence = q.evidence[:1]
		}
		return q
	}
	const atRest, busy, none = `{"atMostTimesBaseline":8,"floor":0.01,"atMost":0.2}`, `{"timesBaseline":10,"floor":0.01,"above":0.25}`, `with 84 tasks for 2 cores one that always wants a CPU may get no more than 0.024 of it`
	for _, q := range []question{
		limited(atRest, "at rest", 3, 0.004, check.True, "0.0032 a second"),
		limited(atRest, "at rest, or a loop that got nothing", 84, 0.06, check.Unknown, none),
		limited(atRest, "busy all the same", 84, 0.2, check.False, "times the baseline's"),
		limited(busy, "a loop that got nothing", 84, 0.06, check.Unknown, none),
		limited(busy, "busy all the same", 84, 0.2, check.True, "times the baseline's"),
		limited(busy, "not busy", 3, 0.004, check.False, "0.0032 a second"),
		limited(`{"atMost":0.1}`, "below a number, or a loop that got nothing", 84, 0.06, check.Unknown, none),
		limited(`{"above":0.1}`, "not above a number, or a loop that got nothing", 84, 0.06, check.Unknown, none),
	} {
		t.Run(q.name, func(t *testing.T) { ask(t, q) })
	}
	run(t, []question{
		{name: "a loop on a fast machine", fill: looks(0.002, 0.05, nil), met: check.True, evidence: both,
			seen: "0.05 a second in 10:01:56.0 to 10:02:54.0, 10 times the baseline's 0.002 (counted as 0.005)"},
		{name: "a loop on a slow machine", fill: looks(0.05, 0.9, nil), met: check.True, evidence: both, seen: "0.9 a second"},
		{name: "an agent at rest", fill: looks(0.002, 0.004, nil), met: check.False, evidence: all, seen: "0.8 times the baseline's 0.002 (counted as 0.005)"},
		{name: "at rest on a slow machine", fill: looks(0.05, 0.05, nil), met: check.False, evidence: all, seen: "1 times the baseline's 0.05"},
		{name: "the host's load is gone", met: check.Unknown, evidence: both, seen: "nobody knows how much it could have got: host of ",
			fill: func(tr *trial) {
				looksOf(0.002, 0.004, nil)(tr)
				tr.fail(bundle.Host, bundle.Shared, 0, "no such file")
			}},
		{name: "another process in the window", met: check.Unknown, evidence: both, seen: "process 7 was followed by process 8 at 10:02:20",
			fill: looks(0.002, 0.05, func(one *bundle.IdentitySample, s float64) {
				if s >= 140 {
					one.PID = 8
				}
			})},
		{name: "another process since the baseline", met: check.Unknown, evidence: both, seen: "in the baseline it was another process",
			fill: looks(0.5, 0.5, func(one *bundle.IdentitySample, s float64) {
				if s >= 50 {
					one.PID, one.CPUSeconds = 8, one.CPUSeconds-24
				}
			})},
		{name: "nobody saw its CPU time", met: check.Unknown, evidence: both, seen: "nobody recorded the CPU time of vulnerable",
			fill: looks(0.002, 0.05, func(one *bundle.IdentitySample, _ float64) { one.CPUSeconds = 0 })},
		{name: "nobody saw it for a while", met: check.Unknown, evidence: both, seen: "there is no sample of the process's CPU time in 10:02:08.0 to 10:02:32.0",
			fill: looks(0.002, 0.05, func(one *bundle.IdentitySample, s float64) {
				if s > 128 && s < 152 {
					one.PID = 0
				}
			})},
		{name: "nobody looked", met: check.Unknown, evidence: both[1:], seen: "no identity was recorded", fill: func(tr *trial) { tr.phases(); outside(tr).covers(0, 400) }},
	}, func(q *question) {
		q.kind, q.scope = "processCPU", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec = `{"timesBaseline":4,"above":0.5,"floor":0.005,"window":{"terminating":1}}`
		q.wanted = "the process's CPU time growing at least 4 times as fast as in the baseline (counted as 0.005 a second at least)"
	})
	for spec, want := range map[string]string{
		`{}`:                  "0 limits are given (want one of above, atMost, timesBaseline and atMostTimesBaseline)",
		`{"timesBaseline":4}`: "floor is 0 (want above 0 with the baseline, and nothing without)",
	} {
		ask(t, question{kind: "processCPU", spec: spec, scope: check.Scope{Arm: arm, Phase: check.Fault}, fill: func(tr *trial) { tr.phases() }, met: check.Unknown,
			seen: want, wanted: "the process's CPU time"})
	}
}

func TestMetricAbsent(t *testing.T) {
	one := []bundle.Kind{bundle.MetricSamples}
	run(t, []question{
		{name: "metrics of other names", met: check.True, evidence: one, seen: "none in 10:00:40.0 to 10:04:50.0, where 125 samples have other names", fill: func(tr *trial) {
			tr.phases()
			tr.series(tr.stream(bundle.MetricSamples, arm), "go_goroutines", 0, 400, func(float64) float64 { return 9 })
		}},
		{name: "it was there before", met: check.False, evidence: one, seen: "there is one, at 10:00:10", fill: func(tr *trial) {
			tr.phases()
			st := tr.stream(bundle.MetricSamples, arm)
			tr.sample(st, "writes_total", 10, 0, nil)
			tr.series(st, "go_goroutines", 12, 400, func(float64) float64 { return 9 })
		}},
		{name: "nobody could read them", met: check.Unknown, evidence: one, seen: "does not cover", fill: func(tr *trial) {
			tr.phases()
			tr.series(tr.stream(bundle.MetricSamples, arm), "go_goroutines", 0, 100, func(float64) float64 { return 9 })
		}},
		{name: "an endpoint that has nothing", met: check.Unknown, evidence: one, seen: "no metric at all was recorded", fill: func(tr *trial) {
			tr.phases()
			st := tr.stream(bundle.MetricSamples, arm)
			st.Alive(tr.at(0))
			st.Alive(tr.at(400))
		}},
		{name: "nobody asked", met: check.Unknown, seen: "no metrics.samples was recorded", fill: func(tr *trial) { tr.phases() }},
	}, func(q *question) {
		q.kind, q.scope, q.spec = "metricAbsent", check.Scope{Arm: arm, Phase: check.Fault}, `{"metric":"writes_total"}`
		q.wanted = "no writes_total among the metrics"
	})
	refused(t, "metricAbsent", `{}`, "metric is empty")
}

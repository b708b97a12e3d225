package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestMetricIncrease(t *testing.T) {
	grow := func(from float64) func(float64) float64 {
		return func(s float64) float64 { return max(0, s-from) }
	}
	run(t, []question{
		{
			name: "it grew", fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.series(st, relists, 0, 394, grow(0)) }),
			met: check.True, seen: "grew by 98, from 296 to 394 between 10:04:56.0 to 10:06:34.1", evidence: oneStream,
		},
		{
			name: "it stood", fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.series(st, relists, 0, 394, func(float64) float64 { return 7 }) }),
			met: check.False, seen: "grew by 0, from 7 to 7", evidence: oneStream,
		},
		{
			name: "what it grew by during the fault and its lift doesn't count",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 394, func(s float64) float64 { return min(s, recoveryAt) })
			}),
			met: check.False, seen: "grew by 0", evidence: oneStream,
		},
		{
			name: "not enough", fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.series(st, relists, 0, 394, grow(390)) }),
			met: check.False, seen: "grew by 4,", evidence: oneStream,
		},
		{
			name: "a reset is unknown, also when it ends higher", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 330, func(float64) float64 { return 5 })
				tr.series(st, relists, 332, 394, func(s float64) float64 { return s - 332 })
			}),
			met: check.Unknown, seen: "fell from 5 to 0 at 10:05:32: it was reset", evidence: oneStream,
		},
		{
			name: "one sample", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.sample(st, relists, 300, 5, nil)
				st.Alive(tr.at(0))
				st.Alive(tr.at(400))
			}),
			met: check.Unknown, seen: "there is no sample of", evidence: oneStream,
		},
		{
			name: "half in the window at both ends", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.sample(st, relists, recoveryAt-0.05, 0, nil)
				tr.series(st, relists, recoveryAt+1, 394, func(float64) float64 { return 3 })
				tr.sample(st, relists, endAt-0.05, 50, nil)
			}),
			met: check.False, seen: "grew by 0, from 3 to 3", evidence: oneStream,
		},
		{
			name: "not enough, with a gap in which the rest may lie", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 394, grow(391))
				st.Gap(tr.at(300), tr.at(315), "timeout")
			}),
			met: check.Unknown, seen: "timeout", evidence: oneStream,
		},
		{
			name: "labels add up to the component's total", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				for s := 0.0; s <= 394; s += 2 {
					tr.sample(st, relists, s, 1, map[string]string{"op": "a"})
					tr.sample(st, relists, s, s, map[string]string{"op": "b"})
				}
			}),
			met: check.True, seen: "from 297 to 395", evidence: oneStream,
		},
		{
			name: "one label's samples", spec: `{"labels":{"op":"a"}}`, fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				for s := 0.0; s <= 394; s += 2 {
					tr.sample(st, relists, s, 1, map[string]string{"op": "a"})
					tr.sample(st, relists, s, s, map[string]string{"op": "b"})
				}
			}),
			met: check.False, seen: "from 1 to 1", evidence: oneStream,
		},
		{
			name: "the tail only: it grew, and stopped", spec: `{"tail":"20s"}`, wanted: "in the last 20s",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 394, func(s float64) float64 { return min(s, 370) })
			}),
			met: check.False, seen: "grew by 0", evidence: oneStream,
		},
		{
			name: "the tail only: it grows", spec: `{"tail":"20s"}`, wanted: "in the last 20s",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.series(st, relists, 0, 394, grow(0)) }),
			met:  check.True, seen: "grew by 18, from 376 to 394", evidence: oneStream,
		},
		{
			name: "the tail only: two samples around one slow answer are no standstill", spec: `{"tail":"20s"}`, wanted: "in the last 20s",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 378, func(s float64) float64 { return min(s, 376) })
				tr.must(st.JSON(bundle.MetricSample{Time: tr.at(380), Done: tr.at(393), Name: relists, Value: 376}))
				st.Alive(tr.at(394))
			}),
			met: check.Unknown, seen: "grew by 0, from 376 to 376 between 10:06:16.0 to 10:06:33.0; its samples lie within 4s of the 20s", evidence: oneStream,
		},
		{
			name: "the tail only: what grew between two samples grew, however close they are", spec: `{"tail":"20s"}`, wanted: "in the last 20s",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 380, func(s float64) float64 { return 2 * s })
				st.Alive(tr.at(394))
			}),
			met: check.True, seen: "grew by 8, from 752 to 760", evidence: oneStream,
		},
		{
			name: "a metric that is not there", spec: `{"metric":"other_total"}`, wanted: "other_total grows",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.series(st, relists, 0, 394, grow(0)) }),
			met:  check.Unknown, seen: "the metrics of vulnerable never showed other_total", evidence: oneStream,
		},
		{
			name: "it stood, and the samples left out a stretch", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 320, func(float64) float64 { return 5 })
				tr.series(st, relists, 350, 394, func(float64) float64 { return 5 })
			}),
			met: check.Unknown, seen: "there is no sample of kubelet_pleg_relist_duration_seconds_count in 10:05:20.0 to 10:05:50.0", evidence: oneStream,
		},
		{
			name: "it stood, and the collector ended early", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 360, func(float64) float64 { return 5 })
			}),
			met: check.Unknown, seen: "does not cover", evidence: oneStream,
		},
		{
			name: "a capture that failed", fill: func(tr *trial) { tr.phases(); tr.fail(bundle.MetricSamples, arm, 0, "no route to host") },
			met: check.Unknown, seen: "metrics.samples of vulnerable: the capture failed: no route to host",
		},
		{
			name: "a missing file", fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.series(st, relists, 0, 394, grow(0)) }), damage: remove(t, bundle.MetricSamples),
			met: check.Unknown, seen: "the file artifacts/00001-metrics.samples-vulnerable.jsonl is missing",
		},
		{
			name: "it stood, and a line is damaged", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 394, func(float64) float64 { return 5 })
				tr.must(st.Line([]byte("{}}")))
			}),
			met: check.Unknown, seen: "reading artifacts/00001-metrics.samples-vulnerable.jsonl: line 199: invalid character", evidence: oneStream,
		},
		{name: "the other arm grew", fill: recorded(other, func(tr *trial, st *bundle.Stream) { tr.series(st, relists, 0, 394, grow(0)) }), met: check.Unknown, seen: "was recorded for vulnerable"},
		{name: "by nothing", spec: `{"by":{"number":0}}`, wanted: "grows", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "by.number is 0 (want above 0)"},
		{name: "by a duration", spec: `{"by":{"duration":"5s"}}`, wanted: "grows", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "by is a duration (want a number"},
	}, func(q *question) {
		q.kind, q.scope = "metricIncrease", check.Scope{Arm: arm, Phase: check.Recovery}
		q.spec = over(t, `{"metric":"`+relists+`","by":{"number":5}}`, q.spec)
		if q.wanted == "" {
			q.wanted = relists + " grows by at least 5"
		}
	})
}

package metrics_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestMetricIncrease(t *testing.T) {
	grow := func(from float64) func(float64) float64 {
		return func(s float64) float64 { return max(0, s-from) }
	}
	checktest.Run(t, []checktest.Question{
		{
			Name: "it grew", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) { tr.Series(st, checktest.Relists, 0, 394, grow(0)) }),
			Met: check.True, Seen: "grew by 98, from 296 to 394 between 10:04:56.0 to 10:06:34.1", Evidence: checktest.OneStream,
		},
		{
			Name: "it stood", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, checktest.Relists, 0, 394, func(float64) float64 { return 7 })
			}),
			Met: check.False, Seen: "grew by 0, from 7 to 7", Evidence: checktest.OneStream,
		},
		{
			Name: "what it grew by during the fault and its lift doesn't count",
			Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, checktest.Relists, 0, 394, func(s float64) float64 { return min(s, checktest.RecoveryAt) })
			}),
			Met: check.False, Seen: "grew by 0", Evidence: checktest.OneStream,
		},
		{
			Name: "not enough", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) { tr.Series(st, checktest.Relists, 0, 394, grow(390)) }),
			Met: check.False, Seen: "grew by 4,", Evidence: checktest.OneStream,
		},
		{
			Name: "a reset is unknown, also when it ends higher", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, checktest.Relists, 0, 330, func(float64) float64 { return 5 })
				tr.Series(st, checktest.Relists, 332, 394, func(s float64) float64 { return s - 332 })
			}),
			Met: check.Unknown, Code: check.OtherProcess, Seen: "fell from 5 to 0 at 10:05:32: it was reset", Evidence: checktest.OneStream,
		},
		{
			Name: "one sample", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Sample(st, checktest.Relists, 300, 5, nil)
				st.Alive(tr.At(0))
				st.Alive(tr.At(400))
			}),
			Met: check.Unknown, Code: check.Gap, Seen: "there is no sample of", Evidence: checktest.OneStream,
		},
		{
			Name: "half in the window at both ends", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Sample(st, checktest.Relists, checktest.RecoveryAt-0.05, 0, nil)
				tr.Series(st, checktest.Relists, checktest.RecoveryAt+1, 394, func(float64) float64 { return 3 })
				tr.Sample(st, checktest.Relists, checktest.EndAt-0.05, 50, nil)
			}),
			Met: check.False, Seen: "grew by 0, from 3 to 3", Evidence: checktest.OneStream,
		},
		{
			Name: "not enough, with a gap in which the rest may lie", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, checktest.Relists, 0, 394, grow(391))
				st.Gap(tr.At(300), tr.At(315), "timeout")
			}),
			Met: check.Unknown, Seen: "timeout", Evidence: checktest.OneStream,
		},
		{
			Name: "labels add up to the component's total", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				for s := 0.0; s <= 394; s += 2 {
					tr.Sample(st, checktest.Relists, s, 1, map[string]string{"op": "a"})
					tr.Sample(st, checktest.Relists, s, s, map[string]string{"op": "b"})
				}
			}),
			Met: check.True, Seen: "from 297 to 395", Evidence: checktest.OneStream,
		},
		{
			Name: "one label's samples", Spec: `{"labels":{"op":"a"}}`, Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				for s := 0.0; s <= 394; s += 2 {
					tr.Sample(st, checktest.Relists, s, 1, map[string]string{"op": "a"})
					tr.Sample(st, checktest.Relists, s, s, map[string]string{"op": "b"})
				}
			}),
			Met: check.False, Seen: "from 1 to 1", Evidence: checktest.OneStream,
		},
		{
			Name: "the tail only: it grew, and stopped", Spec: `{"tail":"20s"}`, Wanted: "in the last 20s",
			Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, checktest.Relists, 0, 394, func(s float64) float64 { return min(s, 370) })
			}),
			Met: check.False, Seen: "grew by 0", Evidence: checktest.OneStream,
		},
		{
			Name: "the tail only: it grows", Spec: `{"tail":"20s"}`, Wanted: "in the last 20s",
			Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) { tr.Series(st, checktest.Relists, 0, 394, grow(0)) }),
			Met:  check.True, Seen: "grew by 18, from 376 to 394", Evidence: checktest.OneStream,
		},
		{
			Name: "the tail only: two samples around one slow answer are no standstill", Spec: `{"tail":"20s"}`, Wanted: "in the last 20s",
			Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, checktest.Relists, 0, 378, func(s float64) float64 { return min(s, 376) })
				tr.Must(st.JSON(bundle.MetricSample{Time: tr.At(380), Done: tr.At(393), Name: checktest.Relists, Value: 376}))
				st.Alive(tr.At(394))
			}),
			Met: check.Unknown, Seen: "grew by 0, from 376 to 376 between 10:06:16.0 to 10:06:33.0; its samples lie within 4s of the 20s", Evidence: checktest.OneStream,
		},
		{
			Name: "the tail only: what grew between two samples grew, however close they are", Spec: `{"tail":"20s"}`, Wanted: "in the last 20s",
			Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, checktest.Relists, 0, 380, func(s float64) float64 { return 2 * s })
				st.Alive(tr.At(394))
			}),
			Met: check.True, Seen: "grew by 8, from 752 to 760", Evidence: checktest.OneStream,
		},
		{
			Name: "a metric that is not there", Spec: `{"metric":"other_total"}`, Wanted: "other_total grows",
			Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) { tr.Series(st, checktest.Relists, 0, 394, grow(0)) }),
			Met:  check.Unknown, Seen: "the metrics of vulnerable never showed other_total", Evidence: checktest.OneStream,
		},
		{
			Name: "it stood, and the samples left out a stretch", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, checktest.Relists, 0, 320, func(float64) float64 { return 5 })
				tr.Series(st, checktest.Relists, 350, 394, func(float64) float64 { return 5 })
			}),
			Met: check.Unknown, Code: check.Gap, Seen: "there is no sample of kubelet_pleg_relist_duration_seconds_count in 10:05:20.0 to 10:05:50.0", Evidence: checktest.OneStream,
		},
		{
			Name: "it stood, and the collector ended early", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, checktest.Relists, 0, 360, func(float64) float64 { return 5 })
			}),
			Met: check.Unknown, Code: check.Gap, Seen: "does not cover", Evidence: checktest.OneStream,
		},
		{
			Name: "a capture that failed", Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Fail(bundle.MetricSamples, checktest.Arm, 0, "no route to host")
			},
			Met: check.Unknown, Code: check.Unreadable, Seen: "metrics.samples of vulnerable: the capture failed: no route to host",
		},
		{
			Name: "a missing file", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) { tr.Series(st, checktest.Relists, 0, 394, grow(0)) }), Damage: checktest.Remove(t, bundle.MetricSamples),
			Met: check.Unknown, Code: check.Unreadable, Seen: "the file artifacts/00001-metrics.samples-vulnerable.jsonl is missing",
		},
		{
			Name: "it stood, and a line is damaged", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, checktest.Relists, 0, 394, func(float64) float64 { return 5 })
				tr.Must(st.Line([]byte("{}}")))
			}),
			Met: check.Unknown, Seen: "reading artifacts/00001-metrics.samples-vulnerable.jsonl: line 199: invalid character", Evidence: checktest.OneStream,
		},
		{Name: "the other arm grew", Fill: checktest.Recorded(checktest.Other, func(tr *checktest.Trial, st *bundle.Stream) { tr.Series(st, checktest.Relists, 0, 394, grow(0)) }), Met: check.Unknown, Code: check.NotRecorded, Seen: "was recorded for vulnerable"},
		{Name: "by nothing", Spec: `{"by":{"number":0}}`, Wanted: "grows", Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Code: check.BadCheck, Seen: "by.number is 0 (want above 0)"},
		{Name: "by a duration", Spec: `{"by":{"duration":"5s"}}`, Wanted: "grows", Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Code: check.BadCheck, Seen: "by is a duration (want a number"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "metricIncrease", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
		q.Spec = checktest.Over(t, `{"metric":"`+checktest.Relists+`","by":{"number":5}}`, q.Spec)
		if q.Wanted == "" {
			q.Wanted = checktest.Relists + " grows by at least 5"
		}
	})
}

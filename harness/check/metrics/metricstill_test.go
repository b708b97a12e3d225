package metrics_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestMetricStill(t *testing.T) {
	both := func(count, seen func(float64) float64) func(*checktest.Trial) {
		return checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
			tr.Series(st, checktest.Relists, 0, 394, count)
			tr.Series(st, checktest.LastSeen, 0, 394, seen)
		})
	}
	at := func(x float64) func(float64) float64 { return func(float64) float64 { return x } }
	checktest.Run(t, []checktest.Question{
		{
			Name: "both stand", Fill: both(at(17), at(1772359260)), Met: check.True, Evidence: checktest.OneStream,
			Seen: "kubelet_pleg_relist_duration_seconds_count stood at 17 for 1m38s; kubelet_pleg_last_seen_seconds stood at 2026-03-01 10:01:00.0 UTC for 1m38s",
		},
		{
			Name: "one moves", Fill: both(at(17), func(s float64) float64 { return s }), Met: check.False, Evidence: checktest.OneStream,
			Seen: "kubelet_pleg_last_seen_seconds changed from 296 to 298 by 10:04:58",
		},
		{
			Name: "a last move in mid-window", Fill: both(func(s float64) float64 { return min(s, 340) - min(s, 338) }, at(1)), Met: check.False,
			Seen: "changed from 0 to 2", Evidence: checktest.OneStream,
		},
		{
			Name: "moved until the lift was seen", Fill: both(func(s float64) float64 { return min(s, 294) }, at(1)), Met: check.True,
			Seen: "stood at 294", Evidence: checktest.OneStream,
		},
		{
			Name: "a gap", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, checktest.Relists, 0, 394, at(17))
				tr.Series(st, checktest.LastSeen, 0, 394, at(1))
				st.Gap(tr.At(300), tr.At(320), "no answer for 20s")
			}),
			Met: check.Unknown, Seen: "no answer for 20s", Evidence: checktest.OneStream,
		},
		{
			Name: "a change is decisive in spite of a gap", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, checktest.Relists, 0, 394, at(17))
				tr.Series(st, checktest.LastSeen, 0, 394, func(s float64) float64 { return s })
				st.Gap(tr.At(300), tr.At(320), "no answer for 20s")
			}),
			Met: check.False, Seen: "changed from 296 to 298", Evidence: checktest.OneStream,
		},
		{
			Name: "equal at both ends, and left out in between", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, checktest.Relists, 0, 394, at(17))
				tr.Series(st, checktest.LastSeen, 0, 300, at(1))
				tr.Series(st, checktest.LastSeen, 390, 394, at(1))
			}),
			Met: check.Unknown, Code: check.Gap, Seen: "kubelet_pleg_last_seen_seconds there is no sample of", Evidence: checktest.OneStream,
		},
		{
			Name: "not watched for long enough", Spec: `{"span":"2m"}`, Wanted: "unchanged for at least 2m", Fill: both(at(17), at(1)),
			Met: check.Unknown, Seen: "was watched for 1m38s only", Evidence: checktest.OneStream,
		},
		{
			Name: "one of them is not there", Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) { tr.Series(st, checktest.Relists, 0, 394, at(17)) }),
			Met: check.Unknown, Code: check.NotRecorded, Seen: "stood at 17 for 1m38s; kubelet_pleg_last_seen_seconds the metrics of vulnerable never showed", Evidence: checktest.OneStream,
		},
		{Name: "the other arm stands", Fill: checktest.Recorded(checktest.Other, func(tr *checktest.Trial, st *bundle.Stream) { tr.Series(st, checktest.Relists, 0, 394, at(17)) }), Met: check.Unknown, Code: check.NotRecorded, Seen: "was recorded for vulnerable"},
		{Name: "no metrics", Spec: `{"metrics":[]}`, Wanted: "unchanged", Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Code: check.BadCheck, Seen: "metrics is [] (want at least one name)"},
		{Name: "no span", Spec: `{"span":"0s"}`, Wanted: "unchanged", Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Code: check.BadCheck, Seen: "span is 0s (want above 0)"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "metricStill", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
		q.Spec = checktest.Over(t, `{"metrics":["`+checktest.Relists+`","`+checktest.LastSeen+`"],"span":"50s"}`, q.Spec)
		if q.Wanted == "" {
			q.Wanted = "unchanged for at least 50s"
		}
	})
}

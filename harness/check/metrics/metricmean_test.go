package metrics_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestMetricMean(t *testing.T) {
	deletes := map[string]string{"operation": "delete", "type": "*core.ConfigMap"}
	of := func(arm string, rates ...checktest.Rate) func(*checktest.Trial) {
		return checktest.Recorded(arm, func(tr *checktest.Trial, st *bundle.Stream) { tr.Observe(st, 0, 394, deletes, rates...) })
	}
	quick, slow := checktest.Rate{From: 0, PerSecond: 50, Seconds: 0.003}, checktest.Rate{From: 100, PerSecond: 5, Seconds: 1.02}
	checktest.Run(t, []checktest.Question{
		{
			Name: "slow for a while", Fill: of(checktest.Arm, quick, slow, checktest.Rate{From: 160, PerSecond: 50, Seconds: 0.003}), Met: check.True, Evidence: checktest.OneStream,
			Seen: "mean 34.45ms over 9700 observations, at most 1.02s over 50 in 10:01:4", Wanted: `etcd_request_duration_seconds{operation="delete"} with a mean above 800ms over at least 20 observations within 10s`,
		},
		{
			Name: "never slow", Fill: of(checktest.Arm, quick), Met: check.False, Seen: "mean 3ms over 12400 observations, at most 3ms over 500", Evidence: checktest.OneStream,
		},
		{
			Name: "slow before and after the phase", Fill: of(checktest.Arm, checktest.Rate{From: 0, PerSecond: 5, Seconds: 2}, checktest.Rate{From: 40, PerSecond: 50, Seconds: 0.003}, checktest.Rate{From: 290, PerSecond: 5, Seconds: 2}), Met: check.False, Seen: "at most 3ms", Evidence: checktest.OneStream,
		},
		{
			Name: "slow, but only a few", Fill: of(checktest.Arm, checktest.Rate{From: 0, PerSecond: 0.1, Seconds: 1.5}), Met: check.False, Seen: "mean 1.5s over 24.8 observations, fewer than 20 within 10s", Evidence: checktest.OneStream,
		},
		{
			Name: "the whole window's mean, without a span", Spec: `{"span":""}`, Fill: of(checktest.Arm, quick, slow, checktest.Rate{From: 160, PerSecond: 50, Seconds: 0.003}), Met: check.False,
			Seen: "mean 34.45ms over 9700 observations", Evidence: checktest.OneStream,
		},
		{
			Name: "requests of all types are added up", Met: check.True, Seen: "at most 1.02s over 100", Evidence: checktest.OneStream,
			Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				for s := 0.0; s <= 394; s += 2 {
					for _, typ := range []string{"a", "b"} {
						labels := map[string]string{"operation": "delete", "type": typ}
						tr.Sample(st, checktest.EtcdRequests+"_sum", s, s*5*1.02, labels)
						tr.Sample(st, checktest.EtcdRequests+"_count", s, s*5, labels)
					}
					tr.Sample(st, checktest.EtcdRequests+"_sum", s, s*500*0.001, map[string]string{"operation": "get"})
					tr.Sample(st, checktest.EtcdRequests+"_count", s, s*500, map[string]string{"operation": "get"})
				}
			}),
		},
		{
			Name: "another operation was slow", Met: check.Unknown, Code: check.NotRecorded, Seen: "0 observations, fewer than 20 within 10s; the metrics of vulnerable never showed", Evidence: checktest.OneStream,
			Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Observe(st, 0, 394, map[string]string{"operation": "get"}, checktest.Rate{From: 0, PerSecond: 50, Seconds: 2})
			}),
		},
		{
			Name: "not seen slow, with a gap", Met: check.Unknown, Code: check.Gap, Seen: "mean 3ms over 12400 observations, at most 3ms over 500 in 10:00:40.0 to 10:00:50.0; metrics.samples of vulnerable does not cover", Evidence: checktest.OneStream,
			Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Observe(st, 0, 394, deletes, quick)
				st.Gap(tr.At(100), tr.At(115), "timeout")
			}),
		},
		{
			Name: "seen slow, whatever the gap", Met: check.True, Seen: "at most 1.02s", Evidence: checktest.OneStream,
			Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Observe(st, 0, 394, deletes, quick, slow)
				st.Gap(tr.At(200), tr.At(215), "timeout")
			}),
		},
		{
			Name: "seen slow by a process that is gone", Met: check.True, Seen: "at most 1.02s", Evidence: checktest.OneStream,
			Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Observe(st, 0, 198, deletes, quick, slow)
				tr.Observe(st, 200, 394, deletes, quick)
			}),
		},
		{
			Name: "a process that began anew before it was slow", Met: check.Unknown, Code: check.OtherProcess, Seen: "etcd_request_duration_seconds fell at 10:01:40: it was reset", Evidence: checktest.OneStream,
			Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Observe(st, 0, 98, deletes, quick)
				tr.Observe(st, 100, 394, deletes, slow)
			}),
		},
		{Name: "the other arm's etcd", Fill: of(checktest.Other, slow), Met: check.Unknown, Code: check.NotRecorded, Seen: "no metrics.samples was recorded for vulnerable"},
		{
			Name: "a count without its sum", Met: check.Unknown, Seen: "has no sum beside it at 10:00:40", Evidence: checktest.OneStream,
			Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				for s := 0.0; s <= 394; s += 2 {
					tr.Sample(st, checktest.EtcdRequests+"_count", s, s, deletes)
				}
			}),
		},
		{
			Name: "a window shorter than the span", Spec: `{"span":"5m"}`, Wanted: "within 5m", Fill: of(checktest.Arm, slow), Met: check.Unknown, Seen: "the samples lie within 4m8s", Evidence: checktest.OneStream,
		},
		{Name: "quick throughout", Spec: `{"above":null,"below":{"duration":"100ms"}}`, Wanted: "a mean below 100ms", Fill: of(checktest.Arm, quick), Met: check.True, Seen: "at most 3ms", Evidence: checktest.OneStream},
		{
			Name: "slow once, by few", Spec: `{"above":null,"below":{"duration":"100ms"}}`, Wanted: "below", Fill: of(checktest.Arm, quick, checktest.Rate{From: 100, PerSecond: 0.5, Seconds: 1.02}, checktest.Rate{From: 110, PerSecond: 50, Seconds: 0.003}),
			Met: check.False, Seen: "at most 1.02s over 5", Evidence: checktest.OneStream,
		},
		{
			Name: "too few to be quick", Spec: `{"above":null,"below":{"duration":"100ms"}}`, Wanted: "below", Fill: of(checktest.Arm, checktest.Rate{From: 0, PerSecond: 0.05, Seconds: 0.003}), Met: check.Unknown,
			Seen: "too few to call it quick", Evidence: checktest.OneStream,
		},
		{Name: "two limits", Spec: `{"below":{"duration":"1s"}}`, Wanted: "a mean of", Fill: of(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: "want one of above and below"},
		{Name: "a number of nanoseconds", Spec: `{"above":{"number":1}}`, Wanted: "a mean of", Fill: of(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: "above is a plain number (want a duration"},
		{Name: "no observations asked for", Spec: `{"atLeast":0}`, Wanted: "a mean of", Fill: of(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: "atLeast is 0 (want at least 1)"},
		{Name: "no metric", Spec: `{"metric":""}`, Wanted: "a mean of", Fill: of(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: "metric is empty"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "metricMean", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec = checktest.Over(t, `{"metric":"etcd_request_duration_seconds","labels":{"operation":"delete"},"above":{"duration":"800ms"},"atLeast":20,"span":"10s"}`, q.Spec)
	})
}

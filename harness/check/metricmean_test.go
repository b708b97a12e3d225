package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestMetricMean(t *testing.T) {
	deletes := map[string]string{"operation": "delete", "type": "*core.ConfigMap"}
	of := func(arm string, rates ...rate) func(*trial) {
		return recorded(arm, func(tr *trial, st *bundle.Stream) { tr.observe(st, 0, 394, deletes, rates...) })
	}
	quick, slow := rate{from: 0, perSecond: 50, seconds: 0.003}, rate{from: 100, perSecond: 5, seconds: 1.02}
	run(t, []question{
		{
			name: "slow for a while", fill: of(arm, quick, slow, rate{from: 160, perSecond: 50, seconds: 0.003}), met: check.True, evidence: oneStream,
			seen: "mean 34.45ms over 9700 observations, at most 1.02s over 50 in 10:01:4", wanted: `etcd_request_duration_seconds{operation="delete"} with a mean above 800ms over at least 20 observations within 10s`,
		},
		{
			name: "never slow", fill: of(arm, quick), met: check.False, seen: "mean 3ms over 12400 observations, at most 3ms over 500", evidence: oneStream,
		},
		{
			name: "slow before and after the phase", fill: of(arm, rate{from: 0, perSecond: 5, seconds: 2}, rate{from: 40, perSecond: 50, seconds: 0.003}, rate{from: 290, perSecond: 5, seconds: 2}), met: check.False, seen: "at most 3ms", evidence: oneStream,
		},
		{
			name: "slow, but only a few", fill: of(arm, rate{from: 0, perSecond: 0.1, seconds: 1.5}), met: check.False, seen: "mean 1.5s over 24.8 observations, fewer than 20 within 10s", evidence: oneStream,
		},
		{
			name: "the whole window's mean, without a span", spec: `{"span":""}`, fill: of(arm, quick, slow, rate{from: 160, perSecond: 50, seconds: 0.003}), met: check.False,
			seen: "mean 34.45ms over 9700 observations", evidence: oneStream,
		},
		{
			name: "requests of all types are added up", met: check.True, seen: "at most 1.02s over 100", evidence: oneStream,
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				for s := 0.0; s <= 394; s += 2 {
					for _, typ := range []string{"a", "b"} {
						labels := map[string]string{"operation": "delete", "type": typ}
						tr.sample(st, etcdRequests+"_sum", s, s*5*1.02, labels)
						tr.sample(st, etcdRequests+"_count", s, s*5, labels)
					}
					tr.sample(st, etcdRequests+"_sum", s, s*500*0.001, map[string]string{"operation": "get"})
					tr.sample(st, etcdRequests+"_count", s, s*500, map[string]string{"operation": "get"})
				}
			}),
		},
		{
			name: "another operation was slow", met: check.Unknown, seen: "0 observations, fewer than 20 within 10s; the metrics of vulnerable never showed", evidence: oneStream,
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.observe(st, 0, 394, map[string]string{"operation": "get"}, rate{from: 0, perSecond: 50, seconds: 2})
			}),
		},
		{
			name: "not seen slow, with a gap", met: check.Unknown, seen: "mean 3ms over 12400 observations, at most 3ms over 500 in 10:00:40.0 to 10:00:50.0; metrics.samples of vulnerable does not cover", evidence: oneStream,
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.observe(st, 0, 394, deletes, quick)
				st.Gap(tr.at(100), tr.at(115), "timeout")
			}),
		},
		{
			name: "seen slow, whatever the gap", met: check.True, seen: "at most 1.02s", evidence: oneStream,
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.observe(st, 0, 394, deletes, quick, slow)
				st.Gap(tr.at(200), tr.at(215), "timeout")
			}),
		},
		{
			name: "seen slow by a process that is gone", met: check.True, seen: "at most 1.02s", evidence: oneStream,
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.observe(st, 0, 198, deletes, quick, slow)
				tr.observe(st, 200, 394, deletes, quick)
			}),
		},
		{
			name: "a process that began anew before it was slow", met: check.Unknown, seen: "etcd_request_duration_seconds fell at 10:01:40: it was reset", evidence: oneStream,
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.observe(st, 0, 98, deletes, quick)
				tr.observe(st, 100, 394, deletes, slow)
			}),
		},
		{name: "the other arm's etcd", fill: of(other, slow), met: check.Unknown, seen: "no metrics.samples was recorded for vulnerable"},
		{
			name: "a count without its sum", met: check.Unknown, seen: "has no sum beside it at 10:00:40", evidence: oneStream,
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				for s := 0.0; s <= 394; s += 2 {
					tr.sample(st, etcdRequests+"_count", s, s, deletes)
				}
			}),
		},
		{
			name: "a window shorter than the span", spec: `{"span":"5m"}`, wanted: "within 5m", fill: of(arm, slow), met: check.Unknown, seen: "the samples lie within 4m8s", evidence: oneStream,
		},
		{name: "quick throughout", spec: `{"above":null,"below":{"duration":"100ms"}}`, wanted: "a mean below 100ms", fill: of(arm, quick), met: check.True, seen: "at most 3ms", evidence: oneStream},
		{
			name: "slow once, by few", spec: `{"above":null,"below":{"duration":"100ms"}}`, wanted: "below", fill: of(arm, quick, rate{from: 100, perSecond: 0.5, seconds: 1.02}, rate{from: 110, perSecond: 50, seconds: 0.003}),
			met: check.False, seen: "at most 1.02s over 5", evidence: oneStream,
		},
		{
			name: "too few to be quick", spec: `{"above":null,"below":{"duration":"100ms"}}`, wanted: "below", fill: of(arm, rate{from: 0, perSecond: 0.05, seconds: 0.003}), met: check.Unknown,
			seen: "too few to call it quick", evidence: oneStream,
		},
		{name: "two limits", spec: `{"below":{"duration":"1s"}}`, wanted: "a mean of", fill: of(arm), met: check.Unknown, seen: "want one of above and below"},
		{name: "a number of nanoseconds", spec: `{"above":{"number":1}}`, wanted: "a mean of", fill: of(arm), met: check.Unknown, seen: "above is a plain number (want a duration"},
		{name: "no observations asked for", spec: `{"atLeast":0}`, wanted: "a mean of", fill: of(arm), met: check.Unknown, seen: "atLeast is 0 (want at least 1)"},
		{name: "no metric", spec: `{"metric":""}`, wanted: "a mean of", fill: of(arm), met: check.Unknown, seen: "metric is empty"},
	}, func(q *question) {
		q.kind, q.scope = "metricMean", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec = over(t, `{"metric":"etcd_request_duration_seconds","labels":{"operation":"delete"},"above":{"duration":"800ms"},"atLeast":20,"span":"10s"}`, q.spec)
	})
}

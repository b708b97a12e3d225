package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestMetricStill(t *testing.T) {
	both := func(count, seen func(float64) float64) func(*trial) {
		return recorded(arm, func(tr *trial, st *bundle.Stream) {
			tr.series(st, relists, 0, 394, count)
			tr.series(st, lastSeen, 0, 394, seen)
		})
	}
	at := func(x float64) func(float64) float64 { return func(float64) float64 { return x } }
	run(t, []question{
		{
			name: "both stand", fill: both(at(17), at(1772359260)), met: check.True, evidence: oneStream,
			seen: "kubelet_pleg_relist_duration_seconds_count stood at 17 for 1m38s; kubelet_pleg_last_seen_seconds stood at 1772359260 for 1m38s",
		},
		{
			name: "one moves", fill: both(at(17), func(s float64) float64 { return s }), met: check.False, evidence: oneStream,
			seen: "kubelet_pleg_last_seen_seconds changed from 296 to 298 by 10:04:58",
		},
		{
			name: "a last move in mid-window", fill: both(func(s float64) float64 { return min(s, 340) - min(s, 338) }, at(1)), met: check.False,
			seen: "changed from 0 to 2", evidence: oneStream,
		},
		{
			name: "moved until the lift was seen", fill: both(func(s float64) float64 { return min(s, 294) }, at(1)), met: check.True,
			seen: "stood at 294", evidence: oneStream,
		},
		{
			name: "a gap", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 394, at(17))
				tr.series(st, lastSeen, 0, 394, at(1))
				st.Gap(tr.at(300), tr.at(320), "no answer for 20s")
			}),
			met: check.Unknown, seen: "no answer for 20s", evidence: oneStream,
		},
		{
			name: "a change is decisive in spite of a gap", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 394, at(17))
				tr.series(st, lastSeen, 0, 394, func(s float64) float64 { return s })
				st.Gap(tr.at(300), tr.at(320), "no answer for 20s")
			}),
			met: check.False, seen: "changed from 296 to 298", evidence: oneStream,
		},
		{
			name: "equal at both ends, and left out in between", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 394, at(17))
				tr.series(st, lastSeen, 0, 300, at(1))
				tr.series(st, lastSeen, 390, 394, at(1))
			}),
			met: check.Unknown, seen: "kubelet_pleg_last_seen_seconds there is no sample of", evidence: oneStream,
		},
		{
			name: "not watched for long enough", spec: `{"span":"2m"}`, wanted: "unchanged for at least 2m", fill: both(at(17), at(1)),
			met: check.Unknown, seen: "was watched for 1m38s only", evidence: oneStream,
		},
		{
			name: "one of them is not there", fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.series(st, relists, 0, 394, at(17)) }),
			met: check.Unknown, seen: "stood at 17 for 1m38s; kubelet_pleg_last_seen_seconds the metrics of vulnerable never showed", evidence: oneStream,
		},
		{name: "the other arm stands", fill: recorded(other, func(tr *trial, st *bundle.Stream) { tr.series(st, relists, 0, 394, at(17)) }), met: check.Unknown, seen: "was recorded for vulnerable"},
		{name: "no metrics", spec: `{"metrics":[]}`, wanted: "unchanged", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "metrics is [] (want at least one name)"},
		{name: "no span", spec: `{"span":"0s"}`, wanted: "unchanged", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "span is 0s (want above 0)"},
	}, func(q *question) {
		q.kind, q.scope = "metricStill", check.Scope{Arm: arm, Phase: check.Recovery}
		q.spec = over(t, `{"metrics":["`+relists+`","`+lastSeen+`"],"span":"50s"}`, q.spec)
		if q.wanted == "" {
			q.wanted = "unchanged for at least 50s"
		}
	})
}

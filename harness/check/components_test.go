package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// What was recorded of one component of an arm says nothing about when somebody looked at another.
func TestCoverageIsOfOneComponent(t *testing.T) {
	of := func(tr *trial, kind bundle.Kind, component string) *bundle.Stream {
		st, err := tr.w.Stream(bundle.Meta{Kind: kind, Arm: arm, Component: component, Time: tr.start}, "jsonl")
		tr.must(err)
		return st
	}
	whole := func(tr *trial, st *bundle.Stream) { st.Alive(tr.at(0)); st.Alive(tr.at(394)) }
	gap := func(tr *trial, st *bundle.Stream) {
		whole(tr, st)
		st.Gap(tr.at(100), tr.at(394), "connection refused")
	}
	type how func(*trial, *bundle.Stream)
	metrics := func(own, other how) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			for component, covers := range map[string]how{"fleet-agent": own, "relapse-lbaas": other} {
				st := of(tr, bundle.MetricSamples, component)
				tr.series(st, map[string]string{"fleet-agent": "rounds_total", "relapse-lbaas": "held"}[component], 0, 394, func(float64) float64 { return 0 })
				covers(tr, st)
			}
		}
	}
	unread := func(tr *trial) {
		tr.phases()
		of(tr, bundle.MetricSamples, "fleet-agent").Gap(tr.at(0), tr.at(394), "connection refused")
		st := of(tr, bundle.MetricSamples, "relapse-lbaas")
		tr.series(st, "held", 0, 394, func(float64) float64 { return 0 })
		whole(tr, st)
	}
	health := func(own, other how) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			for path, covers := range map[string]how{"/healthz": own, "/balancers": other} {
				st := of(tr, bundle.Health, path[1:])
				for s := 0.0; s < 394; s += 2 {
					tr.must(st.JSON(bundle.HealthSample{Time: tr.at(s), Done: tr.at(s + 0.1), Path: path, Code: 200}))
				}
				covers(tr, st)
			}
		}
	}
	ms, hs := []bundle.Kind{bundle.MetricSamples, bundle.MetricSamples}, []bundle.Kind{bundle.Health, bundle.Health}
	const grows, still, lacks, answers = `{"metric":"rounds_total","by":{"number":1}}`, `{"metrics":["rounds_total"],"span":"30s"}`, `{"metric":"writes_total"}`, `{"path":"/healthz","for":"30s"}`
	run(t, []question{
		{name: "it didn't grow", kind: "metricIncrease", spec: grows, fill: metrics(whole, whole), met: check.False, evidence: ms, seen: "grew by 0"},
		{name: "it may have grown in a gap of its own", kind: "metricIncrease", spec: grows, fill: metrics(gap, whole), met: check.Unknown, evidence: ms, seen: "metrics.samples of vulnerable does not cover"},
		{name: "a gap of the other's", kind: "metricIncrease", spec: grows, fill: metrics(whole, gap), met: check.False, evidence: ms, seen: "grew by 0"},
		{name: "it stood still but for a gap of its own", kind: "metricStill", spec: still, fill: metrics(gap, whole), met: check.Unknown, evidence: ms, seen: "connection refused"},
		{name: "it stood still", kind: "metricStill", spec: still, fill: metrics(whole, gap), met: check.True, evidence: ms, seen: "rounds_total"},
		{name: "nothing was ever read of the one that may have it", kind: "metricAbsent", spec: lacks, fill: unread, met: check.Unknown, evidence: ms, seen: "does not cover"},
		{name: "neither has it", kind: "metricAbsent", spec: lacks, fill: metrics(whole, whole), met: check.True, evidence: ms, seen: "none in"},
		{name: "it answers", kind: "healthy", spec: answers, fill: health(whole, gap), met: check.True, evidence: hs, seen: "answers of /healthz are well"},
		{name: "it may not have answered in a gap of its own", kind: "healthy", spec: answers, fill: health(gap, whole), met: check.Unknown, evidence: hs, seen: "does not cover"},
	}, func(q *question) {
		q.scope = check.Scope{Arm: arm, Phase: check.Fault}
	})
}

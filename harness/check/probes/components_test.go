package probes_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// What was recorded of one component of an arm says nothing about when somebody looked at another.
func TestCoverageIsOfOneComponent(t *testing.T) {
	of := func(tr *checktest.Trial, kind bundle.Kind, component string) *bundle.Stream {
		st, err := tr.W.Stream(bundle.Meta{Kind: kind, Arm: checktest.Arm, Component: component, Time: tr.Start}, "jsonl")
		tr.Must(err)
		return st
	}
	whole := func(tr *checktest.Trial, st *bundle.Stream) { st.Alive(tr.At(0)); st.Alive(tr.At(394)) }
	gap := func(tr *checktest.Trial, st *bundle.Stream) {
		whole(tr, st)
		st.Gap(tr.At(100), tr.At(394), "connection refused")
	}
	type how func(*checktest.Trial, *bundle.Stream)
	metrics := func(own, other how) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			for component, covers := range map[string]how{"fleet-agent": own, "relapse-lbaas": other} {
				st := of(tr, bundle.MetricSamples, component)
				tr.Series(st, map[string]string{"fleet-agent": "rounds_total", "relapse-lbaas": "held"}[component], 0, 394, func(float64) float64 { return 0 })
				covers(tr, st)
			}
		}
	}
	unread := func(tr *checktest.Trial) {
		tr.Phases()
		of(tr, bundle.MetricSamples, "fleet-agent").Gap(tr.At(0), tr.At(394), "connection refused")
		st := of(tr, bundle.MetricSamples, "relapse-lbaas")
		tr.Series(st, "held", 0, 394, func(float64) float64 { return 0 })
		whole(tr, st)
	}
	health := func(own, other how) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			for path, covers := range map[string]how{"/healthz": own, "/balancers": other} {
				st := of(tr, bundle.Health, path[1:])
				for s := 0.0; s < 394; s += 2 {
					tr.Must(st.JSON(bundle.HealthSample{Time: tr.At(s), Done: tr.At(s + 0.1), Path: path, Code: 200}))
				}
				covers(tr, st)
			}
		}
	}
	nodes := func(first, second how) func(*checktest.Trial) { // two instances of one component
		return func(tr *checktest.Trial) {
			tr.Phases()
			for node, covers := range map[string]how{"one": first, "two": second} {
				st, err := tr.W.Stream(bundle.Meta{Kind: bundle.Health, Arm: checktest.Arm, Node: node, Component: "kube-apiserver", Time: tr.Start}, "jsonl")
				tr.Must(err)
				for s := 0.0; s < 394; s += 2 {
					tr.Must(st.JSON(bundle.HealthSample{Time: tr.At(s), Done: tr.At(s + 0.1), Path: "/healthz", Code: 200}))
				}
				covers(tr, st)
			}
		}
	}
	ms, hs := []bundle.Kind{bundle.MetricSamples, bundle.MetricSamples}, []bundle.Kind{bundle.Health, bundle.Health}
	const grows, still, lacks, answers = `{"metric":"rounds_total","by":{"number":1}}`, `{"metrics":["rounds_total"],"span":"30s"}`, `{"metric":"writes_total"}`, `{"path":"/healthz","for":"30s"}`
	checktest.Run(t, []checktest.Question{
		{Name: "it didn't grow", Kind: "metricIncrease", Spec: grows, Fill: metrics(whole, whole), Met: check.False, Evidence: ms, Seen: "grew by 0"},
		{Name: "it may have grown in a gap of its own", Kind: "metricIncrease", Spec: grows, Fill: metrics(gap, whole), Met: check.Unknown, Code: check.Gap, Evidence: ms, Seen: "metrics.samples of vulnerable does not cover"},
		{Name: "a gap of the other's", Kind: "metricIncrease", Spec: grows, Fill: metrics(whole, gap), Met: check.False, Evidence: ms, Seen: "grew by 0"},
		{Name: "it stood still but for a gap of its own", Kind: "metricStill", Spec: still, Fill: metrics(gap, whole), Met: check.Unknown, Evidence: ms, Seen: "connection refused"},
		{Name: "it stood still", Kind: "metricStill", Spec: still, Fill: metrics(whole, gap), Met: check.True, Evidence: ms, Seen: "rounds_total"},
		{Name: "nothing was ever read of the one that may have it", Kind: "metricAbsent", Spec: lacks, Fill: unread, Met: check.Unknown, Code: check.Gap, Evidence: ms, Seen: "does not cover"},
		{Name: "neither has it", Kind: "metricAbsent", Spec: lacks, Fill: metrics(whole, whole), Met: check.True, Evidence: ms, Seen: "none in"},
		{Name: "it answers", Kind: "healthy", Spec: answers, Fill: health(whole, gap), Met: check.True, Evidence: hs, Seen: "answers of /healthz are well"},
		{Name: "it may not have answered in a gap of its own", Kind: "healthy", Spec: answers, Fill: health(gap, whole), Met: check.Unknown, Code: check.Gap, Evidence: hs, Seen: "does not cover"},
		{Name: "both instances answer", Kind: "healthy", Spec: answers, Fill: nodes(whole, whole), Met: check.True, Evidence: hs, Seen: "answers of /healthz are well"},
		{Name: "one instance may not have answered", Kind: "healthy", Spec: answers, Fill: nodes(gap, whole), Met: check.Unknown, Code: check.Gap, Evidence: hs, Seen: "does not cover"},
	}, func(q *checktest.Question) {
		q.Scope = check.Scope{Arm: checktest.Arm, Phase: check.Fault}
	})
}

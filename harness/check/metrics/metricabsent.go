package metrics

import (
	"fmt"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "metricAbsent",
		Doc: "A component whose metrics were read throughout the phase has no metric of this name.\n\n" +
			"A build may give its metrics other names. In an anyOf with a check of the metric, this check lets other " +
			"evidence answer where the metric is absent, and only there. The collector must ask for the metric's " +
			"family. Metrics that nobody could read are unknown.",
		Example: "name: counts-no-writes\nkind: metricAbsent\nphase: fault\nspec:\n  metric: " +
			"fleet_agent_status_writes_total\n",
		Meets:   `{"metric":"no_such_total"}`,
		Differs: `{"metric":"grows_total"}`,
		New:     func() check.Check { return &MetricAbsent{} },
	})
}

// MetricAbsent asks whether a component lacks a metric.
type MetricAbsent struct {
	Metric string `json:"metric" refers:"metric" jsonschema:"name that the metric would have"`
}

// Reads names metric samples.
func (c *MetricAbsent) Reads() []bundle.Kind { return []bundle.Kind{bundle.MetricSamples} }

// Vacuous returns true: a name that is misspelt is absent, too.
func (*MetricAbsent) Vacuous() bool { return true }

// VacuousByName says that metrics which nobody read don't meet the check.
func (*MetricAbsent) VacuousByName() {}

// Validate refuses an empty name, which no component exposes.
func (c *MetricAbsent) Validate() error { return question.Refuse(c.Metric == "", "metric is empty") }

// Eval searches all recorded samples of the component, not only those in the window: one sample at any time shows that
// the component has the metric.
func (c *MetricAbsent) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, "no "+c.Metric+" among the metrics")
	if !ok {
		return q.Finding
	}
	all := metricSamples(q, c.Metric)
	q.Evidence = all.Paths
	others := 0
	for _, one := range all.Records {
		if one.Name == c.Metric {
			return q.Answer(check.False, "there is one, at "+question.Clock(one.Time))
		}
		if question.Contains(q.Window, one.Time) && question.Contains(q.Window, one.Done) {
			others++
		}
	}
	switch {
	case all.Doubt != nil:
		return q.Unknown(all.Doubt)
	case others == 0:
		return q.Unknown(
			check.Doubt(
				check.NotRecorded,
				"no metric at all was recorded in %s",
				question.Span(q.Window),
			),
		)
	}
	return q.Answer(
		check.True,
		fmt.Sprintf(
			"none in %s, where %d samples have other names",
			question.Span(q.Window),
			others,
		),
	)
}

package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "metricIncrease",
		Doc: "A counter or a time stamp grew by at least a given amount between the first and the last sample of the " +
			"window.\n\n" +
			"With tail, only the last stretch of the window counts. Samples that span less than half of that time " +
			"can make the check true, but never false. If a value falls, it was reset, and the answer is unknown.",
		Example: "name: relists-completed\nkind: metricIncrease\nphase: recovery\nspec:\n  metric: " +
			"kubelet_pleg_relist_duration_seconds_count\n  by: {number: 5}\n",
		Meets:   `{"metric":"grows_total","by":{"number":3}}`,
		Differs: `{"metric":"stands_total"}`,
		New:     func() check.Check { return &MetricIncrease{By: question.Quantity{Number: new(1.0)}} },
	})
	check.Register(check.Kind{
		Name: "metricStill",
		Doc: "Metrics stood still: every sample in the window has the same value, over at least a given time.\n\n" +
			"Standing still for long enough tells a stuck subject from a busy one.",
		Example: "name: counters-still\nkind: metricStill\nphase: recovery\nspec:\n  metrics: " +
			"[kubelet_pleg_relist_duration_seconds_count]\n  span: 1m\n",
		Meets:   `{"metrics":["stands_total"],"span":"1s"}`,
		Differs: `{"metrics":["stands_total","grows_total"],"span":"1s"}`,
		New:     func() check.Check { return &MetricStill{Span: "1m"} },
	})
}

// MetricIncrease asks whether a metric grew.
type MetricIncrease struct {
	Metric string            `json:"metric" refers:"metric" jsonschema:"name of the metric, as exposed"`
	Labels map[string]string `json:"labels,omitempty" jsonschema:"labels that the samples must have. All samples that have them are added up. Default: all samples"`
	By     question.Quantity `json:"by,omitzero" jsonschema:"by how much the metric must grow, at least: a number (above 0) or a constant"`
	Tail   string            `json:"tail,omitempty" refers:"stretch" jsonschema:"how long the last stretch of the window is that counts: a duration with its unit. Default: the whole window"`
}

// Reads names metric samples.
func (c *MetricIncrease) Reads() []bundle.Kind { return []bundle.Kind{bundle.MetricSamples} }

// Figure returns what a report draws: how fast the metric grows, with all its label sets added up.
func (c *MetricIncrease) Figure() check.Figure { return check.Figure{Counter: c.Metric} }

// Validate refuses an empty metric, an amount that isn't above 0 and a bad duration.
func (c *MetricIncrease) Validate() error {
	if c.Metric == "" {
		return errors.New("metric is empty")
	}
	if c.By.Constant == "" && c.By.Number != nil && *c.By.Number <= 0 {
		return fmt.Errorf("by.number is %g (want above 0)", *c.By.Number)
	}
	return errors.Join(c.By.Validate("by", false), question.Optional("tail", c.Tail))
}

// Eval compares the first and the last sample that lie wholly inside the window, so that a change at its edges does not
// count.
func (c *MetricIncrease) Eval(v bundle.View, s check.Scope) check.Finding {
	by, err := c.By.Value(v, s.Arm)
	q, ok := question.Open(
		c,
		v,
		s,
		fmt.Sprintf("%s grows by at least %g", c.Metric, by)+c.By.Assumed(v, s.Arm),
		err,
	)
	if !ok {
		return q.Finding
	}
	if c.Tail != "" {
		q.Wanted += " in the last " + c.Tail
		q.Window = question.LastOf(q.Window, question.Duration(c.Tail))
	}
	counter := ReadSeries(q, c.Metric, c.Labels)
	q.Evidence = counter.Paths
	if i := counter.FirstReset(); i > 0 {
		was, is := counter.Samples[i-1], counter.Samples[i]
		return q.Unknown(
			check.Doubt(
				check.OtherProcess,
				"%s fell from %s to %s at %s: it was reset",
				c.Metric,
				counter.Shown(was),
				counter.Shown(is),
				question.Clock(is.Asked),
			),
		)
	}
	if n := len(counter.Samples); n < 2 {
		return q.Unknown(cmp.Or(counter.Doubt,
			check.Doubt(check.TooFew, "%d samples of %s in %s, two are needed", n, c.Metric, question.Span(q.Window))))
	}
	q.Met = check.Of(counter.Growth() >= by)
	first, last := counter.First(), counter.Last()
	q.Say(
		"grew by %.10g, from %s to %s between %s",
		question.N("growth", counter.Growth()),
		question.As(
			"first",
			first.Value,
			counter.Shown(first),
		),
		question.As("last", last.Value, counter.Shown(last)),
		question.Span(counter.Extent()),
	)
	switch have, of := counter.watched(), question.Length(q.Window); {
	case q.Met == check.True:
	case counter.Doubt != nil:
		return q.Unknown(counter.Doubt)
	case have < of/2: // one slow answer can leave so short a span
		q.DoubtBy(
			check.TooFew,
			"; its samples lie within %s of the %s",
			have.Round(100*time.Millisecond),
			of.Round(100*time.Millisecond),
		)
	}
	return q.Finding
}

// MetricStill asks whether metrics stood still.
type MetricStill struct {
	Metrics []string `json:"metrics" refers:"metric" jsonschema:"names of the metrics that must not change"`
	Span    string   `json:"span,omitempty" refers:"stretch" jsonschema:"how much time the samples must cover, at least: a duration with its unit"`
}

// Reads names metric samples.
func (c *MetricStill) Reads() []bundle.Kind { return []bundle.Kind{bundle.MetricSamples} }

// Validate refuses a list without metrics and a bad duration.
func (c *MetricStill) Validate() error {
	none := len(c.Metrics) == 0 || slices.Contains(c.Metrics, "")
	return cmp.Or(
		question.Refuse(none, "metrics is %q (want at least one name)", c.Metrics),
		question.Positive("span", c.Span),
	)
}

// Eval compares all samples of each metric in the window.
func (c *MetricStill) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(
		c,
		v,
		s,
		fmt.Sprintf("%v unchanged for at least %s", c.Metrics, c.Span),
	)
	if !ok {
		return q.Finding
	}
	var parts []question.Part
	for _, name := range c.Metrics {
		one := ReadSeries(q, name, nil)
		q.Evidence = one.Paths
		parts = append(parts, one.judgeStill(question.Duration(c.Span)))
	}
	return q.AnswerAll(parts)
}

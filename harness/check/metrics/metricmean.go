package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "metricMean",
		Doc: "The mean of what a histogram or summary observed in the window: the increase of its sum divided by the " +
			"increase of its count.\n\n" +
			"With span, the check looks at the largest mean over any stretch of that length. With above, one stretch " +
			"with at least atLeast observations must have a mean above the limit. With below, no stretch may reach " +
			"the limit. The component measured these values itself. If a value falls, it was reset, and the answer " +
			"is unknown unless the samples before already decide. A duration above the limit is unknown if the " +
			"process's control group was throttled.",
		Example: "name: etcd-slow\nkind: metricMean\nphase: fault\nspec:\n  metric: etcd_request_duration_seconds\n  " +
			"labels: {operation: delete}\n" +
			"  above: {duration: 800ms}\n  atLeast: 20\n  span: 10s\n",
		Meets:   `{"metric":"took_seconds","above":{"duration":"1s"},"atLeast":3}`,
		Differs: `{"metric":"took_seconds","above":{"duration":"2s"},"atLeast":3}`,
		New:     func() check.Check { return &MetricMean{AtLeast: 1} },
	})
}

// MetricMean compares the mean of a histogram's or summary's observations with a limit.
type MetricMean struct {
	Metric  string             `json:"metric" refers:"metric" jsonschema:"name of the metric's family, without _sum and _count"`
	Labels  map[string]string  `json:"labels,omitempty" jsonschema:"labels that the samples must have. All samples that have them are added up. Default: all samples"`
	Above   *question.Quantity `json:"above,omitempty" jsonschema:"the mean must be larger than this: a duration if the metric's name ends in _seconds, else a number. Give either above or below"`
	Below   *question.Quantity `json:"below,omitempty" jsonschema:"instead of above: the mean must be smaller than this"`
	AtLeast int                `json:"atLeast,omitzero" jsonschema:"how many observations there must be, at least (1 or more)"`
	Span    string             `json:"span,omitempty" refers:"stretch" jsonschema:"length of the stretches that are compared: a duration with its unit. Default: the whole window"`
}

// Reads names metric samples, and identities, which record the CPU limits of the process.
func (c *MetricMean) Reads() []bundle.Kind {
	return []bundle.Kind{bundle.MetricSamples, bundle.Identity}
}

// Validate refuses a spec without exactly one limit, a limit in the wrong unit, and a mean of no observations.
func (c *MetricMean) Validate() error {
	q, field := c.limit()
	return cmp.Or(
		question.Refuse(c.Metric == "", "metric is empty"),
		question.Refuse(q == nil, "want one of above and below"),
		question.Refuse(c.AtLeast < 1, "atLeast is %d (want at least 1)", c.AtLeast),
		errors.Join(q.Validate(field, c.inSeconds()), question.Optional("span", c.Span)),
	)
}

// limit returns the limit and the name of its field; nil unless exactly one limit is given.
func (c *MetricMean) limit() (*question.Quantity, string) {
	switch {
	case c.Above != nil && c.Below == nil:
		return c.Above, "above"
	case c.Below != nil && c.Above == nil:
		return c.Below, "below"
	}
	return nil, ""
}

// inSeconds reports whether the limit is a duration. Prometheus metrics have their base unit in their names.
func (c *MetricMean) inSeconds() bool { return strings.HasSuffix(c.Metric, "_seconds") }

// Eval compares the largest mean with the limit. One stretch with a mean above the limit decides, for above as for
// below. Any other answer needs samples from the whole window.
func (c *MetricMean) Eval(v bundle.View, s check.Scope) check.Finding {
	wanted, limit, err := c.wanted(v, s.Arm)
	q, ok := question.Open(c, v, s, wanted, err)
	if !ok {
		return q.Finding
	}
	all := histogramSeries(q, c.Metric, c.Labels)
	q.Evidence = all.Paths
	if i := all.FirstReset(); i > 0 { // a new process began; the samples of the first process still count
		all.Doubt = check.Doubt(
			check.OtherProcess,
			"%s fell at %s: it was reset",
			c.Metric,
			question.Clock(all.Samples[i].Asked),
		)
		all.Samples = all.Samples[:i]
	}
	worst, total := largest(all.Samples, question.Duration(c.Span), c.needed())
	c.see(q, worst, total)
	enough := worst.count > 0 && total.count >= float64(c.AtLeast)
	if enough && c.value(worst) > limit {
		if slow := allowanceOf(q).doubt; c.inSeconds() && slow != nil { // throttling alone makes a process slow
			return q.UnknownAfter(slow)
		}
		q.Met = check.Of(c.Above != nil)
		return q.Finding
	}
	switch doubt := cmp.Or(all.Doubt, c.short(all)); {
	case doubt != nil:
		return q.UnknownAfter(doubt)
	case !enough && c.Below != nil:
		q.DoubtBy(check.TooFew, ": too few to call it quick") // few observations are no sign of health
	case !enough:
		q.Met = check.False
	default:
		q.Met = check.Of(c.Below != nil && c.value(worst) < limit)
	}
	return q.Finding
}

// wanted returns the text of what is asked for, and the limit as a float.
func (c *MetricMean) wanted(v bundle.View, arm string) (text string, limit float64, err error) {
	if c.Validate() != nil { // there may be no limit to name
		return "a mean of " + c.Metric, 0, nil
	}
	q, side := c.limit()
	limit, err = q.Value(v, arm)
	return fmt.Sprintf(
		"%s with a mean %s %s over at least %d observations%s",
		c.selector(),
		side,
		c.show(limit),
		c.AtLeast,
		c.within(),
	), limit, err
}

// short says why the samples are too few, or span too little time, for stretches of the length asked for; nil if they
// are enough.
func (c *MetricMean) short(s Series) error {
	if len(s.Samples) < 2 {
		return check.Doubt(check.TooFew, "%d samples, two are needed", len(s.Samples))
	}
	if s.watched() < question.Duration(c.Span) {
		return check.Doubt(
			check.TooFew,
			"the samples lie within %s",
			s.watched().Round(100*time.Millisecond),
		)
	}
	return nil
}

// needed returns how many observations a stretch must have to be compared. With below, one is enough, so that a slow
// stretch with few observations counts.
func (c *MetricMean) needed() float64 {
	if c.Below != nil {
		return 1
	}
	return float64(c.AtLeast)
}

// value returns a stretch's mean in the unit of the limit.
func (c *MetricMean) value(s stretch) float64 {
	if c.inSeconds() {
		return s.sum / s.count * float64(time.Second)
	}
	return s.sum / s.count
}

// see says what the samples show. Means are in the metric's own unit among the figures.
func (c *MetricMean) see(q *question.Question, worst, total stretch) {
	mean := func(name string, s stretch) any { return question.As(name, s.sum/s.count, c.show(c.value(s))) }
	observations := question.N("observations", total.count)
	if total.count == 0 {
		q.Say("%.10g observations", observations)
	} else {
		q.Say("mean %s over %.10g observations", mean("mean", total), observations)
	}
	switch {
	case worst.count == 0:
		q.Add(", fewer than %d%s", c.AtLeast, c.within())
	case c.Span != "":
		q.Add(", at most %s over %.10g in %s", mean("largestMean", worst), worst.count,
			question.Between(worst.from, worst.to))
	}
}

func (c *MetricMean) show(x float64) string {
	if !c.inSeconds() {
		return fmt.Sprintf("%.4g", x)
	}
	d := time.Duration(x)
	if d >= 100*time.Millisecond {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

func (c *MetricMean) within() string {
	if c.Span == "" {
		return ""
	}
	return " within " + c.Span
}

// selector returns the metric with its labels as Prometheus writes them.
func (c *MetricMean) selector() string {
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(c.Labels)) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", k, c.Labels[k]))
	}
	if len(pairs) == 0 {
		return c.Metric
	}
	return c.Metric + "{" + strings.Join(pairs, ",") + "}"
}

// stretch holds a histogram's observations between two samples: their sum and their count.
type stretch struct {
	from, to   time.Time
	sum, count float64
}

// largest finds the stretch with the largest mean. A stretch begins at a sample and ends at the first sample at least
// span later; a span of 0 means the whole series. Stretches with fewer than needed observations don't count. If no
// stretch counts, worst has no observations. total is the whole series.
func largest(all []Sample, span time.Duration, needed float64) (worst, total stretch) {
	if len(all) == 0 {
		return worst, total
	}
	between := func(a, b Sample) stretch { return stretch{a.Asked, b.Asked, b.sum - a.sum, b.Value - a.Value} }
	total = between(all[0], all[len(all)-1])
	if span == 0 {
		if total.count >= needed {
			worst = total
		}
		return worst, total
	}
	for i, j := 0, 0; i < len(all); i++ {
		for j < len(all) && all[j].Asked.Sub(all[i].Asked) < span {
			j++
		}
		if j == len(all) {
			break
		}
		if one := between(all[i], all[j]); one.count >= needed &&
			(worst.count == 0 || one.sum/one.count > worst.sum/worst.count) {
			worst = one
		}
	}
	return worst, total
}

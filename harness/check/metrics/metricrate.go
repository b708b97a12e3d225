package metrics

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/objects"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "metricRate",
		Doc: "How much a counter grew per second, compared with a number or with the baseline.\n\n" +
			"The rate of process_cpu_seconds_total is the number of CPUs in use. With window, the check looks at the " +
			"quiet window that quietWorld finds, else at the whole phase. In the baseline it always looks at the " +
			"whole phase. If a counter falls, it was reset, and the answer is unknown.\n\n" +
			"A baseline rate below floor counts as floor, so that almost nothing is never multiplied. A multiple of " +
			"the baseline's rate needs a second limit that doesn't depend on the baseline, because a subject that " +
			"was already busy can't become many times as busy. The lower of the two limits counts.",
		Example: "name: agent-busy\nkind: metricRate\nphase: fault\nspec:\n  metric: process_cpu_seconds_total\n  " +
			"timesBaseline: 5\n  above: 0.3\n  floor: 0.01\n  window:\n    terminating: 1\n",
		Meets:   `{"metric":"grows_total","above":0.1}`,
		Differs: `{"metric":"stands_total","above":0.1}`,
		New:     func() check.Check { return &MetricRate{} },
	})
}

// MetricRate asks how fast a counter grows.
type MetricRate struct {
	Metric string            `json:"metric" refers:"metric" jsonschema:"name of the counter, as exposed"`
	Labels map[string]string `json:"labels,omitempty" jsonschema:"labels that the samples must have. All samples that have them are added up. Default: all samples"`
	RateLimit

	ofProcess bool // the counter is the CPU time of the subject's process instead of a metric
}

// RateLimit says what a rate must be, and when. A rate is in the counter's own unit a second: for CPU time, in CPUs.
type RateLimit struct {
	Above               *float64       `json:"above,omitempty" jsonschema:"the rate must be larger than this, in the counter's unit per second, or in CPUs (0 or more). With timesBaseline, a rate above this is enough, whatever the baseline was"`
	AtMost              *float64       `json:"atMost,omitempty" jsonschema:"instead of above: the rate must not be larger than this (0 or more). With atMostTimesBaseline, the rate must never be larger than this, whatever the baseline was"`
	TimesBaseline       float64        `json:"timesBaseline,omitzero" jsonschema:"the rate must be at least this many times the baseline's rate (above 1). Needs above and floor"`
	AtMostTimesBaseline float64        `json:"atMostTimesBaseline,omitzero" jsonschema:"instead of timesBaseline: the rate must be at most this many times the baseline's rate (1 or more). Needs atMost and floor"`
	Floor               float64        `json:"floor,omitzero" jsonschema:"a baseline rate below this counts as this (above 0). Required with timesBaseline and atMostTimesBaseline, and only allowed there; the default of processCPU is 0.01"`
	Window              *objects.Quiet `json:"window,omitempty" jsonschema:"looks only at this quiet window; see quietWorld. Default: the whole phase"`
}

// NeedsBaselineProcess reports whether the rate is compared with that of the baseline's process.
func (l RateLimit) NeedsBaselineProcess() bool {
	return l.TimesBaseline != 0 || l.AtMostTimesBaseline != 0
}

// Reads names metric samples, and recorded objects if the spec has a window.
func (c *MetricRate) Reads() []bundle.Kind {
	return append([]bundle.Kind{bundle.MetricSamples}, c.Window.Reads()...)
}

// RestsOnCPU reports whether the counter is one of CPU time, by its name.
func (c *MetricRate) RestsOnCPU() bool { return strings.HasSuffix(c.Metric, "cpu_seconds_total") }

// Figure returns what a report draws: how fast the counter grows, with all its label sets added up.
func (c *MetricRate) Figure() check.Figure { return check.Figure{Counter: c.Metric} }

// Validate refuses a spec without a limit or with limits that don't go together, a limit that any rate would satisfy,
// and a limit that depends on the baseline alone.
func (c *MetricRate) Validate() error { return errors.Join(c.validate(), c.validateAbsolute()) }

// asPlanned validates the spec in a bundle's plan by the rules of the version that made the plan.
type asPlanned struct {
	*MetricRate
	format int
}

// Validate accepts a limit that depends on the baseline alone if the plan's version accepted it.
func (c asPlanned) Validate() error {
	if c.format == 0 {
		return c.validate()
	}
	return c.MetricRate.Validate()
}

func (c *MetricRate) validate() error {
	relative := c.TimesBaseline != 0 || c.AtMostTimesBaseline != 0
	return errors.Join(
		question.Refuse(c.Metric == "", "metric is empty"),
		c.validateLimit(),
		question.Refuse(c.Floor < 0 || relative != (c.Floor > 0),
			"floor is %g (want above 0 with the baseline, and nothing without)", c.Floor),
		c.Window.Validate("window."),
	)
}

// validateAbsolute refuses a multiple of the baseline's rate as the only limit. A subject that was already busy in the
// baseline can't reach the multiple: it could never count as busy and would always count as at rest.
func (c *MetricRate) validateAbsolute() error {
	return errors.Join(
		question.Refuse(
			c.TimesBaseline != 0 && c.Above == nil,
			"timesBaseline stands alone (want above beside it: the rate that is too much whatever the baseline was)",
		),
		question.Refuse(
			c.AtMostTimesBaseline != 0 && c.AtMost == nil,
			"atMostTimesBaseline stands alone (want atMost beside it: the rate that is too much whatever the baseline was)",
		))
}

func (c *MetricRate) validateLimit() error {
	n := question.CountTrue(
		c.Above != nil,
		c.AtMost != nil,
		c.TimesBaseline != 0,
		c.AtMostTimesBaseline != 0,
	)
	pair := c.Above != nil && c.TimesBaseline != 0 ||
		c.AtMost != nil && c.AtMostTimesBaseline != 0
	if n != 1 && !(n == 2 && pair) {
		return fmt.Errorf(
			"%d limits are given (want one of above, atMost, timesBaseline and atMostTimesBaseline)",
			n,
		)
	}
	return errors.Join(
		question.Refuse(
			c.Above != nil && *c.Above < 0,
			"above is %g (want 0 or more)",
			value(c.Above),
		),
		question.Refuse(
			c.AtMost != nil && *c.AtMost < 0,
			"atMost is %g (want 0 or more)",
			value(c.AtMost),
		),
		question.Refuse(
			c.TimesBaseline != 0 && c.TimesBaseline <= 1,
			"timesBaseline is %g (want above 1, or the baseline itself would meet it)",
			c.TimesBaseline,
		),
		question.Refuse(
			c.AtMostTimesBaseline != 0 && c.AtMostTimesBaseline < 1,
			"atMostTimesBaseline is %g (want 1 or more)",
			c.AtMostTimesBaseline,
		),
	)
}

// value returns the number that n points to, or 0 if n is nil.
func value(n *float64) float64 {
	if n == nil {
		return 0
	}
	return *n
}

func (c *MetricRate) wanted() string {
	relative := fmt.Sprintf(
		"times as fast as in the baseline (counted as %g a second at least)",
		c.Floor,
	)
	switch {
	case c.TimesBaseline != 0 && c.Above != nil:
		return fmt.Sprintf(
			"%s growing at least %g %s, or by more than %g a second",
			c.Metric,
			c.TimesBaseline,
			relative,
			*c.Above,
		)
	case c.TimesBaseline != 0:
		return fmt.Sprintf("%s growing at least %g %s", c.Metric, c.TimesBaseline, relative)
	case c.AtMostTimesBaseline != 0 && c.AtMost != nil:
		return fmt.Sprintf(
			"%s growing at most %g %s, and by at most %g a second",
			c.Metric,
			c.AtMostTimesBaseline,
			relative,
			*c.AtMost,
		)
	case c.AtMostTimesBaseline != 0:
		return fmt.Sprintf("%s growing at most %g %s", c.Metric, c.AtMostTimesBaseline, relative)
	case c.Above != nil:
		return fmt.Sprintf("%s growing by more than %g a second", c.Metric, *c.Above)
	}
	return fmt.Sprintf("%s growing by at most %g a second", c.Metric, value(c.AtMost))
}

// Eval compares the rate between the first and the last sample with the limit.
func (c *MetricRate) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(asPlanned{c, v.World().Format}, v, s, c.wanted())
	if !ok {
		return q.Finding
	}
	if c.Window != nil && q.Phase != check.Baseline {
		still := c.Window.Find(q)
		q.Evidence = still.Paths
		if !still.Found() {
			return q.Unknown(still.WhyNotFound())
		}
		q.Window = still.Window
	}
	now := c.series(q)
	q.Evidence = slices.Concat(now.Paths, q.Evidence)
	if doubt := now.WhyNoRate(); doubt != nil {
		return q.Unknown(doubt)
	}
	q.Say("%.4g a second in %s", question.N("perSecond", now.rate()), question.Span(now.Extent()))
	switch {
	case c.TimesBaseline != 0 || c.AtMostTimesBaseline != 0:
		return c.compare(q, now)
	case c.Above != nil:
		c.hold(q, now.rate(), *c.Above, false, now.rate() > *c.Above)
	default:
		c.hold(q, now.rate(), *c.AtMost, true, now.rate() <= *c.AtMost)
	}
	return q.Finding
}

// hold sets the answer. It makes the answer unknown if the process used less CPU than the limit, but might not have got
// more. upper says that the limit is the most allowed, not the least.
func (c *MetricRate) hold(q *question.Question, rate, limit float64, upper, met bool) {
	if q.Met = check.Of(met); c.ofProcess && met == upper {
		starved(q, rate, limit)
	}
}

// compare answers for a limit that is a multiple of the baseline's rate.
func (c *MetricRate) compare(q *question.Question, now Series) check.Finding {
	w, ok := q.View.Phase(q.Arm, check.Baseline)
	if !ok || w.End.IsZero() && q.Phase != check.Baseline {
		return q.UnknownAfter(check.Doubt(check.NoPhase, "there was no whole baseline"))
	}
	if w.End.IsZero() {
		w.End = q.Window.End
	}
	base := c.series(q.Over(w))
	if doubt := base.WhyNoRate(); doubt != nil {
		return q.UnknownAfter(fmt.Errorf("in the baseline %w", doubt))
	}
	switch was, is := base.Last(), now.First(); {
	case was.Value > is.Value && was.Asked.Before(is.Asked):
		return q.Unknown(
			check.Doubt(
				check.OtherProcess,
				"%s fell from %.10g in the baseline to %.10g: it was reset",
				c.Metric,
				was.Value,
				is.Value,
			),
		)
	case was.process != is.process:
		return q.UnknownAfter(check.Doubt(check.OtherProcess, "in the baseline it was another process"))
	}
	counts := max(base.rate(), c.Floor)
	q.Add(", %.3g times the baseline's %.4g", question.N("timesBaseline", now.rate()/counts),
		question.N("baselinePerSecond", base.rate()))
	if base.rate() < c.Floor {
		q.Add(" (counted as %g)", c.Floor)
	}
	// The lower limit counts: a subject that was already busy can't reach many times its rate.
	absolute := c.Above
	if c.TimesBaseline == 0 {
		absolute = c.AtMost
	}
	limit := counts * max(c.TimesBaseline, c.AtMostTimesBaseline)
	if absolute != nil && *absolute < limit {
		limit = *absolute
		q.Add("; %g a second is less than so many times", limit)
	}
	if c.TimesBaseline != 0 {
		c.hold(q, now.rate(), limit, false, now.rate() >= limit)
	} else {
		c.hold(q, now.rate(), limit, true, now.rate() <= limit)
	}
	return q.Finding
}

// series returns the samples of the counter in the window.
func (c *MetricRate) series(q *question.Question) Series {
	if c.ofProcess {
		return ReadCPU(q)
	}
	return ReadSeries(q, c.Metric, c.Labels)
}

func init() {
	check.Register(check.Kind{
		Name: "processCPU",
		Doc: "How many CPUs the subject's process used, compared with a number or with the baseline.\n\n" +
			"The check works like metricRate, with the CPU time that the kernel of the subject's node counts. A " +
			"subject can't withhold that number, even if its metrics have other names or are missing. Every trial " +
			"records the CPU time together with the process's identity. The time of children counts once the process " +
			"has waited for them.\n\n" +
			"If the process was replaced, or if none was seen for longer than 20s, the answer is unknown. After the " +
			"baseline, a rate below the limit is unknown in three more cases: so many tasks wanted the host's cores " +
			"that even a process that always wants a CPU might have got no more; nobody recorded how busy the host " +
			"was; or the process's control group was throttled.",
		Example: "name: agent-busy\nkind: processCPU\nphase: fault\nspec:\n  timesBaseline: 5\n  above: 0.3\n  " +
			"floor: 0.01\n  window:\n    terminating: 1\n",
		Meets:   `{"atMost":0.001}`, // less CPU than one of many tasks gets
		Differs: `{"above":0.001}`,
		New:     func() check.Check { return &ProcessCPU{} },
	})
}

// ProcessCPU asks how busy the subject's process is.
type ProcessCPU struct{ RateLimit }

// rate returns the same question about the counter of CPU seconds.
func (c *ProcessCPU) rate() *MetricRate {
	return &MetricRate{Metric: processCPUTime, RateLimit: c.RateLimit, ofProcess: true}
}

// Reads names identities, the host's load, and recorded objects if the spec has a window.
func (c *ProcessCPU) Reads() []bundle.Kind {
	return append([]bundle.Kind{bundle.Identity, bundle.Host}, c.Window.Reads()...)
}

// Implied counts a baseline of almost nothing as a hundredth of a CPU.
func (*ProcessCPU) Implied(given map[string]any) map[string]any {
	if given["timesBaseline"] == nil && given["atMostTimesBaseline"] == nil {
		return nil
	}
	return map[string]any{"floor": 0.01}
}

// RestsOnCPU returns true: it asks for CPU time.
func (*ProcessCPU) RestsOnCPU() bool { return true }

// Validate refuses the same specs as MetricRate.Validate.
func (c *ProcessCPU) Validate() error { return c.rate().Validate() }

// Eval compares the CPUs used between the first and the last look with the limit.
func (c *ProcessCPU) Eval(v bundle.View, s check.Scope) check.Finding { return c.rate().Eval(v, s) }

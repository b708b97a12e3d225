package check

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "metricAge",
		Doc: "A metric that holds a time in seconds since the epoch grew older than a limit: the Prometheus expression time() - metric.\n\n" +
			"Met when one sample in the window, compared with the time at which it was asked for, was older than the limit.",
		Example: "name: relist-stale\nkind: metricAge\nphase: fault\nspec:\n  metric: kubelet_pleg_last_seen_seconds\n  above: {duration: 3m}\n",
		New:     func() Check { return &MetricAge{} },
	})
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "metricIncrease",
		Doc: "A counter, or a time, grew by at least so much between two samples of the window.\n\n" +
			"With since, only samples asked for after a mark count; with tail, only the last stretch of the window. Samples that span less than half of that " +
			"can show that it grew, never that it didn't. A value that falls is a reset: unknown.",
		Example: "name: relists-completed\nkind: metricIncrease\nphase: recovery\nspec:\n  metric: kubelet_pleg_relist_duration_seconds_count\n  by: {number: 5}\n",
		New:     func() Check { return &MetricIncrease{By: Quantity{Number: new(1.0)}} },
	})
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "metricStill",
		Doc: "Metrics stood still: every sample in the window has the same value, over at least a given time.\n\n" +
			"Persistence tells stuck from busy.",
		Example: "name: counters-still\nkind: metricStill\nphase: recovery\nspec:\n  metrics: [kubelet_pleg_relist_duration_seconds_count]\n  span: 1m\n",
		New:     func() Check { return &MetricStill{Span: "1m"} },
	})
}

// MetricAge asks whether a timestamp metric grew older than a limit.
type MetricAge struct {
	Metric string   `json:"metric" jsonschema:"a metric whose value is a time in seconds since the epoch"`
	Above  Quantity `json:"above" jsonschema:"the age that has to be exceeded"`
}

// Reads names metric samples.
func (c *MetricAge) Reads() []bundle.Kind { return []bundle.Kind{bundle.MetricSamples} }

// NeedsConstants names the constant of the limit.
func (c *MetricAge) NeedsConstants() []string { return c.Above.constants() }

// Validate refuses a limit that is none, or in no unit.
func (c *MetricAge) Validate() error {
	if c.Metric == "" {
		return errors.New("metric is empty")
	}
	return c.Above.validate("above", true)
}

// Eval compares each sample with the time at which it was asked for, which is the younger reading.
func (c *MetricAge) Eval(v bundle.View, s Scope) Finding {
	limit, err := c.Above.value(v, s.Cell)
	wanted := fmt.Sprintf("%s older than %s", c.Metric, time.Duration(limit)) + c.Above.assumed(v, s.Cell)
	if bad := c.Validate(); bad != nil {
		err = bad
	}
	if err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	w, never := s.open(v)
	if never != "" {
		return unknown(wanted, never, nil)
	}
	all, paths, doubt := samples(v, s.Cell, c.Metric, nil, w)
	age, at := time.Duration(-1), time.Time{}
	for _, m := range within(all, w) {
		if m.Value <= 0 { // never set: an age since 1970 is no age
			continue
		}
		if a := m.Time.Sub(seconds(m.Value)); a > age {
			age, at = a, m.Time
		}
	}
	if age < 0 && doubt == "" {
		doubt = fmt.Sprintf("no sample of %s in %s", c.Metric, span(w))
	}
	seen := fmt.Sprintf("at most %s old, at %s", age.Round(100*time.Millisecond), at.UTC().Format("15:04:05"))
	if age > time.Duration(limit) {
		return Finding{Met: Met, Seen: seen, Wanted: wanted, Evidence: paths}
	}
	if doubt != "" {
		return unknown(wanted, doubt, paths)
	}
	return Finding{Met: NotMet, Seen: seen, Wanted: wanted, Evidence: paths,
		Differs: []string{fmt.Sprintf("short of it by %s", (time.Duration(limit) - age).Round(100*time.Millisecond))}}
}

// MetricIncrease asks whether a metric grew.
type MetricIncrease struct {
	Metric string            `json:"metric" jsonschema:"the metric's name as exposed"`
	Labels map[string]string `json:"labels,omitempty" jsonschema:"labels that its samples must have"`
	By     Quantity          `json:"by,omitzero" jsonschema:"by how much at least"`
	Since  *Mark             `json:"since,omitempty" jsonschema:"only samples asked for after this moment count"`
	Tail   string            `json:"tail,omitempty" jsonschema:"only the last stretch of the window counts: a duration with its unit"`
}

// Reads names metric samples, and what the mark comes from.
func (c *MetricIncrease) Reads() []bundle.Kind {
	if c.Since == nil {
		return []bundle.Kind{bundle.MetricSamples}
	}
	return with(c.Since.reads(), bundle.MetricSamples)
}

// NeedsConstants names the constants of the amount and of the mark.
func (c *MetricIncrease) NeedsConstants() []string {
	out := c.By.constants()
	if c.Since != nil {
		out = append(out, c.Since.Plus.constants()...)
	}
	return out
}

// Validate refuses an amount that nothing has to grow for.
func (c *MetricIncrease) Validate() error {
	if c.Metric == "" {
		return errors.New("metric is empty")
	}
	if c.By.Constant == "" && c.By.Number != nil && *c.By.Number <= 0 {
		return fmt.Errorf("by.number is %g (want above 0)", *c.By.Number)
	}
	errs := []error{c.By.validate("by", false)}
	if c.Since != nil {
		errs = append(errs, c.Since.validate("since"))
	}
	if c.Tail != "" {
		errs = append(errs, positive("tail", c.Tail))
	}
	return errors.Join(errs...)
}

// Eval takes the first and the last sample that lie wholly inside the window, so that a change at its edges does not count.
func (c *MetricIncrease) Eval(v bundle.View, s Scope) Finding {
	by, err := c.By.value(v, s.Cell)
	wanted := fmt.Sprintf("%s grows by at least %g", c.Metric, by) + c.By.assumed(v, s.Cell)
	if bad := c.Validate(); bad != nil {
		err = bad
	}
	if err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	w, never := s.open(v)
	if never != "" {
		return unknown(wanted, never, nil)
	}
	if c.Since != nil {
		mark := c.Since.at(v, s.Cell, w)
		if mark.doubt != "" {
			return unknown(wanted, mark.doubt, nil)
		}
		wanted += mark.after()
		if mark.short != "" {
			return Finding{Met: NotMet, Wanted: wanted, Seen: mark.short}
		}
		if !mark.Start.Before(w.End) {
			return Finding{Met: NotMet, Wanted: wanted, Seen: fmt.Sprintf("that moment was not reached by %s", w.End.UTC().Format("15:04:05"))}
		}
		w.Start, w.End = later(w.Start, mark.Start), mark.End
	}
	if c.Tail != "" {
		d, err := time.ParseDuration(c.Tail)
		if err != nil {
			return unknown(wanted, err.Error(), nil)
		}
		wanted += " in the last " + c.Tail
		w.Start = later(w.Start, w.End.Add(-d))
	}
	all, paths, doubt := samples(v, s.Cell, c.Metric, c.Labels, w)
	in := within(all, w)
	for i := 1; i < len(in); i++ {
		if in[i].Value < in[i-1].Value {
			return unknown(wanted, fmt.Sprintf("%s fell from %g to %g at %s: it was reset", c.Metric, in[i-1].Value, in[i].Value, in[i].Time.UTC().Format("15:04:05")), paths)
		}
	}
	if len(in) < 2 {
		if doubt == "" {
			doubt = fmt.Sprintf("%d samples of %s in %s, two are needed", len(in), c.Metric, span(w))
		}
		return unknown(wanted, doubt, paths)
	}
	first, last := in[0], in[len(in)-1]
	grown := last.Value - first.Value
	f := Finding{Met: Of(grown >= by), Wanted: wanted, Evidence: paths,
		Seen: fmt.Sprintf("grew by %.10g, from %.10g to %.10g between %s", grown, first.Value, last.Value, span(bundle.Window{Start: first.Time, End: last.Done}))}
	if f.Met == NotMet && doubt != "" {
		return unknown(wanted, doubt, paths)
	}
	if have, of := last.Time.Sub(first.Time), w.End.Sub(w.Start); f.Met == NotMet && have < of/2 { // as around one slow answer
		f.Met, f.Seen = Unknown, fmt.Sprintf("%s; its samples lie within %s of the %s", f.Seen, have.Round(100*time.Millisecond), of.Round(100*time.Millisecond))
	}
	return f
}

// MetricStill asks whether metrics stood still.
type MetricStill struct {
	Metrics []string `json:"metrics" jsonschema:"the metrics that must not change"`
	Span    string   `json:"span,omitempty" jsonschema:"for how long at least: a duration with its unit"`
}

// Reads names metric samples.
func (c *MetricStill) Reads() []bundle.Kind { return []bundle.Kind{bundle.MetricSamples} }

// Validate refuses a list without metrics, and a span that is none.
func (c *MetricStill) Validate() error {
	if len(c.Metrics) == 0 || slices.Contains(c.Metrics, "") {
		return fmt.Errorf("metrics is %q (want at least one name)", c.Metrics)
	}
	return positive("span", c.Span)
}

// Eval compares all samples in the window. A change is decisive; standing still needs coverage of the whole window.
func (c *MetricStill) Eval(v bundle.View, s Scope) Finding {
	wanted := fmt.Sprintf("%v unchanged for at least %s", c.Metrics, c.Span)
	if err := c.Validate(); err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	need, err := time.ParseDuration(c.Span)
	if err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	w, never := s.open(v)
	if never != "" {
		return unknown(wanted, never, nil)
	}
	var f Finding
	verdicts := make([]Tri, 0, len(c.Metrics))
	for _, name := range c.Metrics {
		all, paths, doubt := samples(v, s.Cell, name, nil, w)
		f.Evidence = paths
		in := within(all, w)
		met, said := still(in, need)
		if met != NotMet && doubt != "" {
			met, said = Unknown, doubt
		}
		verdicts = append(verdicts, met)
		f.Seen += sep(f.Seen) + name + " " + said
	}
	f.Met, f.Wanted = All(verdicts...), wanted
	return f
}

func still(in []bundle.MetricSample, need time.Duration) (Tri, string) {
	if len(in) < 2 {
		return Unknown, fmt.Sprintf("has %d samples, two are needed", len(in))
	}
	first, last := in[0], in[len(in)-1]
	for _, m := range in {
		if m.Value != first.Value {
			return NotMet, fmt.Sprintf("changed from %.10g to %.10g by %s", first.Value, m.Value, m.Time.UTC().Format("15:04:05"))
		}
	}
	if span := last.Time.Sub(first.Done); span < need {
		return Unknown, fmt.Sprintf("was watched for %s only", span.Round(time.Second))
	}
	return Met, fmt.Sprintf("stood at %.10g for %s", first.Value, last.Time.Sub(first.Done).Round(time.Second))
}

func sep(s string) string {
	if s == "" {
		return ""
	}
	return "; "
}

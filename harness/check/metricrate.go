package check

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "metricRate",
		Doc: "By how much a counter grew a second, against a number or against the baseline.\n\n" +
			"Of process_cpu_seconds_total that is the number of CPUs in use. With window, in the quiet window that quietWorld finds, else in the whole " +
			"phase; in the baseline always in the whole. Against the baseline, its rate counts as floor where it was lower, so that nothing is not " +
			"multiplied. A counter that falls was reset: unknown.",
		Example: "name: agent-busy\nkind: metricRate\nphase: fault\nspec:\n  metric: process_cpu_seconds_total\n  timesBaseline: 5\n  floor: 0.01\n  window:\n    terminating: 1\n",
		New:     func() Check { return &MetricRate{} },
	})
}

// MetricRate asks how fast a counter grows.
type MetricRate struct {
	Metric              string            `json:"metric" jsonschema:"the counter's name as exposed"`
	Labels              map[string]string `json:"labels,omitempty" jsonschema:"labels that its samples must have; all that match are added up"`
	Above               *float64          `json:"above,omitempty" jsonschema:"the rate that has to be exceeded, in the metric's own unit a second"`
	AtMost              *float64          `json:"atMost,omitempty" jsonschema:"the rate that must not be exceeded, instead"`
	TimesBaseline       float64           `json:"timesBaseline,omitzero" jsonschema:"the rate must be at least so many times the baseline's, instead"`
	AtMostTimesBaseline float64           `json:"atMostTimesBaseline,omitzero" jsonschema:"or at most so many times"`
	Floor               float64           `json:"floor,omitzero" jsonschema:"what the baseline's rate counts as at least"`
	Window              *Quiet            `json:"window,omitempty" jsonschema:"only while what stands still; see quietWorld"`

	read func(v bundle.View, cell string, w bundle.Window) ([]bundle.MetricSample, []string, string) // where not in the metrics
}

// Reads names metric samples, and recorded objects where there is a window.
func (c *MetricRate) Reads() []bundle.Kind {
	if c.Window != nil {
		return []bundle.Kind{bundle.MetricSamples, bundle.Objects}
	}
	return []bundle.Kind{bundle.MetricSamples}
}

// Validate refuses no limit and more than one, and those that anything meets.
func (c *MetricRate) Validate() error {
	var errs []error
	if c.Metric == "" {
		errs = append(errs, errors.New("metric is empty"))
	}
	n := 0
	for _, given := range []bool{c.Above != nil, c.AtMost != nil, c.TimesBaseline != 0, c.AtMostTimesBaseline != 0} {
		if given {
			n++
		}
	}
	switch {
	case n != 1:
		errs = append(errs, fmt.Errorf("%d limits are given (want one of above, atMost, timesBaseline and atMostTimesBaseline)", n))
	case c.Above != nil && *c.Above < 0:
		errs = append(errs, fmt.Errorf("above is %g (want 0 or more)", *c.Above))
	case c.AtMost != nil && *c.AtMost < 0:
		errs = append(errs, fmt.Errorf("atMost is %g (want 0 or more)", *c.AtMost))
	case c.TimesBaseline != 0 && c.TimesBaseline <= 1:
		errs = append(errs, fmt.Errorf("timesBaseline is %g (want above 1, or the baseline itself would meet it)", c.TimesBaseline))
	case c.AtMostTimesBaseline != 0 && c.AtMostTimesBaseline < 1:
		errs = append(errs, fmt.Errorf("atMostTimesBaseline is %g (want 1 or more)", c.AtMostTimesBaseline))
	}
	if relative := c.relative(); c.Floor < 0 || relative && c.Floor == 0 || !relative && c.Floor != 0 {
		errs = append(errs, fmt.Errorf("floor is %g (want above 0 with the baseline, and nothing without)", c.Floor))
	}
	if c.Window != nil {
		errs = append(errs, c.Window.validate("window."))
	}
	return errors.Join(errs...)
}

func (c *MetricRate) relative() bool { return c.TimesBaseline != 0 || c.AtMostTimesBaseline != 0 }

func (c *MetricRate) wanted() string {
	switch {
	case c.Above != nil:
		return fmt.Sprintf("%s growing by more than %g a second", c.Metric, *c.Above)
	case c.AtMost != nil:
		return fmt.Sprintf("%s growing by at most %g a second", c.Metric, *c.AtMost)
	case c.AtMostTimesBaseline != 0:
		return fmt.Sprintf("%s growing at most %g times as fast as in the baseline (counted as %g a second at least)", c.Metric, c.AtMostTimesBaseline, c.Floor)
	}
	return fmt.Sprintf("%s growing at least %g times as fast as in the baseline (counted as %g a second at least)", c.Metric, c.TimesBaseline, c.Floor)
}

// Eval compares the growth between the first and the last sample with the limit.
func (c *MetricRate) Eval(v bundle.View, s Scope) Finding {
	wanted := c.wanted()
	if err := c.Validate(); err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	w, never := s.open(v)
	if never != "" {
		return unknown(wanted, never, nil)
	}
	var evidence []string
	if c.Window != nil && s.Phase != Baseline {
		q := c.Window.find(v, s.Cell, w)
		if !q.found() {
			return unknown(wanted, "the window never came: "+cmp.Or(q.doubt, q.said, "they never stood still"), q.paths)
		}
		w, evidence = q.window, q.paths
	}
	now := c.grown(v, s.Cell, w)
	f := Finding{Wanted: wanted, Evidence: append(now.paths, evidence...)}
	if now.doubt != "" {
		return unknown(wanted, now.doubt, f.Evidence)
	}
	f.Seen = fmt.Sprintf("%.4g a second in %s", now.rate(), span(bundle.Window{Start: now.first.Time, End: now.last.Done}))
	limit := 0.0
	if c.relative() {
		b, ok := v.Phase(s.Cell, Baseline)
		if !ok || b.End.IsZero() && s.Phase != Baseline {
			return unknown(wanted, f.Seen+"; there was no whole baseline", f.Evidence)
		}
		if b.End.IsZero() {
			b.End = w.End
		}
		base := c.grown(v, s.Cell, b)
		switch {
		case base.doubt != "":
			return unknown(wanted, f.Seen+"; in the baseline "+base.doubt, f.Evidence)
		case base.last.Value > now.first.Value && base.last.Time.Before(now.first.Time):
			return unknown(wanted, fmt.Sprintf("%s fell from %.10g in the baseline to %.10g: it was reset", c.Metric, base.last.Value, now.first.Value), f.Evidence)
		case c.read != nil && !maps.Equal(base.last.Labels, now.first.Labels):
			return unknown(wanted, f.Seen+"; in the baseline it was another process", f.Evidence)
		}
		limit = max(base.rate(), c.Floor)
		f.Seen += fmt.Sprintf(", %.3g times the baseline's %.4g", now.rate()/limit, base.rate())
		if base.rate() < c.Floor {
			f.Seen += fmt.Sprintf(" (counted as %g)", c.Floor)
		}
	}
	switch {
	case c.Above != nil:
		f.Met = Of(now.rate() > *c.Above)
	case c.AtMost != nil:
		f.Met = Of(now.rate() <= *c.AtMost)
	case c.TimesBaseline != 0:
		f.Met = Of(now.rate() >= limit*c.TimesBaseline)
	default:
		f.Met = Of(now.rate() <= limit*c.AtMostTimesBaseline)
	}
	return f
}

// growth is a counter's first and last sample of a window.
type growth struct {
	first, last bundle.MetricSample
	paths       []string
	doubt       string
}

// rate is by how much it grew a second.
func (g growth) rate() float64 {
	return (g.last.Value - g.first.Value) / g.last.Time.Sub(g.first.Time).Seconds()
}

// grown reads the counter in a window. Two samples say something if they span most of it.
func (c *MetricRate) grown(v bundle.View, cell string, w bundle.Window) growth {
	read := c.read
	if read == nil {
		read = func(v bundle.View, cell string, w bundle.Window) ([]bundle.MetricSample, []string, string) {
			return samples(v, cell, c.Metric, c.Labels, w)
		}
	}
	all, paths, doubt := read(v, cell, w)
	in := within(all, w)
	g := growth{paths: paths, doubt: doubt}
	if doubt != "" {
		return g
	}
	if len(in) < 2 {
		g.doubt = fmt.Sprintf("there are %d samples of %s in %s, two are needed", len(in), c.Metric, span(w))
		return g
	}
	for i := 1; i < len(in); i++ {
		if in[i].Value < in[i-1].Value {
			g.doubt = fmt.Sprintf("%s fell from %.10g to %.10g at %s: it was reset", c.Metric, in[i-1].Value, in[i].Value, clock(in[i].Time))
			return g
		}
	}
	g.first, g.last = in[0], in[len(in)-1]
	if have, want := g.last.Time.Sub(g.first.Time), w.End.Sub(w.Start)/2; have < want {
		g.doubt = fmt.Sprintf("the samples of %s lie within %s of %s", c.Metric, have.Round(100*time.Millisecond), span(w))
	}
	return g
}

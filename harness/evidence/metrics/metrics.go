// Package metrics reads samples out of Prometheus' text exposition, as /metrics endpoints answer it.
package metrics

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Sample is one value of a family. A histogram gives Name_bucket (with the label le), Name_sum and Name_count; a
// summary gives Name (with the label quantile), Name_sum and Name_count, as the text itself does.
type Sample struct {
	Name   string
	Labels map[string]string // nil if there are none
	Value  float64           // in the unit that the name tells; may be NaN or infinite
}

// Read returns the samples of the named families, or of all if none is named. Families are sorted by name, samples keep
// their order. A family that isn't there gives no samples, which is not an error: counters appear with their first
// increment.
//
// An incomplete text, or one that isn't in the format, is an error with its line, and gives no samples. So is an empty
// text, since no endpoint answers that.
func Read(r io.Reader, families ...string) ([]Sample, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("reading metrics: no metric family in the text")
	}
	if len(families) == 0 {
		families = slices.Collect(maps.Keys(all))
	}
	var out []Sample
	for _, name := range slices.Compact(slices.Sorted(slices.Values(families))) {
		for _, m := range all[name].GetMetric() {
			out = appendSamples(out, name, m)
		}
	}
	return out, nil
}

func appendSamples(out []Sample, name string, m *dto.Metric) []Sample {
	one := func(suffix string, value float64, extra ...string) {
		out = append(out, Sample{name + suffix, labels(m, extra...), value})
	}
	switch {
	case m.Counter != nil:
		one("", m.Counter.GetValue())
	case m.Gauge != nil:
		one("", m.Gauge.GetValue())
	case m.Untyped != nil:
		one("", m.Untyped.GetValue())
	case m.Summary != nil:
		for _, q := range m.Summary.Quantile {
			one("", q.GetValue(), "quantile", number(q.GetQuantile()))
		}
		one("_sum", m.Summary.GetSampleSum())
		one("_count", float64(m.Summary.GetSampleCount()))
	case m.Histogram != nil:
		for _, b := range m.Histogram.Bucket {
			one(
				"_bucket",
				cmp.Or(b.GetCumulativeCountFloat(), float64(b.GetCumulativeCount())),
				"le",
				number(b.GetUpperBound()),
			)
		}
		one("_sum", m.Histogram.GetSampleSum())
		one(
			"_count",
			cmp.Or(m.Histogram.GetSampleCountFloat(), float64(m.Histogram.GetSampleCount())),
		)
	}
	return out
}

func labels(m *dto.Metric, extra ...string) map[string]string {
	if len(m.Label)+len(extra) == 0 {
		return nil
	}
	l := make(map[string]string, len(m.Label)+1)
	for _, p := range m.Label {
		l[p.GetName()] = p.GetValue()
	}
	for i := 0; i < len(extra); i += 2 {
		l[extra[i]] = extra[i+1]
	}
	return l
}

// number returns a bound or quantile as the exposition writes it.
func number(f float64) string { return model.SampleValue(f).String() }

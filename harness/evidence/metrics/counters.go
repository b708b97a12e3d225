package metrics

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Counters returns the values that can only grow while a process lives, by Key: counters, and the counts of histograms
// and summaries. The text's own types decide, because names don't tell: some gauges end in `_total`. Sums are left out,
// since an observation may be negative, and so are values that aren't numbers.
//
// An incomplete text, or one that isn't in the format, is an error with its line.
func Counters(r io.Reader) (map[string]float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, fmt.Errorf("reading counters: %w", err)
	}
	out := map[string]float64{}
	for name, family := range all {
		for _, m := range family.GetMetric() {
			suffix, value := "_count", math.NaN()
			switch {
			case m.Counter != nil:
				suffix, value = "", m.Counter.GetValue()
			case m.Summary != nil:
				value = float64(m.Summary.GetSampleCount())
			case m.Histogram != nil:
				value = cmp.Or(
					m.Histogram.GetSampleCountFloat(),
					float64(m.Histogram.GetSampleCount()),
				)
			}
			if !math.IsNaN(value) {
				out[Key(name+suffix, labels(m))] = value
			}
		}
	}
	return out, nil
}

// Key returns the name of one sample of a text, with its labels in order, as in
// `requests_total{code="200",verb="GET"}`.
func Key(name string, labels map[string]string) string {
	if len(labels) == 0 {
		return name
	}
	var b strings.Builder
	for _, l := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, ",%s=%q", l, labels[l])
	}
	return name + "{" + b.String()[1:] + "}"
}

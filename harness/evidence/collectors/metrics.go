package collectors

import (
	"bytes"
	"context"
	"io"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/metrics"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "metrics",
		Doc: "The subject's metrics: all of them in snapshots, and chosen families as samples at a steady " +
			"interval.\n\n" +
			"Snapshots are taken when a phase changes, at the incident's onset, and at the intervals of `every`. A " +
			"sample has the time of the request and the time of the answer. Samples leave out the buckets of " +
			"histograms, and values that are NaN or infinite.",
		Example: "name: metrics\nkind: metrics\nspec:\n  families: [kubelet_pleg_last_seen_seconds, " +
			"kubelet_pleg_relist_duration_seconds]\n  interval: 2s\n",
		New: func() capture.Collector {
			return &Metrics{Interval: metav1.Duration{Duration: 2 * time.Second}}
		},
	})
}

// Metrics collects a component's metrics.
type Metrics struct {
	Families []string        `json:"families" refers:"metric" jsonschema:"metric families to sample, by the name in their TYPE line; an empty list samples all"`
	Interval metav1.Duration `json:"interval,omitzero" jsonschema:"time between two samples"`
}

// Validate refuses an interval of 0 or less.
func (c *Metrics) Validate() error { return ValidateInterval(c.Interval) }

// Makes returns the kinds of artifacts that the collector records: whole expositions and samples.
func (*Metrics) Makes() []bundle.Kind { return []bundle.Kind{bundle.Metrics, bundle.MetricSamples} }

// Snapshot records the whole exposition.
func (*Metrics) Snapshot(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	return Get(ctx, t, w, bundle.Metrics, "/metrics", "txt")
}

// Stream samples the families until ctx ends.
func (c *Metrics) Stream(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	st, err := w.Stream(t.Meta(bundle.MetricSamples), "jsonl")
	if err != nil {
		return err
	}
	Follow(ctx, c.Interval.Duration, st, func(ctx context.Context) error {
		asked := time.Now().UTC()
		body, err := t.Component.Get(ctx, "/metrics")
		if err != nil {
			return err
		}
		defer body.Close()
		raw, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		done := time.Now().UTC()
		found, err := metrics.Read(bytes.NewReader(raw), c.Families...)
		if err != nil {
			return err
		}
		for _, s := range found {
			if strings.HasSuffix(s.Name, "_bucket") { // a histogram's count and sum say enough, at a twentieth of the size
				continue
			}
			// The quantiles of an empty summary, for example, are NaN: JSON has no such number, and it tells nothing.
			if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
				continue
			}
			if err := st.JSON(bundle.MetricSample{Time: asked, Done: done, Name: s.Name, Labels: s.Labels,
				Value: s.Value}); err != nil {
				return err
			}
		}
		return nil
	})
	return st.Close()
}

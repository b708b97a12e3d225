package collectors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// healthLimit bounds one request. It is longer than the 2 s for which kube-apiserver asks etcd before it answers.
const healthLimit = 5 * time.Second

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "health",
		Doc: "The answers of the subject's health endpoints, at a steady interval, each with its code.\n\n" +
			"An answer other than 200 is evidence. A missing answer is evidence, too: if an endpoint doesn't answer " +
			"within 5s, the collector records the code 0 and the reason. A missing answer makes no gap: a check " +
			"decides how many are too many.",
		Example: "name: health\nkind: health\nspec:\n  paths: [/livez, /readyz]\n  interval: 2s\n",
		New: func() capture.Collector {
			return &Health{
				Paths:    []string{"/livez", "/readyz"},
				Interval: metav1.Duration{Duration: 2 * time.Second},
			}
		},
	})
}

// Health collects the answers of health endpoints.
type Health struct {
	Paths    []string        `json:"paths,omitempty" refers:"health" jsonschema:"paths of the endpoints, at least one, each with a leading slash"`
	Interval metav1.Duration `json:"interval,omitzero" jsonschema:"time between two rounds of requests; above 0"`
}

// Validate refuses an empty list of paths, a path without a leading slash, and an interval of 0 or less.
func (c *Health) Validate() error {
	if len(c.Paths) == 0 {
		return errors.New("paths is empty (want at least one)")
	}
	if i := slices.IndexFunc(c.Paths, func(p string) bool { return !strings.HasPrefix(p, "/") }); i >= 0 {
		return fmt.Errorf("paths has %q (want it to begin with a slash: /readyz)", c.Paths[i])
	}
	return ValidateInterval(c.Interval)
}

// Makes returns the kind of artifact that the collector records: health samples.
func (*Health) Makes() []bundle.Kind { return []bundle.Kind{bundle.Health} }

// Stream asks all endpoints at once, again and again, until ctx ends.
func (c *Health) Stream(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	st, err := w.Stream(t.Meta(bundle.Health), "jsonl")
	if err != nil {
		return err
	}
	Follow(ctx, c.Interval.Duration, st, func(ctx context.Context) error {
		errs := make([]error, len(c.Paths))
		var wg sync.WaitGroup
		for i, path := range c.Paths {
			wg.Go(func() { errs[i] = sample(ctx, t.Component, st, path) })
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	return st.Close()
}

// sample records the answer of one endpoint, or that there was none. A missing answer is no gap: a check decides how
// many are too many. The error is that of recording, or says that ctx ended before there was anything to record.
func sample(ctx context.Context, k cluster.Component, st *bundle.Stream, path string) error {
	one, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	asked := time.Now().UTC()
	body, err := k.Get(one, path)
	s := bundle.HealthSample{Time: asked, Done: time.Now().UTC(), Path: path, Code: 200}
	var status *cluster.StatusError
	switch {
	case ctx.Err() != nil:
		if err == nil {
			body.Close()
		}
		return ctx.Err()
	case err == nil:
		body.Close()
	case errors.As(err, &status):
		s.Code, s.Text = status.Code, status.Text
	case one.Err() != nil:
		s.Code, s.Text = 0, fmt.Sprintf("no answer within %s", healthLimit)
	default:
		s.Code, s.Text = 0, err.Error()
	}
	return st.JSON(s)
}

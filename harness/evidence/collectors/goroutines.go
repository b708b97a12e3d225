package collectors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "goroutines",
		Doc: "Goroutine profiles of the subject: debug=1 first, then debug=2.\n\n" +
			"The order matters: debug=2 stops the world and is cut at 64 MiB without an error, while debug=1 of the " +
			"same process is small and exact.",
		Example: "name: goroutines\nkind: goroutines\nevery: 20s\n",
		New:     func() capture.Collector { return &Goroutines{} },
	})
}

// Goroutines collects goroutine profiles.
type Goroutines struct{}

// Makes returns the kinds of artifacts that the collector records: profiles in both forms, debug=1 and debug=2.
func (*Goroutines) Makes() []bundle.Kind {
	return []bundle.Kind{bundle.Goroutines1, bundle.Goroutines2}
}

// Snapshot records both forms. If one fails, the failure is recorded and the other is still taken.
func (*Goroutines) Snapshot(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	return errors.Join(
		Get(ctx, t, w, bundle.Goroutines1, "/debug/pprof/goroutine?debug=1", "txt"),
		Get(ctx, t, w, bundle.Goroutines2, "/debug/pprof/goroutine?debug=2", "txt"),
	)
}

// Get records the component's answer at path, or that there was none.
func Get(
	ctx context.Context,
	t capture.Target,
	w *bundle.Writer,
	kind bundle.Kind,
	path, ext string,
) error {
	return getWithin(ctx, AskTimeout, t, w, kind, path, ext)
}

// getWithin works like Get, with another time limit for slow answers.
func getWithin(
	ctx context.Context,
	limit time.Duration,
	t capture.Target,
	w *bundle.Writer,
	kind bundle.Kind,
	path,
	ext string,
) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m := t.Meta(kind)
	body, err := t.Component.Get(ctx, path)
	if err == nil {
		defer body.Close()
		_, err = w.Write(m, ext, body)
	}
	if err != nil {
		err = fmt.Errorf("%s of %s on %s: %w", path, m.Component, m.Node, err)
		w.Fail(m, err)
	}
	return err
}

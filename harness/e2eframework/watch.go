package e2eframework

import (
	"context"
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/e2e-framework/pkg/envconf"

	"github.com/kube-relapse/relapse/harness/watch"
)

// Watching watches a controller while the tests of a suite run. Start and Stop are environment functions:
//
//	w := e2eframework.Watch(options)
//	suite.Setup(envfuncs.CreateCluster(p, "relapse-mine"), w.Start)
//	suite.Finish(w.Stop, envfuncs.DestroyCluster("relapse-mine"))
//	os.Exit(w.ExitCode(suite.Run(m)))
type Watching struct {
	options func(*envconf.Config) (watch.Options, error)
	watch   *watch.Watch
	err     error
	stopped bool
}

// Watch returns a watch that Start begins. options is called then: the cluster, and what is known of it, is there.
func Watch(options func(*envconf.Config) (watch.Options, error)) *Watching {
	return &Watching{options: options}
}

// Start is an environment function for Setup. It takes the baseline.
func (w *Watching) Start(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
	o, err := w.options(cfg)
	if err == nil {
		w.watch, err = watch.Start(ctx, o)
	}
	return ctx, err
}

// Stop is an environment function for Finish, before the one that removes the cluster. Its error is that of
// watch.Watch.Stop. The framework logs errors of Finish and passes all the same, hence ExitCode.
func (w *Watching) Stop(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	w.stopped = true
	if w.watch == nil {
		w.err = errors.New("the watch never began")
	} else {
		w.err = w.watch.Stop(context.WithoutCancel(ctx))
	}
	return ctx, w.err
}

// ExitCode returns the code for os.Exit: code, or 1 instead of 0 if the watch found something, or if Start or Stop was
// never called. It prints why to stderr.
func (w *Watching) ExitCode(code int) int {
	if !w.stopped {
		w.err = errors.New("the watch was never ended\nhint: suite.Finish(w.Stop)")
	}
	if w.err == nil {
		return code
	}
	fmt.Fprintln(os.Stderr, "error:", w.err)
	return max(code, 1)
}

package e2eframework_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/envconf"

	"github.com/kube-relapse/relapse/harness/e2eframework"
	"github.com/kube-relapse/relapse/harness/watch"
)

// The framework passes whatever a function of Finish returns. So the exit code has to tell, also where a function was
// forgotten.
func TestWatch(t *testing.T) {
	work := errors.New("the widget has no size")
	options := func(work error) func(*envconf.Config) (watch.Options, error) {
		return func(*envconf.Config) (watch.Options, error) {
			return watch.Options{Subject: watch.Self(), Dir: filepath.Join(t.TempDir(), "evidence"), Pace: 10 * time.Millisecond,
				Settle: 200 * time.Millisecond, Checks: []watch.Check{watch.Recovered("work", func(context.Context) error { return work })}}, nil
		}
	}
	run := func(w *e2eframework.Watching, start, stop bool) (err error) {
		if start {
			if _, err := w.Start(t.Context(), envconf.New()); err != nil {
				t.Fatal(err)
			}
		}
		if stop {
			_, err = w.Stop(t.Context(), envconf.New())
		}
		return err
	}
	for _, c := range []struct {
		name        string
		work        error
		start, stop bool
		tests, want int
		err         string
	}{
		{"well", nil, true, true, 0, 0, ""},
		{"found something", work, true, true, 0, 1, "recovered is not met: work: not done; the widget has no size"},
		{"tests failed, too", work, true, true, 3, 3, "recovered is not met"},
		{"tests alone failed", nil, true, true, 2, 2, ""},
		{"never begun", nil, false, true, 0, 1, "the watch never began"},
		{"never ended", nil, true, false, 0, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := e2eframework.Watch(options(c.work))
			err := run(w, c.start, c.stop)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("Stop returns %v, want %q in it", err, c.err)
			}
			if got := w.ExitCode(c.tests); got != c.want {
				t.Errorf("the exit code is %d, want %d", got, c.want)
			}
		})
	}
}

// Setup fails with what the watch can't begin for.
func TestWatchRefused(t *testing.T) {
	w := e2eframework.Watch(func(*envconf.Config) (watch.Options, error) { return watch.Options{}, errors.New("no cluster yet") })
	if _, err := w.Start(t.Context(), envconf.New()); err == nil || err.Error() != "no cluster yet" {
		t.Errorf("Start returns %v", err)
	}
}

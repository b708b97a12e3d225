package watch_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/watch"
)

// started begins a watch at a test's pace.
func started(t *testing.T, o watch.Options) *watch.Watch {
	t.Helper()
	w, err := watch.Start(t.Context(), quick(t, o))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func quick(t *testing.T, o watch.Options) watch.Options {
	t.Helper()
	o.Dir, o.Pace = filepath.Join(t.TempDir(), "evidence"), 100*time.Millisecond
	if o.Settle == 0 { // a watch that is to pass ends as soon as all is met
		o.Settle = 30 * time.Second
	}
	return o
}

// found is the finding of a check that made a watch fail.
func found(t *testing.T, err error, name string) check.Finding {
	t.Helper()
	var failed *watch.Failed
	if !errors.As(err, &failed) {
		t.Fatalf("the watch ended with %v, want that it failed", err)
	}
	for _, f := range failed.Findings {
		if f.Name == name && f.Met != check.True {
			return f
		}
	}
	t.Fatalf("%s is met, want that it failed: %v", name, err)
	return check.Finding{}
}

// A suite whose controller leaves goroutines behind fails, with the stack of one. What ends in time is no leak, and
// neither is what was there before.
func TestStuckGoroutines(t *testing.T) {
	left := make(chan int)
	leak := func(n int) {
		for range n {
			go func() { left <- 1 }()
		}
	}
	leak(5)
	t.Cleanup(func() {
		for range 10 {
			<-left
		}
	})
	watched := watch.Options{Subject: watch.Self(), Checks: []watch.Check{watch.NothingStuck(), watch.MemoryBack()}}

	w := started(t, watched)
	leak(4)
	busy := time.AfterFunc(500*time.Millisecond, func() {
		for range 4 {
			<-left
		}
	})
	defer busy.Stop()
	if err := w.Stop(t.Context()); err != nil {
		t.Errorf("with goroutines that end it failed: %v", err)
	}

	watched.Settle = time.Second
	w = started(t, watched)
	leak(5)
	err := w.Stop(t.Context())
	f := found(t, err, "nothingStuck")
	if f.Met != check.False || f.Figures["moreWaiting"] != 5 || !strings.Contains(f.Detail, "TestStuckGoroutines.func1.1") {
		t.Errorf("the finding is %+v, want 5 goroutines and the stack of one", f)
	}
	for _, want := range []string{"the watch found 1 of 3 checks not met or unknown\n", "nothingStuck is not met: ",
		"goroutine ", "chan send", "evidence: " + w.Dir()} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %q, want %q in it", err, want)
		}
	}
	if again := w.Stop(t.Context()); again != err {
		t.Errorf("stopped again it says %v", again)
	}
}

// The evidence is sealed, and the findings are beside it.
func TestWhatIsKept(t *testing.T) {
	w := started(t, watch.Options{Subject: watch.Self(), Checks: []watch.Check{watch.MemoryBack()}})
	if err := w.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	v, err := bundle.Open(filepath.Join(w.Dir(), "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	for _, phase := range []string{check.Baseline, watch.Suite, check.Recovery} {
		if in, ok := v.Phase("subject", phase); !ok || in.End.IsZero() {
			t.Errorf("the phase %s is %v, %t", phase, in, ok)
		}
	}
	if n := len(v.Artifacts(bundle.Query{Kind: bundle.Heap, Phase: check.Baseline})); n != 3 {
		t.Errorf("the baseline has %d heap profiles, want 3", n)
	}
	var kept struct{ Findings []check.Finding }
	raw, err := os.ReadFile(filepath.Join(w.Dir(), "findings.json"))
	if err == nil {
		err = json.Unmarshal(raw, &kept)
	}
	if err != nil || len(kept.Findings) != 2 || kept.Findings[0].Name != "oneProcess" || kept.Findings[1].Met != check.True {
		t.Errorf("findings.json has %+v, %v", kept, err)
	}
}

// The controller is asked for a piece of work at the end. Whoever ends the wait learns nothing of it.
func TestRecovered(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		name string
		work func(context.Context) error
		met  check.Truth
		seen string
	}{
		{"done", func(context.Context) error { return nil }, check.True, ""},
		{"refused", func(context.Context) error { return errors.New("the widget has no size") }, check.False,
			"a widget gets its size: not done; the widget has no size"},
		{"never", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, check.False, "context deadline exceeded"},
		{"cut off", func(ctx context.Context) error { cancel(); return ctx.Err() }, check.Unknown, "cut off: context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := started(t, watch.Options{Subject: watch.Self(), Settle: 500 * time.Millisecond,
				Checks: []watch.Check{watch.Recovered("a widget gets its size", c.work)}})
			ctx := t.Context()
			if c.met == check.Unknown {
				ctx = ended
			}
			err := w.Stop(ctx)
			if c.met == check.True {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if f := found(t, err, "recovered"); f.Met != c.met || !strings.Contains(f.Seen, c.seen) {
				t.Errorf("it is %s: %s; want %s: %s", f.Met, f.Seen, c.met, c.seen)
			}
		})
	}
}

// What can't be watched is refused before the tests begin.
func TestRefused(t *testing.T) {
	self, stuck := watch.Self(), []watch.Check{watch.NothingStuck()}
	quiet := func(resources ...string) []watch.Check {
		return []watch.Check{watch.QuietWorld(watch.Quiet{Resources: resources})}
	}
	nobody := watch.At(watch.Endpoint{Profiles: "http://127.0.0.1:1", Metrics: "http://127.0.0.1:1/metrics"})
	full := t.TempDir()
	if err := os.MkdirAll(filepath.Join(full, "bundle", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    watch.Options
		want string
	}{
		"nothing":      {watch.Options{}, "starting a watch: there is no subject\nhint: watch.Self()"},
		"no check":     {watch.Options{Subject: self}, "there is no check\nhint: watch.NothingStuck()"},
		"twice":        {watch.Options{Subject: self, Checks: append(stuck, stuck...)}, `two checks are called "nothingStuck"` + "\nhint: set the Name of one"},
		"no cluster":   {watch.Options{Subject: self, Checks: quiet("pods")}, "check quietWorld needs a cluster\nhint: set Options.Config"},
		"no resource":  {watch.Options{Subject: self, Checks: quiet()}, "quietWorld has no resources (want at least one: widgets.example.org)"},
		"used":         {watch.Options{Subject: self, Checks: stuck, Dir: full}, "the directory is not empty (it holds x)"},
		"no endpoint":  {watch.Options{Subject: nobody, Checks: stuck}, "connection refused"},
		"asks nothing": {watch.Options{Subject: self, Checks: []watch.Check{{Name: "mine"}}}, `check "mine" asks nothing`},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.o
			if o.Dir == "" {
				o.Dir = t.TempDir()
			}
			if _, err := watch.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v, want %q in it", err, c.want)
			}
		})
	}
}

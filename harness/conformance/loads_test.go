package conformance_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// loadCase is what the suite has to know about a load: a spec of two rounds, and how the API server must behave so that
// each round begins and ends. A load may have several cases.
type loadCase struct {
	spec  string
	calls int // in each round
	// serve returns what handles the load's requests first. It is nil if the API server handles them all.
	serve func(*loaded) func(http.ResponseWriter, *http.Request) bool
	// asks tells whether a request is the load's; nil for changes.
	asks func(*http.Request) bool
	// sent is how many calls of a round are sent whatever became of the others; 0 for all of them.
	sent int
	// bare says that the load creates no objects beforehand, and sends nothing with its requests.
	bare bool
}

// ours tells whether a request is one of the load's own calls.
func (lc loadCase) ours(r *http.Request) bool {
	if lc.asks != nil {
		return lc.asks(r)
	}
	return changes(r)
}

// refuses says why a load's case can't be one of a kind.
func (lc loadCase) refuses(e kinds.Entry) string {
	switch {
	case isProbe(e):
		return "it is a probe, whose case is a probeCase: no suite would use a spec and calls"
	case lc.spec == "":
		return "its case has no spec"
	case lc.calls < 1:
		return fmt.Sprintf("its case has %d calls in each round", lc.calls)
	}
	return ""
}

// TestLoadsAndProbesKeepTheirContract is the conformance suite of loads, on a cluster in memory.
func TestLoadsAndProbesKeepTheirContract(t *testing.T) {
	for _, e := range kinds.Of(kinds.Load) {
		if p, ok := e.New().(load.Probe); (ok && p.Probe()) != isProbe(e) { // what comes after a load waits for its effect
			t.Errorf("load %s records a probe: %t; it says that nothing can come after it: %t", e.Name, isProbe(e), !isProbe(e))
		}
		if isProbe(e) {
			t.Run(e.Name, func(t *testing.T) { t.Parallel(); probesWork(t, e) })
			continue
		}
		all := loads.of(e.Name)
		if len(all) == 0 {
			t.Errorf("load %s has no conformance case: it is not tested", e.Name)
		}
		for i, c := range all {
			t.Run(fmt.Sprintf("%s/%d", e.Name, i), func(t *testing.T) {
				t.Parallel()
				l, err := kinds.Decode[load.Load](kinds.Load, e.Name, json.RawMessage(c.spec))
				if err != nil {
					t.Fatal(err)
				}
				if v, ok := l.(interface{ Validate() error }); ok && v.Validate() != nil {
					t.Fatal(v.Validate())
				}
				t.Run("Rounds", func(t *testing.T) { c.rounds(t, l) })
				t.Run("Refused", func(t *testing.T) { c.refused(t, l) })
				t.Run("Cancelled", func(t *testing.T) { c.cancelled(t, l) })
			})
		}
	}
}

// rounds checks that each round begins and ends, and that the promised artifacts record it.
func (lc loadCase) rounds(t *testing.T, l load.Load) {
	s, w := newLoaded(t), newBundle(t)
	for range 2 { // a run that is resumed prepares again
		if err := l.Prepare(t.Context(), s.target()); err != nil {
			t.Fatal(err)
		}
	}
	if lc.serve != nil {
		s.script(lc.serve(s))
	}
	before := time.Now()
	if err := controltest.Soon(t, "the load's end", run(t.Context(), l, s, w)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 began", "1 over", "2 began", "2 over"} {
		if got := controltest.Soon(t, want, s.told); got != want {
			t.Fatalf("told %q, want %q; events: %+v", got, want, s.seen.all)
		}
	}
	sum, calls := leftBy(t, l, w)
	if len(sum.Rounds) != 2 || len(calls) != 2*lc.calls {
		t.Fatalf("%d rounds and %d calls are recorded, want 2 and %d: %+v", len(sum.Rounds), len(calls), 2*lc.calls, sum)
	}
	for i, r := range sum.Rounds {
		// A load that is still sending takes effect before its last request is sent.
		sent := []time.Time{before.Round(0), r.Start, r.Sent, r.End, time.Now()}
		began := []time.Time{r.Start, r.Began, r.End}
		if r.Round != i+1 || r.Calls != lc.calls || !slices.IsSortedFunc(sent, time.Time.Compare) ||
			!slices.IsSortedFunc(began, time.Time.Compare) {
			t.Errorf("round %d is recorded as %+v", i+1, r)
		}
	}
	if sum.Name != "item" || !lc.bare && sum.Bytes < 1 || sum.Way == "" || sum.Planned != len(calls) {
		t.Errorf("the load is recorded as %+v", sum)
	}
}

// refused makes the API server refuse every change. The refusals are evidence, and no round begins.
func (lc loadCase) refused(t *testing.T, l load.Load) {
	s, w := newLoaded(t), newBundle(t)
	if err := l.Prepare(t.Context(), s.target()); err != nil {
		t.Fatal(err)
	}
	s.script(func(w http.ResponseWriter, r *http.Request) bool {
		if lc.ours(r) {
			http.Error(w, "on purpose", http.StatusInternalServerError)
		}
		return lc.ours(r)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := run(ctx, l, s, w)
	if got := controltest.Soon(t, "the first round's end", s.told); got != "1 over" {
		t.Errorf("told %q, though everything was refused", got)
	}
	cancel()
	if err := controltest.Soon(t, "the load's end", done); err != nil {
		t.Errorf("with all calls refused: %v", err)
	}
	sum, calls := leftBy(t, l, w)
	if sum.Codes["500"] < cmp.Or(lc.sent, lc.calls) || !sum.Rounds[0].Began.IsZero() || calls[0].Code != 500 || !strings.Contains(calls[0].Error, "on purpose") {
		t.Errorf("%+v, %+v", sum, calls)
	}
}

// cancelled ends the context during the first call, and before there is any.
func (lc loadCase) cancelled(t *testing.T, l load.Load) {
	s := newLoaded(t)
	if err := l.Prepare(t.Context(), s.target()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var under atomic.Int64
	s.script(func(_ http.ResponseWriter, r *http.Request) bool {
		if !lc.ours(r) {
			return false
		}
		if under.Add(1) == 1 {
			cancel()
		}
		_, _ = io.Copy(io.Discard, r.Body) // otherwise nobody notices that the client went away
		<-r.Context().Done()
		return true
	})
	for _, when := range []string{"under way", "over before"} {
		w := newBundle(t)
		done := run(ctx, l, s, w)
		controltest.Soon(t, "the context's end", ctx.Done())
		began := time.Now()
		if err := controltest.Soon(t, "the load's end", done); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if took := time.Since(began); took > controltest.Patience/2 {
			t.Errorf("%s: it ended %s after its context", when, took)
		}
		sum, calls := leftBy(t, l, w)
		if n := len(calls); (when == "under way") != (n > 0) || sum.Codes["none"] != n || n >= sum.Planned {
			t.Errorf("%s: %+v, %+v", when, sum, calls)
		}
		for _, c := range calls {
			if !c.GaveUp || !c.LoadEnded {
				t.Errorf("%s: the load's end is not in the record of %+v", when, c)
			}
		}
	}
}

// changes tells whether a request is of a kind that loads send.
func changes(r *http.Request) bool {
	return r.Method == http.MethodDelete || r.Method == http.MethodPut || r.Method == http.MethodPost && path.Base(r.URL.Path) == "configmaps"
}

// run starts a load. The channel delivers the load's error.
func run(ctx context.Context, l load.Load, s *loaded, w *bundle.Writer) <-chan error {
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx, s.target(), w) }()
	return done
}

// leftBy reads what a load left. It must be each artifact that the load promises, once, and nothing else.
func leftBy(t *testing.T, l load.Load, w *bundle.Writer) (sum bundle.Load, calls []bundle.Call) {
	t.Helper()
	left := map[bundle.Kind]bundle.Artifact{}
	for _, a := range w.View().Artifacts(bundle.Query{Arm: arm}) {
		if _, dup := left[a.Kind]; dup || a.Error != "" {
			t.Errorf("it left %+v, which failed or is there twice", a)
		}
		left[a.Kind] = a
	}
	if got, want := slices.Sorted(maps.Keys(left)), slices.Sorted(slices.Values(l.Makes())); !slices.Equal(got, want) {
		t.Fatalf("it left %q, and says that it makes %q", got, want)
	}
	for kind, read := range map[bundle.Kind]func(*json.Decoder) error{
		bundle.LoadSummary: func(d *json.Decoder) error { return d.Decode(&sum) },
		bundle.Calls: func(d *json.Decoder) error {
			for d.More() {
				var c bundle.Call
				if err := d.Decode(&c); err != nil {
					return err
				}
				calls = append(calls, c)
			}
			return nil
		},
	} {
		r, err := w.View().Open(left[kind])
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := read(json.NewDecoder(io.Reader(r))); err != nil {
			t.Fatal(err)
		}
	}
	return sum, calls
}

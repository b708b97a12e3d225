package conformance_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// collectorCase is what the suite has to know about a collector.
type collectorCase struct {
	// spec is the collector's spec, as JSON. Empty means the defaults.
	spec string
	// lay adds to the subject what only this collector reads; it may be nil.
	lay func(*testing.T, *subject)
	// target changes what the collector looks at; it may be nil.
	target func(*subject, *capture.Target)
	// breaks breaks the collector's source.
	breaks func(*testing.T, *subject)
	// broken is a spec whose source is broken from the start. It is for collectors whose source isn't part of the
	// subject, and stands in place of breaks.
	broken string
	// answers is set if a source that doesn't answer is recorded, and is no gap: the newest record then contains that
	// text.
	answers string
}

// TestCollectorsKeepTheirContract is the conformance suite of collectors, on a cluster in memory.
func TestCollectorsKeepTheirContract(t *testing.T) {
	for _, e := range kinds.Of(kinds.Collector) {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			of := collectors.only(t, e.Name)
			c := newCollector(t, e.Name, of.spec)
			if len(c.Makes()) == 0 {
				t.Fatal("it makes nothing")
			}
			t.Run("Makes", func(t *testing.T) { of.makes(t, c) })
			t.Run("Broken", func(t *testing.T) { of.leavesARecord(t, e.Name, c) })
		})
	}
}

// newCollector makes a collector with a spec.
func newCollector(t *testing.T, kind, spec string) capture.Collector {
	t.Helper()
	c, err := kinds.Decode[capture.Collector](kinds.Collector, kind, json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// subject returns a subject with what the collector reads.
func (of collectorCase) subject(t *testing.T) *subject {
	t.Helper()
	s := newSubject(t)
	if of.lay != nil {
		of.lay(t, s)
	}
	return s
}

// following runs a stream in the background. stop ends it and waits for its end.
func following(t *testing.T, c capture.Streamer, target capture.Target, w *bundle.Writer) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Stream(ctx, target, w) }()
	return func() error {
		cancel()
		began := time.Now()
		err := controltest.Soon(t, "the end of the stream", done)
		if took := time.Since(began); took > controltest.Patience/2 {
			t.Errorf("it ended %s after its context", took)
		}
		return err
	}
}

// makes checks that the collector makes an artifact with content for each kind in Makes, and no other.
func (of collectorCase) makes(t *testing.T, c capture.Collector) {
	s, w := of.subject(t), newBundle(t)
	target := s.target(c, of)
	began := time.Now()
	if sn, ok := c.(capture.Snapshotter); ok {
		if err := sn.Snapshot(t.Context(), target, w); err != nil {
			t.Fatal(err)
		}
	}
	if st, ok := c.(capture.Streamer); ok {
		stop := following(t, st, target, w)
		controltest.Eventually(t, "an artifact of each kind", func() string {
			for _, k := range c.Makes() {
				found := w.View().Artifacts(bundle.Query{Kind: k})
				if len(found) == 0 || found[0].Size == 0 {
					return "nothing of " + string(k)
				}
			}
			return ""
		})
		if err := stop(); err != nil {
			t.Errorf("the stream ended with %v", err)
		}
	}
	kindsMade := map[bundle.Kind]bool{}
	for _, a := range w.View().Artifacts(bundle.Query{}) {
		kindsMade[a.Kind] = true
		r, err := w.View().Open(a)
		if err != nil {
			t.Error(err)
			continue
		}
		b, err := io.ReadAll(r)
		if r.Close(); err != nil || len(b) == 0 {
			t.Errorf("%s has %d bytes, %v", a.Path, len(b), err)
		}
		if a.Arm != target.Arm || target.Node != nil && (a.Node != target.Node.Name() || a.Component != "kubelet" || a.Phase != check.Fault || a.Mark != "schedule") {
			t.Errorf("it is found by %+v", a.Meta)
		}
		if a.Time.Before(began.Add(-time.Second)) || a.Time.After(time.Now()) || a.Time.Location() != time.UTC {
			t.Errorf("%s is of %s", a.Path, a.Time)
		}
		if strings.HasSuffix(a.Path, ".jsonl") && (a.Coverage == nil || a.Coverage.First.IsZero() || a.Coverage.Last.Before(began) || len(a.Coverage.Gaps) > 0) {
			t.Errorf("%s covers %+v", a.Path, a.Coverage)
		}
	}
	got, want := slices.Sorted(maps.Keys(kindsMade)), slices.Sorted(slices.Values(c.Makes()))
	if !slices.Equal(got, want) {
		t.Errorf("it made %q, and says %q", got, want)
	}
	if err := w.Seal(); err != nil {
		t.Error(err)
	}
}

// leavesARecord breaks the source and checks that the bundle shows it: a snapshot is an artifact with its error, and
// a stream doesn't cover the time in which its source was broken.
func (of collectorCase) leavesARecord(t *testing.T, kind string, c capture.Collector) {
	s, w := of.subject(t), newBundle(t)
	target := s.target(c, of)
	if of.broken != "" {
		c = newCollector(t, kind, of.broken)
	} else {
		of.breaks(t, s)
	}
	broke := time.Now()
	snapshots := 0
	if sn, ok := c.(capture.Snapshotter); ok {
		failed := sn.Snapshot(t.Context(), target, w)
		if failed == nil {
			t.Fatal("a snapshot of a broken source is no error")
		}
		for _, a := range w.View().Artifacts(bundle.Query{}) {
			snapshots++
			if !slices.Contains(c.Makes(), a.Kind) || a.Path != "" || a.Error == "" || !strings.Contains(failed.Error(), a.Error) || a.Arm != target.Arm {
				t.Errorf("the record is %+v, of the error %v", a, failed)
			}
		}
		if snapshots == 0 {
			t.Error("a snapshot that failed left no record")
		}
	}
	st, ok := c.(capture.Streamer)
	if !ok {
		return
	}
	stop := following(t, st, target, w)
	controltest.Eventually(t, "a stream's artifact", func() string {
		if len(w.View().Artifacts(bundle.Query{})) == snapshots || time.Since(broke) < 2500*time.Millisecond {
			return "there is none, or it had no time to go wrong"
		}
		return ""
	})
	_ = stop() // the stream may give up or go on, as long as the bundle says so
	for _, a := range w.View().Artifacts(bundle.Query{})[snapshots:] {
		if of.answers != "" {
			if last := lastLine(t, w.View(), a); !strings.Contains(last, of.answers) {
				t.Errorf("the last record of %s is %q, and its source answers %q since %s", a.Path, last, of.answers, broke)
			}
			continue
		}
		if a.Error == "" && a.Coverage.Covers(broke, time.Now(), time.Second) {
			t.Errorf("%s covers %+v, and its source was broken since %s", a.Path, a.Coverage, broke)
		}
	}
}

// lastLine returns the last line of a stream that has ended.
func lastLine(t *testing.T, v bundle.View, a bundle.Artifact) string {
	r, err := v.Open(a)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return lines[len(lines)-1]
}

// An interval of 0 would make a ticker panic in the middle of a trial.
func TestCollectorsRefuseAnIntervalOfZero(t *testing.T) {
	asked := 0
	for _, e := range kinds.Of(kinds.Collector) {
		made, err := kinds.Decode[capture.Collector](kinds.Collector, e.Name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := json.Marshal(made); err != nil || !strings.Contains(string(raw), `"interval":`) {
			continue // it has none
		}
		asked++
		c, err := kinds.Decode[capture.Collector](kinds.Collector, e.Name, json.RawMessage(`{"interval":"0s"}`))
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		v, ok := c.(interface{ Validate() error })
		if !ok {
			t.Errorf("%s takes any interval", e.Name)
		} else if err := v.Validate(); err == nil || !strings.Contains(err.Error(), "interval is 0s (want above 0)") {
			t.Errorf("%s says %v of an interval of 0", e.Name, err)
		}
	}
	if asked < 5 {
		t.Errorf("only %d collectors have an interval", asked)
	}
}

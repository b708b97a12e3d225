package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// subject is the first worker's kubelet, with all its answers scripted.
type subject struct {
	*world
	relists  atomic.Int64
	relisted time.Time
	broken   atomic.Bool // whether its endpoints fail
}

// dump is a goroutine profile with one goroutine that waits.
const dump = `goroutine 412 [chan send, 3 minutes]:
k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Relist(0xc000b9c1e0)
	/src/k8s.io/kubernetes/pkg/kubelet/pleg/generic.go:331 +0xb4c
created by k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Start in goroutine 1
	/src/k8s.io/kubernetes/pkg/kubelet/pleg/generic.go:171 +0x10b

`

// pods is a kubelet's list of one pod with a container that runs.
const pods = `{"items":[{"metadata":{"namespace":"default","name":"a"},"status":{"containerStatuses":[{"name":"main","state":{"running":{}}}]}}]}`

// skipped is the line that kubelet logs while PLEG isn't healthy.
const skipped = `"Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 4m0s ago; threshold is 3m0s"`

func newSubject(t *testing.T) *subject {
	t.Helper()
	s := &subject{world: newWorld(t), relisted: time.Now().Add(-10 * time.Second)}
	k := s.Component("worker", "kubelet")
	for path, answer := range map[string]func() string{
		"/debug/pprof/goroutine": func() string { return dump },
		"/configz":               func() string { return `{"kubeletconfig":{}}` },
		"/metrics":               s.metrics,
		"/pods":                  func() string { return pods },
		"/debug/pprof/heap":      func() string { return "a profile" },
		"/debug/pprof/profile":   func() string { return "a profile" },
		"/livez":                 func() string { return "ok" },
		"/readyz":                func() string { return "ok" },
	} {
		k.Answer(path, func(string) ([]byte, error) {
			if s.broken.Load() {
				return nil, errBroken
			}
			return []byte(answer()), nil
		})
	}
	k.Log(s.line(1, "starting"), s.line(2, skipped))
	layLogs(t, s.nodes[0].Node)
	s.layObjects()
	s.API().AddEvent(&corev1.Event{Reason: "Rebooted", Message: "an event"})
	return s
}

// metrics returns the subject's metrics: a relist that began ten seconds before the subject, a counter that grows by
// one at each request, one that stands still, and a summary of operations that took two seconds each.
func (s *subject) metrics() string {
	n := s.relists.Add(1)
	return fmt.Sprintf("# TYPE seen_seconds gauge\nseen_seconds %d\n# TYPE grows_total counter\ngrows_total %d\n# TYPE stands_total counter\nstands_total 4\n"+
		"# TYPE took_seconds summary\ntook_seconds_sum %d\ntook_seconds_count %d\n", s.relisted.Unix(), n, 2*n, n)
}

func (s *subject) line(n int, message string) string {
	return fmt.Sprintf(`{"__CURSOR":"c%d","__REALTIME_TIMESTAMP":"%s","MESSAGE":%s}`, n, strconv.FormatInt(time.Now().UnixMicro(), 10), strconv.Quote(message))
}

func (s *subject) target(c capture.Collector) capture.Target {
	if wide, ok := c.(capture.ClusterWide); ok && wide.ClusterWide() {
		return capture.Target{Arm: bundle.Shared, Cluster: s.Cluster}
	}
	return capture.Target{
		Arm: arm, Cluster: podCluster{s.Cluster}, Node: s.nodes[0].Node, Component: s.Component("worker", "kubelet"),
		Namespace: namespaceFor(c), Phase: func() string { return check.Fault }, Mark: "schedule",
	}
}

// collectorEnv is what the suite has to know about a collector: a spec, and what breaks its source.
type collectorEnv struct {
	spec  string
	fails func(*testing.T, *subject)
	// broken is a spec whose source is broken from the start. It is for collectors whose source isn't part of the
	// subject.
	broken string
	// answers is set if a source that doesn't answer is recorded, and is no gap: the newest record then contains that
	// text.
	answers string
}

// collectorEnvs has an entry for every registered collector. Without one the suite fails.
var collectorEnvs = map[string]collectorEnv{
	"goroutines":        {fails: breaks},
	"heap":              {fails: breaks},
	"cpu":               {spec: `{"seconds":1}`, fails: breaks},
	"configz":           {fails: breaks},
	"metrics":           {spec: `{"families":["seen_seconds","grows_total","stands_total","took_seconds"],"interval":"200ms"}`, fails: breaks},
	"interposer":        {spec: `{"interval":"200ms"}`, fails: func(_ *testing.T, s *subject) { s.nodes[0].kill() }},
	"etcdProbe":         {spec: `{"interval":"200ms"}`, fails: powerOff},
	"health":            {spec: `{"interval":"200ms"}`, fails: breaks, answers: errBroken.Error()},
	"componentLogs":     {spec: `{"components":["kubelet"],"interval":"200ms"}`, fails: powerOff},
	"auditLog":          {spec: `{"interval":"200ms"}`, fails: powerOff},
	"containerStatuses": {spec: `{"components":["kubelet"]}`, fails: closeAPI},
	"hostPressure":      {spec: `{"interval":"200ms"}`, broken: `{"interval":"200ms","proc":"/no/such/proc"}`, fails: func(*testing.T, *subject) {}},
	"identity":          {fails: powerOff},
	"journal":           {fails: powerOff},
	"nodeNetwork":       {spec: `{"interval":"200ms"}`, fails: powerOff},
	"leases":            {fails: closeAPI},
	"nodeConditions":    {fails: closeAPI},
	"objects":           {spec: `{"resources":["bundledeployments.fleet.cattle.io","bundles.fleet.cattle.io"],"interval":"200ms"}`, fails: closeAPI},
	"objectList":        {spec: `{"resources":["bundles.fleet.cattle.io"]}`, fails: closeAPI},
	"events":            {fails: closeAPI},
}

func breaks(_ *testing.T, s *subject) { s.broken.Store(true) }

func powerOff(t *testing.T, s *subject) {
	if err := s.nodes[0].PowerOff(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func closeAPI(_ *testing.T, s *subject) { s.Close() }

// TestCollectors is the conformance suite of collectors, on a cluster in memory.
func TestCollectors(t *testing.T) {
	for _, e := range kinds.Of(kinds.Collector) {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			env, ok := collectorEnvs[e.Name]
			if !ok {
				t.Fatalf("collector %s has no entry in collectorEnvs: it is not tested", e.Name)
			}
			c, err := kinds.Decode[capture.Collector](kinds.Collector, e.Name, json.RawMessage(env.spec))
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Makes()) == 0 {
				t.Fatal("it makes nothing")
			}
			t.Run("Makes", func(t *testing.T) { makes(t, c) })
			t.Run("Broken", func(t *testing.T) { leavesARecord(t, e.Name, c, env) })
		})
	}
	for name := range collectorEnvs {
		if _, ok := kinds.Lookup(kinds.Collector, name); !ok {
			t.Errorf("collectorEnvs has %s, which is no collector", name)
		}
	}
}

// following runs a stream in the background. stop ends it and waits for its end.
func following(t *testing.T, c capture.Streamer, target capture.Target, w *bundle.Writer) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Stream(ctx, target, w) }()
	return func() error {
		cancel()
		began := time.Now()
		err := soon(t, "the end of the stream", done)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it ended %s after its context", took)
		}
		return err
	}
}

// makes checks that the collector makes an artifact with content for each kind in Makes, and no other.
func makes(t *testing.T, c capture.Collector) {
	s, w := newSubject(t), newBundle(t)
	target := s.target(c)
	began := time.Now()
	if sn, ok := c.(capture.Snapshotter); ok {
		if err := sn.Snapshot(t.Context(), target, w); err != nil {
			t.Fatal(err)
		}
	}
	if st, ok := c.(capture.Streamer); ok {
		stop := following(t, st, target, w)
		eventually(t, "an artifact of each kind", func() string {
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
func leavesARecord(t *testing.T, kind string, c capture.Collector, env collectorEnv) {
	s, w := newSubject(t), newBundle(t)
	target := s.target(c)
	env.fails(t, s)
	if env.broken != "" {
		var err error
		if c, err = kinds.Decode[capture.Collector](kinds.Collector, kind, json.RawMessage(env.broken)); err != nil {
			t.Fatal(err)
		}
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
	eventually(t, "a stream's artifact", func() string {
		if len(w.View().Artifacts(bundle.Query{})) == snapshots || time.Since(broke) < 2500*time.Millisecond {
			return "there is none, or it had no time to go wrong"
		}
		return ""
	})
	_ = stop() // the stream may give up or go on, as long as the bundle says so
	for _, a := range w.View().Artifacts(bundle.Query{})[snapshots:] {
		if env.answers != "" {
			if last := lastLine(t, w.View(), a); !strings.Contains(last, env.answers) {
				t.Errorf("the last record of %s is %q, and its source answers %q since %s", a.Path, last, env.answers, broke)
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

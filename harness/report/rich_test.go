package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/scenarios/fleet-status-churn/kinds"
)

// stack is a sample of a made-up profile: the outermost call first, separated by ";".
type stack struct {
	calls string
	value int64
}

// encoded is a profile of ten seconds, or of a heap, with some stacks.
func encoded(t *testing.T, kind bundle.Kind, stacks ...stack) io.Reader {
	t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}}}
	if kind == bundle.CPU {
		p.SampleType = []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}
		p.DurationNanos = 10e9
	}
	functions := map[string]*profile.Location{}
	for _, s := range stacks {
		sample := &profile.Sample{Value: []int64{1, s.value}}
		for name := range strings.SplitSeq(s.calls, ";") {
			l := functions[name]
			if l == nil {
				id := uint64(len(functions) + 1)
				f := &profile.Function{ID: id, Name: name}
				l = &profile.Location{ID: id, Line: []profile.Line{{Function: f}}}
				functions[name] = l
				p.Function, p.Location = append(p.Function, f), append(p.Location, l)
			}
			sample.Location = append([]*profile.Location{l}, sample.Location...)
		}
		p.Sample = append(p.Sample, sample)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return &b
}

// sampled is a stream of metrics of a component, every two seconds.
func sampled(t *testing.T, w *bundle.Writer, arm, component string, metrics map[string]func(second float64) float64) {
	t.Helper()
	s, err := w.Stream(bundle.Meta{Kind: bundle.MetricSamples, Arm: arm, Component: component, Time: t0}, "jsonl")
	must(t, err)
	for sec := 0; sec <= 80; sec += 2 {
		for name, f := range metrics {
			must(t, s.JSON(bundle.MetricSample{Time: at(sec), Done: at(sec), Name: name, Value: f(float64(sec))}))
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const serve = "net/http.(*conn).serve;k8s.io/apiserver/pkg/server.(*APIServerHandler).ServeHTTP;k8s.io/apiserver/pkg/endpoints/filterlatency.trackStarted.func1;" +
	"k8s.io/apiserver/pkg/endpoints/filters.WithAudit.func1;k8s.io/apiserver/pkg/server/filters.WithMaxInFlightLimit.func2;k8s.io/apiserver/pkg/endpoints/handlers.DeleteCollection.func1"

// rich is a trial with everything that a report can show: metrics of the subject and of shared components, writes,
// dumps, profiles, probes and loads.
func rich(t *testing.T) *trial {
	tr := leaky(t)
	tr.plan.Subject = "kube-apiserver"
	tr.world.Versions = map[string]string{"go": "go1.26.8", "kubernetes": "v1.34.4", "kind": "v0.33.0"}
	tr.world.Computed = map[string]string{"slow-etcd.latency": "1s"}
	tr.plan.Info = []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "writes", Kind: "testHolds"}, Spec: tr.plan.Healed[0].Spec}, {CheckHeader: scenario.CheckHeader{Name: "quiet", Kind: "churn"}, Spec: &kinds.Churn{Resource: "configmaps"}}}
	tr.plan.Info = tr.plan.Info[:1]
	for i, a := range tr.arms() {
		a.world.Changes = []string{"pkg/registry/generic/registry: case <-workersExited taken out of DeleteCollection"}
		more := a.more
		grows := float64(1 - i)
		a.more = func(w *bundle.Writer) {
			_ = more // what leaky records names no component
			extras(t, w, a.planned.Name, grows)
		}
	}
	tr.emit = append(faultEvents("vulnerable", 42, 58), faultEvents("fixed", 42, 58)...)
	tr.emit = append(tr.emit, event.Event{Time: at(79), Type: event.Warning, Arm: "fixed", Message: "a sample came late"})
	return tr
}

// extras is the evidence of one arm; grows is 1 for the one that leaks, else 0.
func extras(t *testing.T, w *bundle.Writer, arm string, grows float64) {
	t.Helper()
	const subject = "kube-apiserver"
	leak := func(sec float64) float64 { return grows * max(0, sec-42) }
	sampled(t, w, arm, subject, map[string]func(float64) float64{
		"go_goroutines":                       func(s float64) float64 { return 400 + 20*leak(s) },
		"process_cpu_seconds_total":           func(s float64) float64 { return 0.3*s + 0.02*leak(s)*leak(s)/2 },
		"process_resident_memory_bytes":       func(s float64) float64 { return 3e8 + 8e6*leak(s) },
		"go_memstats_heap_inuse_bytes":        func(s float64) float64 { return 1.2e8 + 7e6*leak(s) },
		"etcd_request_duration_seconds_sum":   func(s float64) float64 { return s * (1 + grows) },
		"etcd_request_duration_seconds_count": func(s float64) float64 { return 20 * s },
		"kubelet_pleg_last_seen_seconds":      func(s float64) float64 { return float64(at(0).Unix()) + s/2 },
	})
	if grows == 1 {
		sampled(t, w, bundle.Shared, "etcd", map[string]func(float64) float64{"process_cpu_seconds_total": func(s float64) float64 { return 0.12 * s }})
	}
	probe, err := w.Stream(bundle.Meta{Kind: bundle.EtcdProbe, Arm: arm, Time: t0}, "jsonl")
	must(t, err)
	for sec := 0; sec <= 80; sec += 3 {
		p := control.ConnectionProbe{At: at(sec), Healthy: true, Through: []control.Duration{control.Duration(2 * time.Millisecond)}}
		if sec > 42 && sec < 58 {
			p.Through[0] = control.Duration(1002 * time.Millisecond)
		}
		if sec == 51 {
			p = control.ConnectionProbe{At: at(sec), Err: "no answer"}
		}
		must(t, probe.JSON(bundle.Stamped[control.ConnectionProbe]{Time: at(sec), Value: p}))
	}
	put := func(kind bundle.Kind, second int, mark, ext string, r io.Reader) {
		t.Helper()
		_, err := w.Write(bundle.Meta{Kind: kind, Arm: arm, Component: subject, Mark: mark, Time: at(second)}, ext, r)
		must(t, err)
	}
	for sec := 5; sec < 80; sec += 10 {
		put(bundle.Goroutines2, sec, "schedule", "txt", strings.NewReader(dump(int(leak(float64(sec))/4))))
	}
	put(bundle.CPU, 50, "onset", "pb.gz", encoded(t, bundle.CPU,
		stack{serve + ";k8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection;encoding/json.Marshal", 1e9 + int64(grows*3e9)},
		stack{serve + ";k8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection;go.etcd.io/etcd/client/v3.(*kv).Txn", 8e8},
		stack{"runtime.gcBgMarkWorker;runtime.gcDrain", 1e9 + int64(grows*2e9)}, stack{"runtime.mcall;runtime.schedule", 4e8}))
	put(bundle.Heap, 75, "phase", "pb.gz", encoded(t, bundle.Heap,
		stack{serve + ";k8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection;k8s.io/apiserver/pkg/storage/etcd3.(*store).GetList", 1<<20 + int64(grows*200)<<20},
		stack{"main.main;k8s.io/apiserver/pkg/storage/cacher.NewCacherFromConfig", 60 << 20}, stack{"runtime.main;main.main", 9 << 20}))
	load, err := json.Marshal(bundle.Load{Name: "deletes", Way: "calls", Objects: 1000, Bytes: 2048, Codes: map[string]int{"504": 20},
		Rounds: []bundle.LoadRound{{Round: 1, Start: at(41), Sent: at(43), Began: at(42), End: at(57), Calls: 20, Rate: 10}}})
	must(t, err)
	put(bundle.LoadSummary, 79, "", "json", bytes.NewReader(load))
	asked, err := json.Marshal(bundle.ProbeRecord{Name: "collection", Start: at(62), End: at(64), Ended: bundle.ProbeDone})
	must(t, err)
	put(bundle.WorkProbe, 62, "", "json", bytes.NewReader(asked))
}

// recorded is a record of writes to an object of a namespace at some seconds, watched up to the last second.
func recorded(t *testing.T, w *bundle.Writer, arm, namespace string, upTo int, seconds ...int) *bundle.Stream {
	t.Helper()
	s, err := w.Stream(bundle.Meta{Kind: bundle.Objects, Arm: arm, Time: t0}, "jsonl"+bundle.Packed)
	must(t, err)
	must(t, s.JSON(churn.Version{Time: at(0), Type: churn.Synced, Resource: "configmaps"}))
	for i, sec := range seconds {
		must(t, s.JSON(churn.Version{Time: at(sec), Type: churn.Modified, Resource: "configmaps", Namespace: namespace, Name: "a", UID: "1",
			Object: json.RawMessage(fmt.Sprintf(`{"v":%d}`, i))}))
	}
	s.Alive(at(0))
	s.Alive(at(upTo))
	return s
}

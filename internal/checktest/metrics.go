package checktest

import (
	"bytes"
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Metrics of the kubelet's PLEG.
const (
	LastSeen = "kubelet_pleg_last_seen_seconds"
	Relists  = "kubelet_pleg_relist_duration_seconds_count"
)

// Over lays JSON fields over a spec.
func Over(t *testing.T, base, fields string) string {
	t.Helper()
	out := map[string]any{}
	for _, s := range []string{base, fields} {
		if s == "" {
			continue
		}
		m := map[string]any{}
		if err := json.Unmarshal([]byte(s), &m); err != nil {
			t.Fatal(err)
		}
		maps.Copy(out, m)
	}
	b, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Recorded is a trial with all phases and one stream of metrics for an arm.
func Recorded(arm string, fill func(*Trial, *bundle.Stream)) func(*Trial) {
	return func(tr *Trial) {
		tr.Phases()
		fill(tr, tr.Stream(bundle.MetricSamples, arm))
	}
}

// Stale is a last-seen time that moves on until a moment, and then stands.
func (tr *Trial) Stale(st *bundle.Stream, from, to, stuck float64) {
	tr.Series(st, LastSeen, from, to, func(s float64) float64 { return tr.Since(min(s, stuck)) })
}

// OneStream is the evidence of a check that reads one stream of metrics.
var OneStream = []bundle.Kind{bundle.MetricSamples}

// Syncs is a counter of finished syncs.
const Syncs = "syncs_count"

// Allocs writes a heap profile of what a process allocated since its start, in megabytes: below net.interfaceAddrTable,
// which Sync calls, and elsewhere.
func (tr *Trial) Allocs(second, below, elsewhere float64) {
	tr.T.Helper()
	p := &profile.Profile{
		SampleType: []*profile.ValueType{
			{Type: "alloc_objects", Unit: "count"},
			{Type: "alloc_space", Unit: "bytes"},
		},
		TimeNanos: tr.At(second + 0.3).UnixNano(),
	}
	for i, name := range []string{"net.interfaceAddrTable", "k8s.io/iptables.(*Proxier).Sync", "main.other"} {
		p.Function = append(p.Function, &profile.Function{ID: uint64(i + 1), Name: name})
		p.Location = append(
			p.Location,
			&profile.Location{ID: uint64(i + 1), Line: []profile.Line{{Function: p.Function[i]}}},
		)
	}
	p.Sample = []*profile.Sample{
		{Value: []int64{1, int64(below * 1e6)}, Location: p.Location[:2]},
		{Value: []int64{1, int64(elsewhere * 1e6)}, Location: p.Location[2:]},
	}
	var b bytes.Buffer
	tr.Must(p.Write(&b))
	_, err := tr.W.Write(
		bundle.Meta{Kind: bundle.Heap, Arm: Arm, Time: tr.At(second)},
		"pb.gz",
		&b,
	)
	tr.Must(err)
}

// EtcdRequests is the histogram of requests to etcd.
const EtcdRequests = "etcd_request_duration_seconds"

// Rate is a histogram's life: so many observations a second, of so many seconds each, from a second on.
type Rate struct {
	From      float64
	PerSecond float64
	Seconds   float64
}

// Observe writes a histogram's sum and count every two seconds of from..to.
func (tr *Trial) Observe(
	st *bundle.Stream,
	from, to float64,
	labels map[string]string,
	rates ...Rate,
) {
	tr.T.Helper()
	sum, count := 5.0, 100.0
	for s := from; s <= to; s += 2 {
		for _, suffix := range []struct {
			name  string
			value float64
		}{{"_sum", sum}, {"_count", count}} {
			tr.Sample(st, EtcdRequests+suffix.name, s, suffix.value, labels)
		}
		for i, r := range rates {
			if s >= r.From && (i == len(rates)-1 || s < rates[i+1].From) {
				sum, count = sum+2*r.PerSecond*r.Seconds, count+2*r.PerSecond
			}
		}
	}
}

package check_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

const (
	lastSeen = "kubelet_pleg_last_seen_seconds"
	relists  = "kubelet_pleg_relist_duration_seconds_count"
)

// over lays JSON fields over a spec.
func over(t *testing.T, base, fields string) string {
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

// recorded is a trial with all phases and one stream of metrics for an arm.
func recorded(arm string, fill func(*trial, *bundle.Stream)) func(*trial) {
	return func(tr *trial) {
		tr.phases()
		fill(tr, tr.stream(bundle.MetricSamples, arm))
	}
}

// stale is a last-seen time that moves on until a moment, and then stands.
func (tr *trial) stale(st *bundle.Stream, from, to, stuck float64) {
	tr.series(st, lastSeen, from, to, func(s float64) float64 { return tr.since(min(s, stuck)) })
}

var oneStream = []bundle.Kind{bundle.MetricSamples}

const syncs = "syncs_count"

// allocs writes a heap profile of what was allocated since the start, in megabytes: below the function Addresses, which
// Sync calls, and elsewhere.
func (tr *trial) allocs(second, below, elsewhere float64) {
	tr.t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"}},
		TimeNanos: tr.at(second + 0.3).UnixNano()}
	for i, name := range []string{"net.interfaceAddrTable", "k8s.io/iptables.(*Proxier).Sync", "main.other"} {
		p.Function = append(p.Function, &profile.Function{ID: uint64(i + 1), Name: name})
		p.Location = append(p.Location, &profile.Location{ID: uint64(i + 1), Line: []profile.Line{{Function: p.Function[i]}}})
	}
	p.Sample = []*profile.Sample{{Value: []int64{1, int64(below * 1e6)}, Location: p.Location[:2]},
		{Value: []int64{1, int64(elsewhere * 1e6)}, Location: p.Location[2:]}}
	var b bytes.Buffer
	tr.must(p.Write(&b))
	_, err := tr.w.Write(bundle.Meta{Kind: bundle.Heap, Arm: arm, Time: tr.at(second)}, "pb.gz", &b)
	tr.must(err)
}

const etcdRequests = "etcd_request_duration_seconds"

// rate is a histogram's life: so many observations a second, of so many seconds each, from a second on.
type rate struct {
	from      float64
	perSecond float64
	seconds   float64
}

// observe writes a histogram's sum and count every two seconds of from..to.
func (tr *trial) observe(st *bundle.Stream, from, to float64, labels map[string]string, rates ...rate) {
	tr.t.Helper()
	sum, count := 5.0, 100.0
	for s := from; s <= to; s += 2 {
		for _, suffix := range []struct {
			name  string
			value float64
		}{{"_sum", sum}, {"_count", count}} {
			tr.sample(st, etcdRequests+suffix.name, s, suffix.value, labels)
		}
		for i, r := range rates {
			if s >= r.from && (i == len(rates)-1 || s < rates[i+1].from) {
				sum, count = sum+2*r.perSecond*r.seconds, count+2*r.perSecond
			}
		}
	}
}

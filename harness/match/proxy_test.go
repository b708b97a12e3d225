package match_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

var proxyBegan = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// stackProfile is a profile of one value below kube-proxy's look at the node's addresses, and one elsewhere.
func stackProfile(t *testing.T, kind, unit string, at time.Duration, below, elsewhere int64) string {
	t.Helper()
	p := &profile.Profile{TimeNanos: proxyBegan.Add(at).UnixNano(), DurationNanos: int64(time.Second), PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"},
		SampleType: []*profile.ValueType{{Type: kind, Unit: unit}}}
	if kind == "alloc_space" {
		p.SampleType, p.DurationNanos = append(p.SampleType, &profile.ValueType{Type: "inuse_space", Unit: "bytes"}), 0
	}
	for i, stack := range [][]string{{"net.interfaceAddrTable", "k8s.io/kubernetes/pkg/proxy/iptables.(*Proxier).syncProxyRules"},
		{"bytes.growSlice", "k8s.io/kubernetes/pkg/proxy/iptables.(*Proxier).syncProxyRules", "k8s.io/kubernetes/cmd/kube-proxy/app.Run"}} {
		s := &profile.Sample{Value: append([]int64{[]int64{below, elsewhere}[i]}, make([]int64, len(p.SampleType)-1)...)}
		for _, name := range stack {
			f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
			l := &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
			p.Function, p.Location, s.Location = append(p.Function, f), append(p.Location, l), append(s.Location, l)
		}
		p.Sample = append(p.Sample, s)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// proxyMetrics are of a kube-proxy that began at a time and has made so many syncs, each of which took so long and as
// much CPU time.
func proxyMetrics(version string, began int, syncs, each float64) string {
	return fmt.Sprintf("# TYPE kubernetes_build_info gauge\nkubernetes_build_info{git_version=%q} 1\n# TYPE process_start_time_seconds gauge\n"+
		"process_start_time_seconds %d\n# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total %g\n"+
		"# TYPE kubeproxy_sync_proxy_rules_duration_seconds histogram\nkubeproxy_sync_proxy_rules_duration_seconds_bucket{le=\"+Inf\"} %g\n"+
		"kubeproxy_sync_proxy_rules_duration_seconds_sum %g\nkubeproxy_sync_proxy_rules_duration_seconds_count %g\n",
		version, began, syncs*each, syncs, syncs*each, syncs)
}

// A sync's cost is known from two heap profiles with metrics around each of them, of one process.
func TestKubeProxy(t *testing.T) {
	const affected, fixed = "v1.18.4", "v1.34.4"
	// looks are taken a minute apart, between which there are 30 syncs; each of them allocates so many bytes for
	// addresses.
	looks := func(version string, each int64, second int) map[string]string {
		return map[string]string{
			"kube-proxy.0.before": proxyMetrics(version, 1, 100, 0.01), "kube-proxy.1.pb": stackProfile(t, "alloc_space", "bytes", time.Second, 100*each, 1),
			"kube-proxy.2.after": proxyMetrics(version, 1, 100, 0.01), "kube-proxy.60.before": proxyMetrics(version, second, 130, 0.01),
			"kube-proxy.61.pb": stackProfile(t, "alloc_space", "bytes", 61*time.Second, 130*each, 1), "kube-proxy.62.after": proxyMetrics(version, second, 130, 0.01),
		}
	}
	without := func(all map[string]string, names ...string) map[string]string {
		for _, n := range names {
			delete(all, n)
		}
		return all
	}
	for _, c := range []struct {
		name      string
		files     map[string]string
		want, why string
	}{
		{"each sync allocates 220 MB for addresses", looks(affected, 220e6, 1), "met", "each-sync-asks-again-and-again: 6600000.0 kB in"},
		{"with changes of its own", looks("v1.18.4+fork", 220e6, 1), "met", "is a version of its own"},
		{"of a fork that is built on the fix", looks("v1.34.4+fork", 220e6, 1), "suspected", "v1.34.4+fork is a version of its own, of which it isn't known, and v1.34.4 has the fix"},
		{"in a version with the fix", looks(fixed, 220e6, 1), "suspected", "a regression, another bug of the same shape"},
		{"each sync allocates 2 MB", looks("v1.18.4-fork", 2e6, 1), "not met", "syncs-look-at-many-addresses: 60000.0 kB in"},
		{"each sync allocates 10 MB", looks(affected, 10e6, 1), "suspected", "syncs-look-at-many-addresses"},
		{"a version with the fix", looks(fixed, 2e6, 1), "not met", "this is v1.34.4"},
		{"another process in between", looks(affected, 220e6, 2), "suspected", "memory-goes-into-addresses: 100% of"},
		{"another process in between, and little", looks(affected, 2e6, 2), "unknown", "each-sync-asks-again-and-again"},
		{"one look", without(looks(affected, 220e6, 1), "kube-proxy.60.before", "kube-proxy.61.pb", "kube-proxy.62.after"), "suspected", "memory-goes-into-addresses"},
		{"one look at little", without(looks(affected, 2e6, 1), "kube-proxy.60.before", "kube-proxy.61.pb", "kube-proxy.62.after"), "unknown", "two are needed"},
		{"profiles without metrics", without(looks(affected, 220e6, 1), "kube-proxy.0.before", "kube-proxy.2.after", "kube-proxy.60.before", "kube-proxy.62.after"),
			"suspected", "memory-goes-into-addresses"},
		{"half of the CPU time", map[string]string{"kube-proxy.0.pb": stackProfile(t, "cpu", "nanoseconds", 0, 9e8, 1e8)}, "suspected", "cpu-goes-into-addresses"},
		{"a tenth of the CPU time", map[string]string{"kube-proxy.0.pb": stackProfile(t, "cpu", "nanoseconds", 0, 1e8, 9e8)}, "unknown", ""},
		{"syncs that take long", map[string]string{"kube-proxy.0.metrics": proxyMetrics(affected, 1, 100, 0.8)}, "suspected", "syncs-take-long"},
		{"the first syncs take long", map[string]string{"kube-proxy.0.metrics": proxyMetrics(affected, 1, 5, 0.8)}, "unknown", ""},
		{"syncs that take 20 ms", map[string]string{"kube-proxy.0.metrics": proxyMetrics(affected, 1, 100, 0.02)}, "unknown", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := files(t, c.files)
			for name := range c.files { // its second is in its name
				var second int
				if _, err := fmt.Sscanf(name, "kube-proxy.%d.", &second); err != nil {
					t.Fatal(err)
				}
				at := proxyBegan.Add(time.Duration(second) * time.Second)
				if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
					t.Fatal(err)
				}
			}
			answered(t, run(t, nil, dir), "kube-proxy-node-addresses", c.want, c.why)
		})
	}
}

package metrics_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kube-relapse/relapse/harness/evidence/metrics"
)

const text = `# HELP kubelet_pleg_last_seen_seconds [ALPHA] Timestamp in seconds when PLEG was last seen active.
# TYPE kubelet_pleg_last_seen_seconds gauge
kubelet_pleg_last_seen_seconds 1.795262400123e+09
# TYPE kubelet_pleg_relist_duration_seconds histogram
kubelet_pleg_relist_duration_seconds_bucket{le="0.005"} 3
kubelet_pleg_relist_duration_seconds_bucket{le="+Inf"} 5
kubelet_pleg_relist_duration_seconds_sum 1.5
kubelet_pleg_relist_duration_seconds_count 5
# TYPE ops_total counter
ops_total{op="list",q="a\"b"} 7
ops_total{op="get"} 2
# TYPE d summary
d{quantile="0.99"} NaN
d_sum 0
d_count 0
plain 4 1795262400123
`

func TestRead(t *testing.T) {
	got, err := metrics.Read(strings.NewReader(text), "ops_total", "kubelet_pleg_relist_duration_seconds", "d",
		"kubelet_pleg_last_seen_seconds", "plain", "ops_total", "absent")
	if err != nil {
		t.Fatal(err)
	}
	label := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	const relist = "kubelet_pleg_relist_duration_seconds"
	want := []metrics.Sample{
		{"d", label("quantile", "0.99"), math.NaN()}, {"d_sum", nil, 0}, {"d_count", nil, 0},
		{"kubelet_pleg_last_seen_seconds", nil, 1795262400.123},
		{relist + "_bucket", label("le", "0.005"), 3}, {relist + "_bucket", label("le", "+Inf"), 5},
		{relist + "_sum", nil, 1.5}, {relist + "_count", nil, 5},
		{"ops_total", label("op", "list", "q", `a"b`), 7}, {"ops_total", label("op", "get"), 2},
		{"plain", nil, 4},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all, err := metrics.Read(strings.NewReader(text))
	if diff := cmp.Diff(got, all, cmpopts.EquateNaNs()); err != nil || diff != "" {
		t.Errorf("all families: %v (-named +all):\n%s", err, diff)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "reading metrics: no metric family in the text"},
		{"cut", "# TYPE a gauge\na 1\na{x=\"", `reading metrics: text format parsing error in line 3: `},
		{"cut in a number", "# TYPE a gauge\na 1\na{x=\"y\"} 1", `reading metrics: text format parsing error in line 3: unexpected end of input stream`},
		{"not a number", "a one\n", `reading metrics: text format parsing error in line 1: expected float as value, got "one"`},
		{"an answer of another kind", "Unauthorized\n", `reading metrics: text format parsing error in line 1: `},
	} {
		got, err := metrics.Read(strings.NewReader(c.text))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || got != nil {
			t.Errorf("%s: %v, %v; want %q", c.name, got, err, c.want)
		}
	}
}

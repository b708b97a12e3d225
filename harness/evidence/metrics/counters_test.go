package metrics_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/evidence/metrics"
)

func TestCounters(t *testing.T) {
	got, err := metrics.Counters(strings.NewReader(`# TYPE requests_total counter
requests_total{verb="GET",code="200"} 3
requests_total 4
# TYPE rules_total gauge
rules_total 5
# TYPE took histogram
took_bucket{le="1"} 1
took_bucket{le="+Inf"} 2
took_sum -7
took_count 2
# TYPE waited summary
waited{quantile="0.5"} NaN
waited_sum 1
waited_count 6
untyped_total 9
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{`requests_total{code="200",verb="GET"}`: 3, "requests_total": 4, "took_count": 2, "waited_count": 6}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := metrics.Counters(strings.NewReader("requests_total{")); err == nil || !strings.Contains(err.Error(), "reading counters: ") {
		t.Errorf("half a line: %v", err)
	}
}

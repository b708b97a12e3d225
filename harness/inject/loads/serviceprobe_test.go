package loads_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/inject/loads"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// A probe that asks for others, too, isn't done while a service of another load has no address; by itself it is.
func TestServiceProbeAndTheServicesOfOthers(t *testing.T) {
	for _, tc := range []struct{ spec, ended, says string }{
		{`{"services":2,"timeout":"1s"}`, bundle.ProbeDone, "2 of 2 have an address"},
		{`{"services":2,"others":true,"timeout":"1s"}`, bundle.ProbeFailed, "2 of 3 have an address"},
	} {
		w := newWorld(t)
		w.API().IdleServices(true)
		stuck := w.probe(t, "serviceProbe", `{"beforehand":1,"services":1,"timeout":"1s"}`)
		other := w.probing()
		other.Name = "earlier"
		if err := stuck.Prepare(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		all, err := w.client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{LabelSelector: "relapse.dev/load=earlier"})
		if err != nil || len(all.Items) != 1 || all.Items[0].Namespace != "relapse-earlier-vulnerable" || all.Items[0].Name != "before-0" {
			t.Fatalf("beforehand there are %+v, %v", all, err)
		}
		w.API().IdleServices(false)
		p := w.probes(t, t.Context(), w.probe(t, "serviceProbe", tc.spec))
		if p.Ended != tc.ended || len(p.Steps) != 1 || p.Steps[0].What != tc.says {
			t.Errorf("%s: recorded as %+v", tc.spec, p)
		}
		if tc.ended == bundle.ProbeFailed && !strings.Contains(p.Why, "and not relapse-earlier-vulnerable/before-0") {
			t.Errorf("%s: it failed for %q", tc.spec, p.Why)
		}
	}
}

func TestServiceProbeSpec(t *testing.T) {
	for spec, want := range map[string]string{
		`{"services":12,"timeout":"50s"}`:             "the service controller must get an address for 12 services within 50s",
		`{"services":3,"others":true,"timeout":"2m"}`: "the service controller must get an address for 3 services, and for those of other loads, within 2m0s",
		`{}`:                             "services is 0 (want at least 1)",
		`{"services":1,"beforehand":-1}`: "beforehand is -1 (want 0 or more)",
		`{"services":1,"timeout":"0s"}`:  "timeout is 0s (want above 0)",
	} {
		l, err := kinds.Decode[load.Load](kinds.Load, "serviceProbe", json.RawMessage(spec))
		if err != nil {
			t.Fatal(err)
		}
		p := l.(*loads.ServiceProbe)
		says := p.Describe()
		if err := p.Validate(); err != nil {
			says = err.Error()
		}
		if says != want {
			t.Errorf("%s\ngot  %s\nwant %s", spec, says, want)
		}
	}
}

package conformance_test

import (
	"encoding/json"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/stored"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// What an earlier version's plan asked for by a kind that is gone, today's kind accepts.
func TestKindsThatAreGoneBecomeValidOnes(t *testing.T) {
	for _, c := range []struct{ category, list, item string }{
		{kinds.Fault, "faults", `{"name":"a","kind":"csiNodeLoss","spec":{}}`},
		{kinds.Fault, "faults", `{"name":"a","kind":"hangingWebhook","spec":{"load":"creations","auditAnnotations":16000}}`},
		{kinds.Fault, "faults", `{"name":"a","kind":"processPause","spec":{"component":"etcd","atMost":"30s"}}`},
		{kinds.Fault, "faults", `{"name":"a","kind":"etcdLatency","spec":{"latency":"1s","jitter":"100ms"}}`},
		{kinds.Fault, "faults", `{"name":"a","kind":"etcdOutage","spec":{"connections":"reset","atMost":"20s"}}`},
		{kinds.Check, "exposure", `{"name":"a","kind":"objectField","spec":{"resource":"nodes","fields":{"a":"b"}}}`},
		{kinds.Load, "loads", `{"name":"a","kind":"schedulingProbe","spec":{"timeout":"2m","pods":[{"name":"a","gcePersistentDisk":"d1"},{"name":"b"}]}}`},
		{kinds.Load, "loads", `{"name":"a","kind":"createConfigMaps","spec":{"calls":6,"rounds":60,"timeout":"2s"}}`},
		{kinds.Check, "exposure", `{"name":"a","kind":"loadCalls","spec":{"load":"changes","code":200,"atLeast":45}}`},
	} {
		raw, err := stored.Convert(stored.Plan, []byte(`{"trials":[{"`+c.list+`":[`+c.item+`]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		var p struct {
			Trials []map[string][]struct {
				Kind string          `json:"kind"`
				Spec json.RawMessage `json:"spec"`
			} `json:"trials"`
		}
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		got := p.Trials[0][c.list][0]
		v, err := kinds.Decode[interface{ Validate() error }](c.category, got.Kind, got.Spec)
		if err == nil {
			err = v.Validate()
		}
		if err != nil {
			t.Errorf("%s became %s: %v", c.item, raw, err)
		}
	}
}

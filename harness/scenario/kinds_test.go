package scenario_test

import (
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// The kinds of the fixtures: one of each shape that a spec can have.
type testLatency struct {
	Latency metav1.Duration `json:"latency" jsonschema:"how much later each call answers"`
	Calls   []string        `json:"calls,omitempty" jsonschema:"the calls that are delayed"`
}

type testFlood struct {
	Pods  int `json:"pods" jsonschema:"how many pods are reported"`
	Inner struct {
		Rate float64 `json:"rate,omitempty"`
	} `json:"inner,omitzero"`
}

func (f *testFlood) Validate() error {
	if f.Pods > 1000 {
		return errors.New("pods is more than a node can list (want at most 1000)")
	}
	return nil
}

// testCalls has fields with placeholders of its own.
type testCalls struct {
	Path string          `json:"path,omitempty" placeholders:"n,arm"`
	Body json.RawMessage `json:"body,omitempty" placeholders:"n,arm"`
	Many []struct {
		Text string `json:"text,omitempty" placeholders:"n"`
	} `json:"many,omitempty"`
}

type testAbove struct {
	Metric string  `json:"metric" jsonschema:"the metric's name"`
	Limit  float64 `json:"limit,omitempty" jsonschema:"the value to exceed"`
}

// testSays asks for lines of a component's log: for one, if nothing says how many.
type testSays struct {
	Component string `json:"component" derives:"subject"`
	Pattern   string `json:"pattern"`
	Times     int    `json:"times,omitempty"`
	AtMost    int    `json:"atMost,omitempty"`
	But       *struct {
		Component string `json:"component" derives:"subject"`
		Pattern   string `json:"pattern"`
	} `json:"but,omitempty"`
}

func (*testSays) Implied(given map[string]any) map[string]any {
	if given["atMost"] != nil {
		return nil
	}
	return map[string]any{"times": 1}
}

// testWorks asks about a probe.
type testWorks struct {
	Probe string `json:"probe" refers:"probe"`
}

// testPulse has the words of another tool, whose tag says which texts are durations.
type testPulse struct{ foreignWords }

type foreignWords struct {
	Latency string `json:"latency,omitempty" webhook:"Duration"`
	Unit    string `json:"unit,omitempty"`
}

// testProbe is a load that has no effect.
type testProbe struct{}

func (*testProbe) Probe() bool { return true }

type testCounters struct{}

type testCut struct {
	Ident string `json:"ident"`
}

// fromPulse converts manifests of a tool that only the tests have.
func fromPulse(m map[string]any) (*kinds.Converted, []kinds.Objection) {
	spec, _ := m["spec"].(map[string]any)
	pulses, _ := spec["pulses"].([]any)
	metadata, _ := m["metadata"].(map[string]any)
	var found []kinds.Objection
	if spec["echo"] != nil {
		found = append(found, kinds.Objection{Field: "spec.echo", Message: "is nothing that we have"})
	}
	if len(pulses) != 1 {
		return nil, append(found, kinds.Objection{Field: "spec.pulses", Message: "are too many"})
	}
	if found != nil {
		return nil, found
	}
	return &kinds.Converted{
		Item: map[string]any{
			"name": metadata["name"], "kind": "testLatency", "spec": map[string]any{"latency": pulses[0]},
			"target": map[string]any{"mode": "all", "selector": map[string]any{"component": "etcd"}},
		},
		From: map[string]string{"name": "metadata.name", "spec.latency": "spec.pulses[0]"},
	}, nil
}

func init() {
	kinds.RegisterConverter(kinds.Converter{APIVersion: "pulse.example/v1", Convert: fromPulse})
	register := func(category, name string, spec func() any) {
		kinds.Register(category, kinds.Kind[any]{Name: name, Doc: "A test's " + name + ".\n\nDetails.", New: spec})
	}
	register(kinds.Fault, "testLatency", func() any { return &testLatency{Calls: []string{"List"}} })
	register(kinds.Fault, "testFlood", func() any { return &testFlood{Pods: 400} })
	register(kinds.Load, "testCalls", func() any { return &testCalls{} })
	register(kinds.Load, "testLoad", func() any { return &testPulse{} })
	register(kinds.Load, "testProbe", func() any { return &testProbe{} })
	register(kinds.Check, "testAbove", func() any { return &testAbove{} })
	register(kinds.Check, "testSays", func() any { return &testSays{} })
	register(kinds.Check, "testWorks", func() any { return &testWorks{} })
	register(kinds.Collector, "testCounters", func() any { return &testCounters{} })
	register(kinds.Mutation, "testCut", func() any { return &testCut{} })
	register(kinds.Seam, "testWire", func() any { return &struct{}{} })
}

package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// item is a fault on every kubelet's node.
func item(name, kind, spec string) scenario.Item {
	return scenario.Item{Spec: json.RawMessage(spec), ItemHeader: scenario.ItemHeader{Name: name, Kind: kind,
		Target: scenario.Target{Mode: "all", Selector: scenario.Selector{Component: "kubelet"}}}}
}

// A subject may be killed where nothing is asked of the process before, and another component anywhere.
func TestWhatMayBeKilled(t *testing.T) {
	for _, c := range []struct {
		spec, selector string
		without        []string
		o              plan.Options
	}{
		{`{"action": "kill", "component": "kubelet"}`, "kubelet", []string{"stuck", "heap", "cpu"}, plan.Options{}},
		{`{"action": "restart", "component": "kubelet"}`, "kubelet", nil, plan.Options{NoFaults: true}},
		{`{"action": "stop", "component": "kubelet"}`, "kubelet", nil, plan.Options{}},
		{`{"action": "kill", "component": "kube-proxy"}`, "kube-proxy", nil, plan.Options{}},
		{`{"action": "restart", "component": "kubelet", "flags": {"v": 4}}`, "kubelet", []string{"stuck", "heap", "cpu"}, plan.Options{}},
	} {
		s := load(t)
		f := item("end", "process", c.spec)
		f.Target.Selector.Component = c.selector
		s.Spec.Faults = append(s.Spec.Faults, f)
		for _, part := range c.without {
			s.Spec.Health.Without = append(s.Spec.Health.Without, scenario.Omission{Part: part, Why: "it is killed"})
		}
		if _, err := plan.New(s, c.o); err != nil {
			t.Errorf("%s: %v", c.spec, err)
		}
	}
}

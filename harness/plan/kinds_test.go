package plan_test

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

type latency struct {
	Latency metav1.Duration `json:"latency" jsonschema:"how much later each call answers"`
	Calls   []string        `json:"calls,omitempty"`
}

func (*latency) Needs() fault.Needs                          { return fault.Needs{Seams: []string{"testWire"}, Exec: true} }
func (*latency) Inject(context.Context, fault.Target) error  { return nil }
func (*latency) Recover(context.Context, fault.Target) error { return nil }

type flood struct {
	Pods int `json:"pods" jsonschema:"how many pods are reported"`
}

func (*flood) Needs() fault.Needs {
	return fault.Needs{Power: true, Constants: []string{"capacity"}}
}
func (*flood) Inject(context.Context, fault.Target) error  { return nil }
func (*flood) Recover(context.Context, fault.Target) error { return nil }
func (*flood) Modelled() []string                          { return []string{"containers are only reported"} }

type above struct {
	Metric string `json:"metric" jsonschema:"the metric's name"`
	Limit  string `json:"limit,omitempty" jsonschema:"the value to exceed, or a constant's name"`
}

func (*above) Reads() []bundle.Kind                        { return []bundle.Kind{bundle.MetricSamples} }
func (*above) Eval(bundle.View, check.Scope) check.Finding { return check.Finding{} }
func (a *above) Describe() string                          { return a.Metric + " is above " + a.Limit }
func (a *above) References() []kinds.Reference {
	if a.Limit != "capacity" {
		return nil
	}
	return []kinds.Reference{{To: kinds.ToConstant, Name: a.Limit, Path: []string{"limit"}}}
}

type counters struct{}

func (*counters) Makes() []bundle.Kind { return []bundle.Kind{bundle.MetricSamples} }
func (*counters) Snapshot(context.Context, capture.Target, *bundle.Writer) error {
	return nil
}

type silent struct{}

func (*silent) Makes() []bundle.Kind { return nil }

type cut struct {
	Ident string `json:"ident"`
}

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "testLatency", Doc: "Delays.", New: func() fault.Fault { return &latency{Calls: []string{"List"}} },
	})
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "testFlood", Doc: "Floods.", New: func() fault.Fault { return &flood{Pods: 400} },
	})
	kinds.Register(kinds.Check, kinds.Kind[check.Check]{
		Name: "testAbove", Doc: "Above.", New: func() check.Check { return &above{Limit: "0"} },
	})
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "testCounters", Doc: "Counts.", New: func() capture.Collector { return &counters{} },
	})
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "testSilent", Doc: "Makes nothing.", New: func() capture.Collector { return &silent{} },
	})
	kinds.Register(kinds.Mutation, kinds.Kind[any]{Name: "testCut", Doc: "Cuts.", New: func() any { return &cut{} }})
	kinds.Register(kinds.Seam, kinds.Kind[any]{Name: "testWire", Doc: "A wire.", New: func() any { return &struct{}{} }})
}

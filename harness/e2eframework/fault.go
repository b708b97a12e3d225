package e2eframework

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
)

// Injection is a fault with its targets.
type Injection struct {
	Name      string                  // identifies the fault; Inject and Recover must use the same
	Fault     fault.Fault             // for example from kinds.Decode; a program that imports package scenarios has all kinds
	On        func(cluster.Node) bool // chooses the nodes; at least one
	Constants map[string]int64        // of the subject, for faults whose size follows from them
	Beside    []fault.Fault           // the faults that act at the same time, from which a size may follow, too
	Expires   time.Duration           // then it lifts itself inside the node; required
	Events    *event.Stream           // nil drops the fault's events
}

// Inject returns an environment function that injects the fault and returns once its effect was observed.
func (p *Provider) Inject(i Injection) env.Func {
	return func(ctx context.Context, _ *envconf.Config) (context.Context, error) {
		t, err := p.target(i)
		f := i.Fault
		if c, ok := f.(fault.Computer); ok && err == nil {
			f, _, err = c.Compute([]map[string]int64{i.Constants}, i.Beside)
		}
		if err == nil {
			err = f.Inject(ctx, t)
		}
		if err != nil {
			return ctx, fmt.Errorf("injecting %s: %w", i.Name, err)
		}
		return ctx, nil
	}
}

// Recover returns an environment function that lifts the fault and returns once the lift was observed. It may run
// twice, and without Inject.
func (p *Provider) Recover(i Injection) env.Func {
	return func(ctx context.Context, _ *envconf.Config) (context.Context, error) {
		t, err := p.target(i)
		if err == nil {
			err = i.Fault.Recover(ctx, t)
		}
		if err != nil {
			return ctx, fmt.Errorf("recovering from %s: %w", i.Name, err)
		}
		return ctx, nil
	}
}

// target returns the fault's target. It refuses a fault whose needs aren't met, before the fault is injected.
func (p *Provider) target(i Injection) (fault.Target, error) {
	if p.cluster == nil {
		return fault.Target{}, errors.New("there is no cluster")
	}
	if i.Name == "" || i.Fault == nil || i.On == nil || i.Expires <= 0 {
		return fault.Target{}, errors.New("an injection needs a name, a fault, nodes and a time limit")
	}
	t := fault.Target{Run: p.name, Name: i.Name, Cluster: p.cluster, Expires: i.Expires, Events: i.Events}
	needs := i.Fault.Needs()
	for _, name := range needs.Constants {
		if _, ok := i.Constants[name]; !ok {
			return t, fmt.Errorf("it needs the constant %q", name)
		}
	}
	for _, n := range p.cluster.Nodes() {
		if !i.On(n) {
			continue
		}
		if _, err := cluster.Commands(n); needs.Exec && err != nil {
			return t, err
		}
		if _, err := cluster.Power(n); needs.Power && err != nil {
			return t, err
		}
		if _, err := cluster.NetworkOf(n); needs.Network && err != nil {
			return t, err
		}
		t.Nodes = append(t.Nodes, n)
	}
	if len(t.Nodes) == 0 {
		return t, errors.New("no node was chosen")
	}
	t.Arm = t.Nodes[0].Arm()
	for _, n := range t.Nodes {
		if n.Arm() != t.Arm {
			return t, fmt.Errorf("nodes of the arms %q and %q were chosen: a fault is for one", t.Arm, n.Arm())
		}
	}
	return t, nil
}

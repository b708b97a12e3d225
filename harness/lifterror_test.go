package harness

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/clustertest"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/fault"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// stuck is a fault whose first so many lifts fail; injecting it breaks the run off.
type stuck struct {
	blow
	interrupt func()
	fails     int
}

func (f *stuck) Inject(ctx context.Context, t fault.Target) error {
	f.interrupt()
	return f.blow.Inject(ctx, t)
}

func (f *stuck) Recover(ctx context.Context, t fault.Target) error {
	if f.fails > 0 {
		f.fails--
		return errors.New("the proxy doesn't answer")
	}
	return f.blow.Recover(ctx, t)
}

// treated puts one cell through fault and recovery, which is broken off once the fault is in force.
func treated(t *testing.T, fails int) (error, *story) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	u, heard := underWay(t, &rounds{story: &story{}}, &blow{story: &story{}}, time.Second)
	r := u.r
	if err := u.end(); err != nil {
		t.Fatal(err)
	}
	r.lab = &Lab{Events: r.events}
	r.sched = &scheduler{phases: map[string]string{}}
	r.loads = nil
	r.faults[0].item.After, r.faults[0].item.Duration = nil, 0
	r.faults[0].fault = &stuck{blow: blow{story: heard}, interrupt: cancel, fails: fails}
	return interrupted(ctx, r.treat(ctx, []string{"fixed"})), heard
}

func TestAFaultThatWasNotLiftedIsSaidAfterAnInterrupt(t *testing.T) {
	err, _ := treated(t, 1)
	if want := "a fault may still be in force: recovering fault in fixed: the proxy doesn't answer"; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want the interrupt and %q", err, want)
	}
	heard := &story{}
	inForce(event.NewStream(event.SinkFunc(func(e event.Event) { heard.tell("%s", e.Message) })), err)
	if got := heard.told(); len(got) != 1 || !strings.HasPrefix(got[0], "a fault may still be in force: recovering fault in fixed") {
		t.Errorf("of a cluster that is kept it says %q", got)
	}
}

func TestAFaultThatWasLiftedLeavesTheInterruptAlone(t *testing.T) {
	err, heard := treated(t, 0)
	if err != context.Canceled {
		t.Errorf("%v, want the interrupt alone", err)
	}
	if told := strings.Join(heard.told(), "; "); !strings.Contains(told, "injected") || !strings.Contains(told, "recovered") {
		t.Errorf("it was not lifted: %s", told)
	}
}

// weak is a provider whose clusters can't do everything.
type weak struct {
	clustertest.Provider
	can cluster.Capabilities
}

func (p *weak) Capabilities(context.Context) (cluster.Capabilities, error) { return p.can, nil }

func TestWhatAProviderCantDoIsRefused(t *testing.T) {
	p := &plan.Plan{Schema: plan.Schema, Scenario: "x", Version: "v1.34.4", Trials: []plan.Trial{{ID: "001", Pair: "modern", Placement: plan.PlacementNode,
		Faults: []plan.Item{{Name: "off", Kind: "nodePowerOff", Target: scenario.Target{Mode: "all", Selector: scenario.Selector{Component: "kubelet"}}, Spec: []byte("{}")}}}}}
	err := refuse(t.Context(), &weak{can: cluster.Capabilities{Exec: true, NodeFiles: true}}, p)
	var lacks *CapabilityError
	if want := `fault "off" must cut the power of nodes, which this provider can't`; !errors.As(err, &lacks) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want it to say %q", err, want)
	}
	if err := refuse(t.Context(), &weak{can: cluster.Capabilities{Exec: true, Power: true}}, p); err == nil || !strings.Contains(err.Error(), "arms and seams are files of nodes, which this provider can't lay down") {
		t.Errorf("without files in nodes: %v", err)
	}
}

package harness

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial"
	"github.com/kube-relapse/relapse/internal/clustertest"
	_ "github.com/kube-relapse/relapse/scenarios"
)

func TestAClusterThatIsKeptIsSaidToHaveAFaultInForce(t *testing.T) {
	var heard []string
	left := errors.Join(context.Canceled, &trial.LiftError{Err: errors.New("recovering fault in fixed: the proxy doesn't answer")})
	inForce(event.NewStream(event.SinkFunc(func(e event.Event) { heard = append(heard, e.Message) })), left)
	if len(heard) != 1 || !strings.HasPrefix(heard[0], "a fault may still be in force: recovering fault in fixed") {
		t.Errorf("it says %q", heard)
	}
}

// weak is a provider whose clusters can't do everything.
type weak struct {
	clustertest.Provider
	can cluster.Capabilities
}

func (p *weak) Capabilities(context.Context) (cluster.Capabilities, error) { return p.can, nil }

func TestWhatAProviderCantDoIsRefused(t *testing.T) {
	off, err := kinds.Make[fault.Fault](kinds.Fault, "nodePowerOff")
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Schema: plan.Schema, Scenario: "x", Version: "v1.34.4", Trials: []plan.Trial{{ID: "001", Pair: "modern", Placement: plan.PlacementNode,
		Faults: []plan.Fault{{ItemHeader: scenario.ItemHeader{Name: "off", Kind: "nodePowerOff", Target: scenario.Target{Mode: "all", Selector: scenario.Selector{Component: "kubelet"}}},
			Spec: off}}}}}
	err = refuse(t.Context(), &weak{can: cluster.Capabilities{NodeFiles: true}}, p)
	var lacks *CapabilityError
	if want := `fault "off" must cut the power of nodes, which this provider can't`; !errors.As(err, &lacks) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want it to say %q", err, want)
	}
	p.Trials[0].Seams = []string{"cri"}
	if err := refuse(t.Context(), &weak{can: cluster.Capabilities{}}, p); err == nil || !strings.Contains(err.Error(), "the seam cri is files of nodes, which this provider can't install") {
		t.Errorf("without files in nodes: %v", err)
	}
}

package plan_test

import (
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
)

// Arms bring the subject's program along where each has a control plane to itself, and nowhere else.
func TestNeedsSayWhatArmsBringAlong(t *testing.T) {
	trial := func(subject, placement string) plan.Trial {
		return plan.Trial{Subject: subject, Placement: placement}
	}
	own, shared := trial("kube-scheduler", plan.PlacementCluster), trial("kubelet", plan.PlacementNode)
	for _, c := range []struct {
		trials []plan.Trial
		want   []string
	}{
		{[]plan.Trial{own, own}, []string{"kube-scheduler"}},
		{[]plan.Trial{shared}, nil},
		{[]plan.Trial{own, shared}, nil},
		{[]plan.Trial{own, trial("etcd", plan.PlacementCluster)}, nil},
		{nil, nil},
	} {
		p := plan.Plan{Trials: c.trials}
		if got := p.Needs(nil).Arms; !slices.Equal(got, c.want) {
			t.Errorf("of %+v they are %q, want %q", c.trials, got, c.want)
		}
	}
}

package trial

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// Where arms share their nodes, which belong to no arm, a load of each arm finds them.
func TestLoadWhereArmsShareTheirNodes(t *testing.T) {
	tr := plan.Trial{Placement: plan.PlacementNode, Subject: "kubelet", Clusters: []plan.Cluster{{Topology: cluster.Topology{
		Nodes: []cluster.NodeSpec{{Name: cluster.ControlPlane, Role: cluster.ControlPlane}}}}}}
	for _, arm := range []string{"vulnerable", "fixed"} {
		tr.Arms = append(tr.Arms, plan.Arm{Arm: scenario.Arm{Name: arm}})
		tr.Clusters[0].Topology.Nodes = append(tr.Clusters[0].Topology.Nodes, cluster.NodeSpec{Name: arm, Role: cluster.Worker, Arm: arm})
	}
	env := fakeEnvironment(t, tr, &clustertest.Provider{InProcess: true}, event.NewStream())
	env.Trial.Placement = plan.PlacementWorkload // after the cluster was made, which runs no workloads
	x := &injections{env: env}
	item := scenario.ItemHeader{Name: "own", Target: scenario.Target{Mode: "all", Selector: scenario.Selector{Component: "kube-apiserver"}}}
	for _, arm := range []string{"vulnerable", "fixed"} {
		at, err := x.loadTarget(arm, item)
		if err != nil || at.Arm != arm || len(at.Nodes) != 1 || at.Cluster != env.Cluster() {
			t.Errorf("of %s: %+v, %v", arm, at, err)
		}
	}
}

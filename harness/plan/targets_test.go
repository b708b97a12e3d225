package plan_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// What an item's target comes to is known when it is planned, and a target that comes to nothing is refused with the
// nodes that there are.
func TestATargetThatSelectsNoNodeIsRefusedWithTheNodesThatThereAre(t *testing.T) {
	const own = "control-plane (control-plane, labels node-role.kubernetes.io/control-plane=), " +
		"worker (worker, arm vulnerable, labels relapse.dev/arm=vulnerable), worker2 (worker, arm fixed, labels relapse.dev/arm=fixed)"
	for _, tc := range []struct {
		name   string
		target scenario.Target
		seed   int64
		want   string // "" if it can be planned
	}{
		{"every arm's node", scenario.Target{Mode: "all", Selector: scenario.Selector{Nodes: []string{"arm"}}}, 0, ""},
		{"one arm's node", scenario.Target{Mode: "all", Arm: "fixed", Selector: scenario.Selector{Nodes: []string{"worker2"}}}, 0, ""},
		{"another arm's node", scenario.Target{Mode: "all", Arm: "fixed", Selector: scenario.Selector{Nodes: []string{"worker"}}}, 0,
			`planning pleg, pair modern, trial 001: fault "flood": the selector (nodes worker) matches none of the nodes of arm fixed: there are ` + own},
		{"one arm's node in every arm", scenario.Target{Mode: "all", Selector: scenario.Selector{Nodes: []string{"worker"}}}, 0,
			`fault "flood": the selector (nodes worker) matches none of the nodes of arm fixed`},
		{"no such node", scenario.Target{Mode: "one", Selector: scenario.Selector{Nodes: []string{"worker7"}}}, 0,
			`fault "flood": the selector (nodes worker7) names the node "worker7", which the cluster doesn't have: it has ` + own},
		{"no such label", scenario.Target{Mode: "all", Selector: scenario.Selector{NodeSelectors: map[string]string{"disk": "ssd"}}}, 0,
			`fault "flood": the selector (nodeSelectors disk=ssd) matches none of the nodes of arm vulnerable: there are ` + own},
		{"empty", scenario.Target{Mode: "all"}, 0, `fault "flood": the selector is empty, which would select everything`},
		{"pods", scenario.Target{Mode: "all", Selector: scenario.Selector{Namespaces: []string{"default"}}}, 0, `fault "flood": the selector means pods`},
		{"half of one", scenario.Target{Mode: "fixed-percent", Value: "50", Selector: scenario.Selector{Component: "kubelet"}}, 0,
			`fault "flood": the selector (component kubelet) matches 1 nodes of arm vulnerable (worker), and mode fixed-percent takes 50 % of them, rounded down to none`},
		{"two of one", scenario.Target{Mode: "fixed", Value: "2", Selector: scenario.Selector{Component: "kubelet"}}, 0, `and mode fixed wants 2`},
		{"a share drawn by the run's seed", scenario.Target{Mode: "random-max-percent", Value: "99", Selector: scenario.Selector{Component: "kubelet"}}, 7,
			`rounded down to none, drawn by the seed 7 from 0 to 99 %`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := load(t)
			s.Spec.Faults[1].Target = tc.target
			_, err := plan.New(s, plan.Options{Seed: tc.seed})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// Arms that share a cluster share its nodes, too: a fault is for the nodes that belong to no arm.
func TestFaultsOfAClusterThatArmsShareSelectNodesOfNoArm(t *testing.T) {
	for _, tc := range []struct {
		name   string
		target scenario.Target
		want   string
	}{
		{"a role", scenario.Target{Mode: "all", Selector: scenario.Selector{NodeSelectors: map[string]string{plan.RoleLabel: "worker"}}}, ""},
		{"a node", scenario.Target{Mode: "one", Selector: scenario.Selector{Nodes: []string{"worker2"}}}, ""},
		{"half of the workers", scenario.Target{Mode: "fixed-percent", Value: "50", Selector: scenario.Selector{NodeSelectors: map[string]string{plan.RoleLabel: "worker"}}}, ""},
		{"no such role", scenario.Target{Mode: "all", Selector: scenario.Selector{NodeSelectors: map[string]string{plan.RoleLabel: "boss"}}},
			`fault "flood": the selector (nodeSelectors relapse.dev/role=boss) matches none of the nodes that belong to no arm: there are control-plane (control-plane, labels `},
		{"an arm's own nodes", scenario.Target{Mode: "all", Selector: scenario.Selector{Nodes: []string{"arm"}}}, `matches none of the nodes that belong to no arm`},
		{"one arm", scenario.Target{Mode: "all", Arm: "fixed", Selector: scenario.Selector{Nodes: []string{"worker"}}},
			`fault "flood": it is aimed at arm fixed, and the arms share the nodes (want no arm)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := load(t)
			s.Spec.Placement, s.Spec.Seams, s.Spec.Restart, s.Spec.Faults = plan.PlacementWorkload, nil, nil, s.Spec.Faults[1:]
			s.Spec.Faults[0].After, s.Spec.Nodes = nil, &scenario.Nodes{Workers: 2}
			s.Spec.Faults[0].Target = tc.target
			_, err := plan.New(s, plan.Options{})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// Several control planes are refused with the provider's own reason, and planned where it has none.
func TestSeveralControlPlanesArePlannedOnlyWhereTheProviderHasThem(t *testing.T) {
	s := load(t)
	s.Spec.Placement, s.Spec.Seams, s.Spec.Restart, s.Spec.Faults = plan.PlacementWorkload, nil, nil, s.Spec.Faults[1:]
	s.Spec.Faults[0].After, s.Spec.Nodes = nil, &scenario.Nodes{ControlPlanes: 3, Workers: 2}
	s.Spec.Faults[0].Target = scenario.Target{Mode: "all", Selector: scenario.Selector{Nodes: []string{"worker"}}}
	have := machines(t)
	p, err := plan.New(s, plan.Options{Capabilities: &have})
	if err != nil || len(p.Trials[0].Clusters[0].Topology.Nodes) != 5 {
		t.Fatalf("three control planes where they can be had: %v", err)
	}
	have.OneControlPlane = func() string { return "the load balancer's image can't be had" }
	_, err = plan.New(s, plan.Options{Capabilities: &have})
	if want := "the topology has 3 control planes, and here a cluster can have one only: the load balancer's image can't be had"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	s.Spec.Nodes.ControlPlanes = 1
	if _, err := plan.New(s, plan.Options{Capabilities: &have}); err != nil {
		t.Errorf("one control plane: %v", err)
	}
}

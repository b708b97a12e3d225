package fault_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/clustertest"
	"github.com/kube-relapse/relapse/harness/fault"
	"github.com/kube-relapse/relapse/harness/scenario"
)

func TestSelect(t *testing.T) {
	c := clustertest.New("relapse-x", cluster.Topology{Version: "v1.34.4", Nodes: []cluster.NodeSpec{
		{Name: "control-plane", Role: cluster.ControlPlane},
		{Name: "worker", Role: cluster.Worker, Cell: "one"},
		{Name: "worker2", Role: cluster.Worker, Cell: "one"},
		{Name: "worker3", Role: cluster.Worker, Cell: "two"},
	}})
	labels := map[string]map[string]string{"relapse-x-worker2": {"disk": "ssd"}}
	kubelet := scenario.Selector{Component: "kubelet"}
	for _, tc := range []struct {
		name   string
		target scenario.Target
		cell   string
		want   int
		node   string // one that must be among them
		err    string
	}{
		{"all of a cell", scenario.Target{Mode: "all", Selector: kubelet}, "one", 2, "relapse-x-worker", ""},
		{"the other cell", scenario.Target{Mode: "all", Selector: kubelet}, "two", 1, "relapse-x-worker3", ""},
		{"one", scenario.Target{Mode: "one", Selector: kubelet}, "one", 1, "", ""},
		{"fixed", scenario.Target{Mode: "fixed", Value: "2", Selector: kubelet}, "one", 2, "", ""},
		{"by name", scenario.Target{Mode: "all", Selector: scenario.Selector{Nodes: []string{"worker2"}}}, "one", 1, "relapse-x-worker2", ""},
		{"by label", scenario.Target{Mode: "all", Selector: scenario.Selector{NodeSelectors: map[string]string{"disk": "ssd"}}}, "one", 1, "relapse-x-worker2", ""},
		{"more than there are", scenario.Target{Mode: "fixed", Value: "3", Selector: kubelet}, "one", 0, "", "matches 2 nodes of cell one, and mode fixed wants 3"},
		{"nothing", scenario.Target{Mode: "all", Selector: scenario.Selector{Nodes: []string{"elsewhere"}}}, "one", 0, "", "matches 0 nodes of cell one, and mode all wants 1"},
		{"pods", scenario.Target{Mode: "all", Selector: scenario.Selector{Namespaces: []string{"default"}}}, "one", 0, "", "the selector means pods"},
		{"a mode that isn't", scenario.Target{Mode: "most", Selector: kubelet}, "one", 0, "", `mode "most" (want one, all or fixed)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := fault.Select(tc.target, c, tc.cell, labels, 1)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want an error with %q", err, tc.err)
				}
				return
			}
			if err != nil || len(got) != tc.want {
				t.Fatalf("got %d nodes, %v; want %d", len(got), err, tc.want)
			}
			seen := tc.node == ""
			for _, n := range got {
				seen = seen || n.Name() == tc.node
			}
			if !seen {
				t.Errorf("%s is not among them", tc.node)
			}
		})
	}
}

func TestSelectDrawsTheSameForOneSeed(t *testing.T) {
	c := clustertest.New("relapse-x", cluster.Topology{Version: "v1.34.4", Nodes: []cluster.NodeSpec{
		{Name: "worker", Role: cluster.Worker, Cell: "one"}, {Name: "worker2", Role: cluster.Worker, Cell: "one"}, {Name: "worker3", Role: cluster.Worker, Cell: "one"},
	}})
	target := scenario.Target{Mode: "one", Selector: scenario.Selector{Component: "kubelet"}}
	drawn := map[string]bool{}
	for seed := range int64(20) {
		first, err := fault.Select(target, c, "one", nil, seed)
		if err != nil {
			t.Fatal(err)
		}
		again, err := fault.Select(target, c, "one", nil, seed)
		if err != nil || again[0].Name() != first[0].Name() {
			t.Fatalf("seed %d drew %s and then %v, %v", seed, first[0].Name(), again, err)
		}
		drawn[first[0].Name()] = true
	}
	if len(drawn) < 2 {
		t.Errorf("20 seeds drew %v only", drawn)
	}
}

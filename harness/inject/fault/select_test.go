package fault_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// three is a topology with nodes of two arms, and two that belong to none.
var three = []cluster.NodeSpec{
	{Name: "control-plane", Role: cluster.ControlPlane},
	{Name: "worker", Role: cluster.Worker, Arm: "one"},
	{Name: "worker2", Role: cluster.Worker, Arm: "one", Labels: map[string]string{"disk": "ssd", "empty": ""}},
	{Name: "worker3", Role: cluster.Worker, Arm: "two"},
	{Name: "worker4", Role: cluster.Worker, Labels: map[string]string{"disk": "ssd"}},
}

// there is how messages describe it.
const there = "control-plane (control-plane, labels node-role.kubernetes.io/control-plane=), worker (worker, arm one), " +
	"worker2 (worker, arm one, labels disk=ssd,empty=), worker3 (worker, arm two), worker4 (worker, labels disk=ssd)"

func by(mode, value string, s scenario.Selector) scenario.Target {
	return scenario.Target{Mode: mode, Value: value, Selector: s}
}

func labelled(pairs ...string) scenario.Selector {
	s := scenario.Selector{NodeSelectors: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		s.NodeSelectors[pairs[i]] = pairs[i+1]
	}
	return s
}

func TestSelectNodes(t *testing.T) {
	kubelet, named := scenario.Selector{Component: "kubelet"}, func(n ...string) scenario.Selector { return scenario.Selector{Nodes: n} }
	for _, tc := range []struct {
		name   string
		target scenario.Target
		arm    string
		want   string // names; of a draw, how many
		err    string
	}{
		{"all of an arm", by("all", "", kubelet), "one", "worker worker2", ""},
		{"the other arm", by("all", "", kubelet), "two", "worker3", ""},
		{"of no arm", by("all", "", kubelet), bundle.Shared, "control-plane worker4", ""},
		{"fixed, all that there are", by("fixed", "2", kubelet), "one", "worker worker2", ""},
		{"by name", by("all", "", named("worker2")), "one", "worker2", ""},
		{"by names, of which one is another arm's", by("all", "", named("worker2", "worker3")), "one", "worker2", ""},
		{"the arm's own", by("all", "", named("arm")), "one", "worker worker2", ""},
		{"by label", by("one", "", labelled("disk", "ssd")), "one", "worker2", ""},
		{"by label and name", by("all", "", scenario.Selector{Nodes: []string{"worker4"}, NodeSelectors: map[string]string{"disk": "ssd"}}), bundle.Shared, "worker4", ""},
		{"by a label without a value", by("all", "", labelled("empty", "")), "one", "worker2", ""},
		{"control planes", by("all", "", labelled("node-role.kubernetes.io/control-plane", "")), bundle.Shared, "control-plane", ""},
		{"what runs on control planes", by("all", "", scenario.Selector{Component: "etcd"}), bundle.Shared, "control-plane", ""},
		{"all percent", by("fixed-percent", "100", kubelet), "one", "worker worker2", ""},

		{"fixed, more than there are", by("fixed", "3", kubelet), "one", "",
			"the selector (component kubelet) matches 2 nodes of arm one (worker, worker2), and mode fixed wants 3"},
		{"a name that isn't", by("all", "", named("worker", "elsewhere")), "one", "",
			`the selector (nodes worker, elsewhere) names the node "elsewhere", which the cluster doesn't have: it has ` + there},
		{"a name of another arm", by("all", "", named("worker3")), "one", "", "the selector (nodes worker3) matches none of the nodes of arm one: there are " + there},
		{"own nodes without an arm", by("all", "", named("arm")), bundle.Shared, "",
			"the selector (nodes arm) matches none of the nodes that belong to no arm: there are " + there},
		{"a label that no node has", by("all", "", labelled("node-role.kubernetes.io/worker", "")), "one", "",
			"the selector (nodeSelectors node-role.kubernetes.io/worker=) matches none of the nodes of arm one: there are " + there},
		{"a label and a name that exclude each other", by("all", "", scenario.Selector{Nodes: []string{"worker"}, NodeSelectors: map[string]string{"disk": "ssd"}}), "one", "",
			"the selector (nodes worker; nodeSelectors disk=ssd) matches none of the nodes of arm one"},
		{"a component that isn't there", by("all", "", scenario.Selector{Component: "etcd"}), "one", "", "the selector (component etcd) matches none of the nodes of arm one"},
		{"an unknown component", by("all", "", scenario.Selector{Component: "agent"}), "one", "", "the selector (component agent) matches none of the nodes of arm one"},
		{"an arm that isn't", by("all", "", kubelet), "three", "", "matches none of the nodes of arm three"},
		{"empty", by("all", "", scenario.Selector{}), "one", "", "the selector is empty, which would select everything (want nodes, nodeSelectors or component)"},
		{"pods", by("all", "", scenario.Selector{Namespaces: []string{"default"}}), "one", "", "the selector means pods"},
		{"a mode that isn't", by("most", "", kubelet), "one", "", `and the mode is "most" (want one, all, fixed, fixed-percent or random-max-percent)`},
		{"fixed without a number", by("fixed", "", kubelet), "one", "", `and mode fixed has the value "" (want a number of at least 1)`},
		{"no percent", by("fixed-percent", "0", kubelet), "one", "", `and mode fixed-percent has the value "0" (want a percentage from 1 to 100)`},
		{"too many percent", by("random-max-percent", "101", kubelet), "one", "", `and mode random-max-percent has the value "101" (want a percentage from 1 to 100)`},
		{"percent of too few", by("fixed-percent", "49", kubelet), "one", "",
			"the selector (component kubelet) matches 2 nodes of arm one (worker, worker2), and mode fixed-percent takes 49 % of them, rounded down to none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := fault.SelectNodes(tc.target, three, tc.arm, 1)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got  %v\nwant %s", err, tc.err)
				}
				return
			}
			if err != nil || strings.Join(got, " ") != tc.want {
				t.Fatalf("got %q, %v; want %s", got, err, tc.want)
			}
		})
	}
}

// workers are n nodes of one arm.
func workers(n int) []cluster.NodeSpec {
	var out []cluster.NodeSpec
	for i := range n {
		out = append(out, cluster.NodeSpec{Name: fmt.Sprint("worker", i), Role: cluster.Worker, Arm: "one"})
	}
	return out
}

// A share of the nodes is rounded down, as in Chaos Mesh.
func TestSelectPercent(t *testing.T) {
	for _, tc := range []struct{ nodes, percent, want int }{{2, 50, 1}, {3, 50, 1}, {3, 66, 1}, {3, 67, 2}, {10, 29, 2}, {100, 29, 29}, {7, 99, 6}} {
		got, err := fault.SelectNodes(by("fixed-percent", fmt.Sprint(tc.percent), scenario.Selector{Component: "kubelet"}), workers(tc.nodes), "one", 3)
		if err != nil || len(got) != tc.want {
			t.Errorf("%d %% of %d nodes: %q, %v; want %d", tc.percent, tc.nodes, got, err, tc.want)
		}
	}
}

// A random share comes out anywhere up to its value and never beyond, and the share that is none is refused by its
// seed.
func TestSelectRandomPercent(t *testing.T) {
	seen := map[int]bool{}
	for seed := range int64(200) {
		got, err := fault.SelectNodes(by("random-max-percent", "50", scenario.Selector{Component: "kubelet"}), workers(10), "one", seed)
		seen[len(got)] = true
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("rounded down to none, drawn by the seed %d from 0 to 50 %%", seed)) || (err != nil) != (len(got) == 0) {
			t.Errorf("seed %d: %q, %v", seed, got, err)
		}
	}
	if want := []int{0, 1, 2, 3, 4, 5}; len(seen) != len(want) || slices.ContainsFunc(want, func(n int) bool { return !seen[n] }) {
		t.Errorf("it chose %v nodes, want each of %v", seen, want)
	}
}

// A draw gives the same nodes for one seed, in each arm, and others for other seeds.
func TestSelectDrawsBySeedAlone(t *testing.T) {
	for _, mode := range []struct{ mode, value string }{{"one", ""}, {"fixed", "2"}, {"fixed-percent", "70"}} {
		drawn := map[string]bool{}
		for seed := range int64(20) {
			target := by(mode.mode, mode.value, scenario.Selector{Component: "kubelet"})
			first, err := fault.SelectNodes(target, workers(3), "one", seed)
			if err != nil {
				t.Fatal(err)
			}
			others := workers(3)
			for i := range others {
				others[i].Arm = "two"
			}
			again, err := fault.SelectNodes(target, others, "two", seed)
			if err != nil || !slices.Equal(again, first) {
				t.Errorf("mode %s, seed %d chose %q, then %q, %v", mode.mode, seed, first, again, err)
			}
			if !slices.IsSorted(first) {
				t.Errorf("mode %s, seed %d: %q is not in the topology's order", mode.mode, seed, first)
			}
			drawn[strings.Join(first, " ")] = true
		}
		if len(drawn) != 3 {
			t.Errorf("mode %s: 20 seeds chose %d different sets, want all 3", mode.mode, len(drawn))
		}
	}
}

// On a cluster that runs, the choice is the planned one.
func TestSelect(t *testing.T) {
	c := clustertest.New("relapse-x", cluster.Topology{Version: "v1.34.4", Nodes: three})
	t.Cleanup(c.Close)
	labels := map[string]map[string]string{}
	for _, n := range three {
		labels["relapse-x-"+n.Name] = n.Labels
	}
	for _, target := range []scenario.Target{
		by("all", "", scenario.Selector{Component: "kubelet"}), by("one", "", scenario.Selector{Component: "kubelet"}),
		by("one", "", labelled("disk", "ssd")), by("fixed-percent", "50", scenario.Selector{Nodes: []string{"worker", "worker2"}}),
	} {
		for seed := range int64(5) {
			planned, err := fault.SelectNodes(target, three, "one", seed)
			if err != nil {
				t.Fatal(err)
			}
			got, err := fault.Select(target, c, "one", labels, seed)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, n := range got {
				names = append(names, strings.TrimPrefix(n.Name(), "relapse-x-"))
			}
			if !slices.Equal(names, planned) {
				t.Errorf("%+v, seed %d: planned %q, chosen %q", target, seed, planned, names)
			}
		}
	}
	if _, err := fault.Select(by("all", "", scenario.Selector{Nodes: []string{"worker9"}}), c, "one", nil, 1); err == nil || !strings.Contains(err.Error(), `names the node "worker9"`) {
		t.Errorf("a node that isn't there: %v", err)
	}
}

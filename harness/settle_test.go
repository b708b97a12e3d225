package harness

import (
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// startingWorld has a cell for each arm, in one cluster or, with versions, in one of its own each.
func startingWorld(placement string, arms []string, versions ...string) *World {
	w := &World{trial: plan.Trial{Placement: placement}, cells: map[string]built{}}
	roles := map[string]string{"vulnerable": scenario.Vulnerable, "fixed": scenario.Fixed, "candidate": scenario.Candidate}
	for i, name := range arms {
		w.trial.Cells = append(w.trial.Cells, plan.Cell{Name: name, Arm: scenario.Arm{Name: name, Role: roles[name]}})
		w.cells[name] = built{digest: name}
		node := cluster.NodeSpec{Name: name, Cell: name}
		switch {
		case len(versions) > 0:
			w.trial.Clusters = append(w.trial.Clusters, plan.Cluster{Name: name, Topology: cluster.Topology{Version: versions[i], Nodes: []cluster.NodeSpec{node}}})
		case i == 0:
			w.trial.Clusters = []plan.Cluster{{Topology: cluster.Topology{Version: "v1.34.4", Nodes: []cluster.NodeSpec{node}}}}
		default:
			w.trial.Clusters[0].Topology.Nodes = append(w.trial.Clusters[0].Topology.Nodes, node)
		}
	}
	return w
}

func TestACandidatesNodeBeginsWithAControlsBuild(t *testing.T) {
	all := []string{"vulnerable", "fixed", "candidate"}
	for _, c := range []struct {
		name  string
		world *World
		want  string // what the candidate's node begins with
		lays  bool
	}{
		{"nodes", startingWorld(plan.PlacementNode, all), "fixed", true},
		{"nodes without the fixed arm", startingWorld(plan.PlacementNode, []string{"vulnerable", "candidate"}), "vulnerable", true},
		{"alone", startingWorld(plan.PlacementNode, []string{"candidate"}), "candidate", false},
		{"clusters", startingWorld(plan.PlacementCluster, all, "v1.22.2", "v1.23.17", "v1.22.2"), "vulnerable", true},
		{"clusters of one version", startingWorld(plan.PlacementCluster, all, "v1.34.4", "v1.34.4", "v1.34.4"), "fixed", true},
		{"a cluster of a version that no control has", startingWorld(plan.PlacementCluster, all, "v1.22.2", "v1.23.17", "v1.24.0"), "candidate", false},
		{"workloads", startingWorld(plan.PlacementWorkload, all), "candidate", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.world.starter("candidate").digest; got != c.want {
				t.Errorf("it begins with the build of %s, want %s", got, c.want)
			}
			if got := c.world.lays(); got != c.lays {
				t.Errorf("builds are laid afterwards: %t, want %t", got, c.lays)
			}
			for _, name := range []string{"vulnerable", "fixed"} {
				if _, there := c.world.cells[name]; there && c.world.starter(name).digest != name {
					t.Errorf("%s begins with the build of %s", name, c.world.starter(name).digest)
				}
			}
		})
	}
	w := startingWorld(plan.PlacementNode, all)
	w.silent = []string{"candidate"}
	if got := w.speaking(all); !slices.Equal(got, []string{"vulnerable", "fixed"}) {
		t.Errorf("speaking are %v", got)
	}
}

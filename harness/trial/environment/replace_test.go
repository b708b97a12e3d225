package environment

import (
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// starting has a cell for each arm, in one cluster or, with versions, in one of its own each.
func starting(placement string, arms []string, versions ...string) *Environment {
	e := &Environment{Trial: plan.Trial{Placement: placement}, builds: map[string]artifacts.Build{}}
	roles := map[string]string{"vulnerable": scenario.Vulnerable, "fixed": scenario.Fixed, "candidate": scenario.Candidate}
	for i, name := range arms {
		e.Trial.Cells = append(e.Trial.Cells, plan.Cell{Name: name, Arm: scenario.Arm{Name: name, Role: roles[name]}})
		e.builds[name] = artifacts.Build{Digest: name}
		node := cluster.NodeSpec{Name: name, Cell: name}
		switch {
		case len(versions) > 0:
			e.Trial.Clusters = append(e.Trial.Clusters, plan.Cluster{Name: name, Topology: cluster.Topology{Version: versions[i], Nodes: []cluster.NodeSpec{node}}})
		case i == 0:
			e.Trial.Clusters = []plan.Cluster{{Topology: cluster.Topology{Version: "v1.34.4", Nodes: []cluster.NodeSpec{node}}}}
		default:
			e.Trial.Clusters[0].Topology.Nodes = append(e.Trial.Clusters[0].Topology.Nodes, node)
		}
	}
	return e
}

func TestACandidatesNodeBeginsWithAControlsBuild(t *testing.T) {
	all := []string{"vulnerable", "fixed", "candidate"}
	for _, c := range []struct {
		name     string
		env      *Environment
		want     string // what the candidate's node begins with
		replaces bool
	}{
		{"nodes", starting(plan.PlacementNode, all), "fixed", true},
		{"nodes without the fixed arm", starting(plan.PlacementNode, []string{"vulnerable", "candidate"}), "vulnerable", true},
		{"alone", starting(plan.PlacementNode, []string{"candidate"}), "candidate", false},
		{"clusters", starting(plan.PlacementCluster, all, "v1.22.2", "v1.23.17", "v1.22.2"), "vulnerable", true},
		{"clusters of one version", starting(plan.PlacementCluster, all, "v1.34.4", "v1.34.4", "v1.34.4"), "fixed", true},
		{"a cluster of a version that no control has", starting(plan.PlacementCluster, all, "v1.22.2", "v1.23.17", "v1.24.0"), "candidate", false},
		{"workloads", starting(plan.PlacementWorkload, all), "candidate", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.env.firstBuild("candidate").Digest; got != c.want {
				t.Errorf("it begins with the build of %s, want %s", got, c.want)
			}
			if got := c.env.replaces(); got != c.replaces {
				t.Errorf("builds are replaced afterwards: %t, want %t", got, c.replaces)
			}
			for _, name := range []string{"vulnerable", "fixed"} {
				if _, there := c.env.builds[name]; there && c.env.firstBuild(name).Digest != name {
					t.Errorf("%s begins with the build of %s", name, c.env.firstBuild(name).Digest)
				}
			}
		})
	}
	e := starting(plan.PlacementNode, all)
	e.unresponsive = []string{"candidate"}
	if got := e.Responsive(all); !slices.Equal(got, []string{"vulnerable", "fixed"}) {
		t.Errorf("responsive are %v", got)
	}
}

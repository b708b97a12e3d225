package environment

import (
	"maps"
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/plan"
)

// topology puts the executables that arms begin with, and the seams, into a planned cluster's topology.
func (e *Environment) topology(c plan.Cluster) (cluster.Topology, error) {
	top := c.Topology
	top.Network = e.clusterName(c.Name)
	top.Nodes = slices.Clone(top.Nodes)
	for i := range top.Nodes {
		n := &top.Nodes[i]
		if n.Cell == "" {
			continue
		}
		installSubject(n, e.Trial.Subject, e.firstBuild(n.Cell).Path)
		for _, name := range e.Trial.Seams {
			k, err := kinds.Make[seam.Seam](kinds.Seam, name)
			if err != nil {
				return top, err
			}
			if k.Role() != n.Role {
				continue
			}
			if err := seam.Install(n, k, e.artifacts.Fixture(k.Fixture())); err != nil {
				return top, err
			}
		}
	}
	return top, nil
}

// installSubject puts an arm's executable where the node runs it from: a kubelet over the node's own, anything else into its static pod over the one
// of the image.
func installSubject(n *cluster.NodeSpec, subject, path string) {
	n.Files = slices.Concat(n.Files, []cluster.File{{Path: executable(subject), Source: path, Mode: 0o755}})
	row, _ := component.Of(subject)
	if row.Runs == component.AsService {
		return
	}
	n.Mounts = maps.Clone(n.Mounts)
	if n.Mounts == nil {
		n.Mounts = map[string]map[string]string{}
	}
	n.Mounts[subject] = map[string]string{row.Executable: executable(subject)}
}

// executable is where a node has a component's executable.
func executable(name string) string {
	if row, _ := component.Of(name); row.Runs == component.AsService {
		return row.Executable
	}
	return "/opt/relapse/subject/" + name
}

package environment

import (
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/plan"
)

// topology returns a planned cluster's topology, with the executables that arms begin with and the seams added.
func (e *Environment) topology(c plan.Cluster) (cluster.Topology, error) {
	top := c.Topology
	top.Network = e.clusterName(c.Name)
	top.Nodes = slices.Clone(top.Nodes)
	for i := range top.Nodes {
		n := &top.Nodes[i]
		if n.Arm == "" {
			continue
		}
		n.Seams, n.Programs = nil, map[string]string{e.Trial.Subject: e.firstBuild(n.Arm).Path}
		for _, name := range e.Trial.Seams {
			k, err := kinds.Make[seam.Seam](kinds.Seam, name)
			if err != nil {
				return top, err
			}
			if !seam.On(k, n.Role) {
				continue
			}
			if n.Seams == nil {
				n.Seams = map[string]string{}
			}
			n.Seams[name] = e.artifacts.Fixture(k.Fixture())
		}
	}
	return top, nil
}

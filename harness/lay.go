package harness

import (
	"maps"
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/seam"
)

// lay puts the executables that arms begin with, and the seams, into a planned cluster's topology.
func (w *World) lay(c plan.Cluster) (cluster.Topology, error) {
	top := c.Topology
	top.Network = w.clusterName(c.Name)
	top.Nodes = slices.Clone(top.Nodes)
	for i := range top.Nodes {
		n := &top.Nodes[i]
		n.Image = w.lab.images[top.Version].Ref
		if n.Cell == "" {
			continue
		}
		laySubject(n, w.trial.Subject, w.starter(n.Cell).path)
		for _, name := range w.trial.Seams {
			k, err := seam.New(name, nil)
			if err != nil {
				return top, err
			}
			if k.Role() != n.Role {
				continue
			}
			if err := seam.Lay(n, k, w.lab.fixtures[k.Fixture()].Path); err != nil {
				return top, err
			}
		}
	}
	return top, nil
}

// laySubject puts an arm's executable where the node runs it from: a kubelet over the node's own, anything else into its static pod over the one
// of the image.
func laySubject(n *cluster.NodeSpec, subject, path string) {
	n.Files = slices.Concat(n.Files, []cluster.File{{Path: executable(subject), Source: path, Mode: 0o755}})
	if subject == "kubelet" {
		return
	}
	n.Mounts = maps.Clone(n.Mounts)
	if n.Mounts == nil {
		n.Mounts = map[string]map[string]string{}
	}
	n.Mounts[subject] = map[string]string{"/usr/local/bin/" + subject: executable(subject)}
}

// executable is where a node has a component's executable.
func executable(component string) string {
	if component == "kubelet" {
		return "/usr/bin/kubelet"
	}
	return "/opt/relapse/subject/" + component
}

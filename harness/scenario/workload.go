package scenario

import (
	"fmt"
	"path/filepath"
)

// workload checks arms that share a cluster, each as its own workload.
func (r *rules) workload() {
	s := r.s.Spec
	if s.Placement != "workload" {
		if s.Nodes != nil {
			r.add("spec.nodes", "is for placement workload (with placement %s the arms say how many nodes there are)",
				s.Placement)
		}
		if len(s.Manifests) > 0 {
			r.add("spec.manifests", "are for placement workload (with placement %s an arm is no workload)", s.Placement)
		}
		return
	}
	if s.Nodes == nil {
		r.add("spec", "has no nodes (want nodes: how many workers the arms share)")
	}
	if len(s.Seams) > 0 {
		r.add("spec.seams", "can't be had with placement workload: they sit in a cell's own node")
	}
	if s.Restart != nil {
		r.add("spec.restart", "can't be had with placement workload: a node's subject is restarted")
	}
	deployed := false
	for i, m := range s.Manifests {
		at := fmt.Sprintf("spec.manifests.%d", i)
		if m.File != "" && !filepath.IsLocal(m.File) {
			r.add(at+".file", "%q is not below the scenario's folder", m.File)
		}
		for name := range m.Values {
			switch name {
			case "cell", "namespace", "image":
				r.add(at+".values."+name, "is what the harness puts in (want another name)")
			}
		}
		deployed = deployed || m.Each == "cell"
	}
	if !deployed {
		r.add("spec", "has no manifest with each: cell, which would deploy the arms")
	}
}

package scenario

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster/providers"
)

// workload checks the rules of placement workload, in which the arms share a cluster and each is a workload.
func (r *rules) workload() {
	s := r.s.Spec
	if under(r.known, "spec", "placement") {
		return // whatever follows from the placement is unknown, too
	}
	if s.Placement != "workload" {
		r.simulated()
		if len(s.Manifests) > 0 {
			r.add(
				"spec.manifests",
				"are for placement workload (with placement %s an arm is no workload)",
				s.Placement,
			)
		}
		return
	}
	if s.Nodes == nil {
		r.add("spec", "has no nodes (want nodes: how many workers the arms share)")
	}
	if s.Nodes != nil && s.Nodes.Simulated > 0 {
		r.add(
			"spec.nodes.simulated",
			"is for placement cluster: workloads need nodes that run them",
		)
	}
	if len(s.Seams) > 0 {
		r.add("spec.seams", "can't be had with placement workload: they sit in an arm's own node")
	}
	if s.Restart != nil {
		r.add(
			"spec.restart",
			"can't be had with placement workload: a node's subject is restarted",
		)
	}
	deployed := false
	for i, m := range s.Manifests {
		at := fmt.Sprintf("spec.manifests.%d", i)
		if m.File != "" && !filepath.IsLocal(m.File) {
			r.add(at+".file", "%q is not below the scenario's folder", m.File)
		}
		for name := range m.Values {
			switch name {
			case "arm", "namespace", "image":
				r.add(at+".values."+name, "is what the harness puts in (want another name)")
			}
		}
		deployed = deployed || m.Each == "arm"
	}
	if !deployed {
		r.add("spec", "has no manifest with each: arm, which would deploy the arms")
	}
}

// simulated checks the nodes of the other placements: only simulated nodes are allowed, and only where a provider can
// simulate them.
func (r *rules) simulated() {
	s := r.s.Spec
	switch {
	case s.Nodes == nil:
	case s.Placement != "cluster" || *s.Nodes != (Nodes{Simulated: s.Nodes.Simulated}):
		r.add(
			"spec.nodes",
			"is for placement workload (with placement %s the arms say how many nodes there are)",
			s.Placement,
		)
	case slices.ContainsFunc(s.RunsOn(), func(p string) bool { return !slices.Contains(providers.All, p) }):
		// It may be the misspelt one that can simulate nodes.
	case !slices.Contains(s.RunsOn(), providers.Processes):
		r.add(
			"spec.nodes.simulated",
			"can't be had on %s, whose nodes are real (want the provider %s)",
			strings.Join(s.RunsOn(), ", "),
			providers.Processes,
		)
	}
}

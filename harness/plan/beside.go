package plan

import (
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
)

// Nodes returns the most nodes of clusters that exist at once in one of the plan's trials, at least 1.
func (p *Plan) Nodes() int {
	most := 1
	for _, t := range p.Trials {
		nodes := 0
		for _, c := range t.Clusters {
			if t.Sequential && t.Place().OwnCluster() {
				nodes = max(nodes, len(c.Topology.Nodes))
			} else {
				nodes += len(c.Topology.Nodes)
			}
		}
		most = max(most, nodes)
	}
	return most
}

// NodesAtOnce returns how many nodes of clusters the trials of several plans may have at once, so that no trial is slowed
// down by another: one for each core, and no more than the free bytes of memory are enough for. Parallel, the limit of what
// may be asked for, has twice as many for a core. free is 0 if it is unknown.
func NodesAtOnce(cores int, free int64) int {
	if free > 0 {
		cores = min(cores, int(free/clusterMemory))
	}
	return max(cores, 1)
}

// RestsOnCPU reports whether one of the scenario's own checks decides an outcome by CPU time, so that no other trial may
// run beside the plan's. The common health's use of the CPU doesn't count: every arm of every scenario is asked for it, it
// looks for a loop that keeps a whole CPU busy, and it is unknown where such a loop couldn't have had one.
func (p *Plan) RestsOnCPU() bool {
	return slices.ContainsFunc(p.Trials, func(t Trial) bool {
		return slices.ContainsFunc(
			t.deciding(),
			func(l checkList) bool { return restOnCPU(*l.checks) },
		)
	})
}

func restOnCPU(list []Check) bool {
	return slices.ContainsFunc(list, func(c Check) bool {
		if strings.HasPrefix(c.Name, BuiltIn) {
			return false
		}
		bound, ok := c.Spec.(check.CPUBound)
		return ok && bound.RestsOnCPU() || restOnCPU(c.AnyOf)
	})
}

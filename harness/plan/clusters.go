package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// clusterMemory is the free memory, in bytes, that a cluster of one node needs to run in parallel with another. A
// cluster was seen to use 0.6 GiB; the rest is for leaks in it and for the builds' caches.
const clusterMemory = 2 << 30

// concurrency decides whether the clusters of a trial run in parallel, and sets Why to the reason.
func (t *Trial) concurrency(free int64) {
	need := int64(len(t.Clusters)) * clusterMemory
	gib := func(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }
	switch {
	case len(t.Clusters) < 2:
	case t.Sequential:
		t.Why = "one cluster after the other, as asked for"
	case free > 0 && free < need:
		t.Sequential = true
		t.Why = fmt.Sprintf(
			"one cluster after the other: %d at once need %s of memory, and %s are free",
			len(t.Clusters),
			gib(need),
			gib(free),
		)
	case free > 0:
		t.Why = fmt.Sprintf(
			"%d clusters at once: they need %s of memory, and %s are free",
			len(t.Clusters),
			gib(need),
			gib(free),
		)
	default:
		t.Why = fmt.Sprintf(
			"%d clusters at once; how much memory is free was not asked",
			len(t.Clusters),
		)
	}
}

// nodesPerCore is how many cluster nodes a core can serve at once without slowing down what a trial observes.
const nodesPerCore = 2

// Parallel returns an error if n trials at once are too many for a machine with this number of cores and free bytes of
// memory. free is 0 if it is unknown.
func (p *Plan) Parallel(n, cores int, free int64) error {
	most := p.Nodes()
	fit := cores * nodesPerCore / most
	if free > 0 {
		fit = min(fit, int(free/clusterMemory)/most)
	}
	if n <= fit {
		return nil
	}
	return fmt.Errorf(
		"%d trials at once have %d nodes, of which each needs %.1f GiB of memory and half a core, and "+
			"there are %.1f GiB and %d cores (want at most %d)",
		n,
		n*most,
		float64(clusterMemory)/(1<<30),
		float64(free)/(1<<30),
		cores,
		max(fit, 1),
	)
}

func controlPlane(arm string, s *scenario.Scenario) cluster.NodeSpec {
	n := cluster.NodeSpec{Name: cluster.ControlPlane, Role: cluster.ControlPlane, Arm: arm,
		Args: argsOf(s, cluster.ControlPlane), OwnFiles: s.Spec.Files}
	if arm != "" {
		n.Labels = map[string]string{ArmLabel: arm}
	}
	return n
}

// argsOf returns the scenario's flags for the components that run on nodes of a role.
func argsOf(s *scenario.Scenario, role string) map[string]map[string]string {
	out := map[string]map[string]string{}
	for name, flags := range s.Spec.Args {
		if row, _ := component.Of(name); role == cluster.ControlPlane || row.Runs == component.AsService {
			out[name] = maps.Clone(flags)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func memoryOf(s *scenario.Scenario) map[string]string {
	out := map[string]string{}
	for component, limit := range s.Spec.Memory {
		if limit != "" {
			out[component] = limit
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// numbered returns kind's name for the n-th node of a role, counted from 0.
func numbered(role string, n int) string {
	if n == 0 {
		return role
	}
	return role + strconv.Itoa(n+1)
}

// ClusterOf returns the cluster that an arm lives in, or nil if there is none.
func (t *Trial) ClusterOf(arm string) *Cluster {
	for i := range t.Clusters {
		if slices.ContainsFunc(t.Clusters[i].Topology.Nodes, func(n cluster.NodeSpec) bool { return n.Arm == arm }) {
			return &t.Clusters[i]
		}
	}
	if t.Place().SharedNodes() && len(t.Clusters) == 1 &&
		slices.ContainsFunc(t.Arms, func(c Arm) bool { return c.Name == arm }) {
		return &t.Clusters[0]
	}
	return nil
}

// Groups returns the arms that go through the phases together, starting with the creation of their clusters. Arms that
// share a cluster share a steady state, even if they are faulted one after the other.
func (t *Trial) Groups() [][]string {
	var all []string
	var each [][]string
	for _, c := range t.Arms {
		all = append(all, c.Name)
		each = append(each, []string{c.Name})
	}
	if t.Sequential && t.Place().OwnCluster() {
		return each
	}
	return [][]string{all}
}

// Versions returns the Kubernetes versions of all clusters of the plan, each once.
func (p *Plan) Versions() []string { return p.Needs(nil).Versions() }

// Needs returns what the plan requires of a provider. b builds the other components of its clusters.
func (p *Plan) Needs(b cluster.Builder) cluster.Needs {
	n := cluster.Needs{NodeImage: p.NodeImage, Builder: b}
	for _, t := range p.Trials {
		for _, c := range t.Clusters {
			n.Topologies = append(n.Topologies, c.Topology)
		}
		if !slices.Contains(n.Arms, t.Subject) {
			n.Arms = append(n.Arms, t.Subject)
		}
	}
	if slices.ContainsFunc(p.Trials, func(t Trial) bool { return !t.Place().OwnCluster() }) || len(n.Arms) > 1 {
		n.Arms = nil
	}
	return n
}

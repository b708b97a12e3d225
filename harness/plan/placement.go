package plan

import (
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// The names of the placements: what each arm gets to itself.
const (
	PlacementNode     = "node"
	PlacementCluster  = "cluster"
	PlacementWorkload = "workload"
)

// Placement is a strategy: it says what an arm gets to itself, and decides everything that follows from that.
type Placement interface {
	// OwnCluster reports whether each arm has its own cluster. Evidence that is recorded of the cluster then counts for
	// that arm.
	OwnCluster() bool
	// SharedNodes reports whether the arms are pods on shared nodes. A fault of a node then hits all of them.
	SharedNodes() bool
	// Beside returns how many candidates a machine can run in one trial, together with two controls. free is the
	// machine's free memory in bytes, 0 if unknown.
	Beside(cores int, free int64) int

	// arrange places the arms and adds the clusters to the trial. Images, seams and subjects are added later, once they
	// exist.
	arrange(t *Trial, s *scenario.Scenario, o Options) error
	// placed returns an error if arm c lacks its place in the cluster in, which is nil if the arm has no cluster.
	placed(c Arm, in *Cluster) error
}

var placements = map[string]Placement{
	PlacementNode:     nodePlacement{},
	PlacementCluster:  clusterPlacement{},
	PlacementWorkload: workloadPlacement{},
}

// Place returns the trial's placement. An unknown one behaves like a node's, except that its arrange fails.
func (t *Trial) Place() Placement {
	if p, ok := placements[t.Placement]; ok {
		return p
	}
	return unknownPlacement{name: t.Placement}
}

type unknownPlacement struct {
	nodePlacement
	name string
}

func (p unknownPlacement) arrange(*Trial, *scenario.Scenario, Options) error {
	return fmt.Errorf("placement %q can't be planned: want node, cluster or workload", p.name)
}

// candidatesPerTrial returns how many candidates fit if each needs this much memory. It returns 1 to most.
func candidatesPerTrial(most int, each, free int64) int {
	if free > 0 {
		most = min(most, int(free/each)-2)
	}
	return max(most, 1)
}

// nodePlacement gives each arm one worker of a shared cluster.
type nodePlacement struct{}

func (nodePlacement) OwnCluster() bool  { return false }
func (nodePlacement) SharedNodes() bool { return false }
func (nodePlacement) Beside(cores int, free int64) int {
	return candidatesPerTrial(min(2*cores, 8), 1<<30, free)
}

func (nodePlacement) arrange(t *Trial, s *scenario.Scenario, o Options) error {
	top := cluster.Topology{
		Version: s.Spec.Version,
		Base:    o.Base,
		Nodes:   []cluster.NodeSpec{controlPlane("", s)},
	}
	for i := range t.Arms {
		t.Arms[i].Node = numbered(cluster.Worker, i)
		top.Nodes = append(top.Nodes, cluster.NodeSpec{
			Name: numbered(cluster.Worker, i), Role: cluster.Worker, Arm: t.Arms[i].Name,
			Labels: map[string]string{ArmLabel: t.Arms[i].Name},
			Args:   argsOf(s, cluster.Worker),
		})
	}
	t.Clusters = []Cluster{{Topology: top, Memory: memoryOf(s)}}
	return t.skew()
}

func (nodePlacement) placed(c Arm, in *Cluster) error {
	if in == nil || !slices.ContainsFunc(in.Topology.Nodes,
		func(n cluster.NodeSpec) bool { return n.Name == c.Node && n.Arm == c.Name }) {
		return fmt.Errorf("arm %q has no node %q of its own in any cluster", c.Name, c.Node)
	}
	return nil
}

// clusterPlacement gives each arm its own cluster, in which the arm is on the control plane.
type clusterPlacement struct{ nodePlacement }

func (clusterPlacement) OwnCluster() bool { return true }
func (clusterPlacement) Beside(cores int, free int64) int {
	return candidatesPerTrial(min(cores/2, 4), clusterMemory, free)
}

func (clusterPlacement) arrange(t *Trial, s *scenario.Scenario, o Options) error {
	row, known := component.Of(t.Subject)
	for i := range t.Arms {
		c := &t.Arms[i]
		c.Node = cluster.ControlPlane
		version := s.Spec.Version
		if row.Kubernetes || !known { // components that aren't Kubernetes' have their own versions
			version = clusterVersion(*c, version, t.controls(s))
			version = pairVersion(s, t.Pair, *c, version)
		}
		t.Clusters = append(t.Clusters, Cluster{Name: c.Name, Memory: memoryOf(s), Topology: cluster.Topology{
			Version: version, Base: o.Base,
			Nodes: []cluster.NodeSpec{controlPlane(c.Name, s)}, Simulated: simulated(s, o.Provider),
		}})
	}
	t.concurrency(o.FreeMemory)
	return t.skew()
}

// workloadPlacement gives each arm a namespace of a shared cluster, with a workload in it.
type workloadPlacement struct{}

func (workloadPlacement) OwnCluster() bool  { return false }
func (workloadPlacement) SharedNodes() bool { return true }
func (workloadPlacement) Beside(cores int, free int64) int {
	return candidatesPerTrial(min(4*cores, 16), 512<<20, free)
}

func (workloadPlacement) placed(c Arm, in *Cluster) error {
	if in == nil || c.Namespace == "" {
		return fmt.Errorf("arm %q has no namespace of its own in the cluster", c.Name)
	}
	return nil
}

package environment

import (
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
)

// Plan is the run's plan with only this trial in it.
func (e *Environment) Plan() plan.Plan {
	p := *e.plan
	p.Trials = []plan.Trial{e.Trial}
	return p
}

// Facts is what the trial's bundle records of the world.
func (e *Environment) Facts() bundle.World {
	out := bundle.World{
		StartedAt: e.started, Versions: e.versions, Computed: map[string]string{},
		Modelled: slices.Clone(e.Trial.Modelled), Deviates: slices.Clone(e.Trial.Deviates),
	}
	for _, c := range e.Trial.Arms {
		b := e.builds[c.Name]
		out.Arms = append(out.Arms, bundle.ArmWorld{
			Arm: c.Name, Node: e.nodeOf(c), Namespace: c.Namespace, Digest: b.Digest, Graph: b.Graph,
			Flags: b.Flags, GoVersion: b.GoVersion,
			Changes: b.Changes, Constants: b.Constants,
		})
		for _, m := range b.Modelled {
			if !slices.Contains(out.Modelled, m) {
				out.Modelled = append(out.Modelled, m)
			}
		}
	}
	return out
}

// Digests are the SHA-256 of the binaries of the trial's arms.
func (e *Environment) Digests() map[string]string {
	out := map[string]string{}
	for _, c := range e.Trial.Arms {
		out[c.Name] = e.builds[c.Name].Digest
	}
	return out
}

// nodeOf is the name of an arm's node, also before the node exists.
func (e *Environment) nodeOf(c plan.Arm) string {
	if in := e.Trial.ClusterOf(c.Name); in != nil {
		return e.clusterName(in.Name) + "-" + c.Node
	}
	return ""
}

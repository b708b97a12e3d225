package environment

import (
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
)

// Plan returns the run's plan, reduced to this trial.
func (e *Environment) Plan() plan.Plan {
	p := *e.plan
	p.Trials = []plan.Trial{e.Trial}
	return p
}

// Facts returns what the trial's bundle records of the world: times, versions, builds and deviations.
func (e *Environment) Facts() bundle.World {
	out := bundle.World{
		StartedAt: e.started, Versions: e.versions, Computed: map[string]string{},
		Modelled: slices.Clone(e.Trial.Modelled), Deviates: append(e.Trial.Deviates.Texts(), e.deviates...),
	}
	for _, c := range e.Trial.Arms {
		b := e.builds[c.Name]
		out.Arms = append(out.Arms, bundle.ArmWorld{
			Arm:       c.Name,
			Node:      e.nodeOf(c),
			Namespace: c.Namespace,
			Digest:    b.Digest,
			Graph:     b.Graph,
			Flags:     b.Flags,
			GoVersion: b.GoVersion,
			Changes:   b.Changes,
			Constants: b.Constants,
		})
		w := &out.Arms[len(out.Arms)-1]
		var modelled []string
		for _, one := range b.Before {
			w.Before = append(
				w.Before,
				bundle.EarlierBuild{Digest: one.Digest, Changes: one.Changes},
			)
			modelled = append(modelled, one.Modelled...)
		}
		for _, m := range append(modelled, b.Modelled...) {
			if !slices.Contains(out.Modelled, m) {
				out.Modelled = append(out.Modelled, m)
			}
		}
	}
	return out
}

// Digests returns the SHA-256 of each arm's executable, by arm. What the arm ran before has the arm's name and a number:
// fixed/1.
func (e *Environment) Digests() map[string]string {
	out := map[string]string{}
	for _, c := range e.Trial.Arms {
		out[c.Name] = e.builds[c.Name].Digest
		for i, b := range e.builds[c.Name].Before {
			out[bundle.EarlierName(c.Name, i)] = b.Digest
		}
	}
	return out
}

// nodeOf returns the full name of an arm's node, even before the node exists.
func (e *Environment) nodeOf(c plan.Arm) string {
	if in := e.Trial.ClusterOf(c.Name); in != nil {
		return e.clusterName(in.Name) + "-" + c.Node
	}
	return ""
}

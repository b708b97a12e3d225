package harness

import (
	"context"
	"slices"

	"github.com/kube-relapse/relapse/harness/trial/environment"
)

// Built is the build of an arm of a pair.
type Built struct {
	Pair, Arm string
	environment.Build
}

// Build makes what Run would make for a plan, and gets what its clusters are made of: a run of the same plan then
// finds all of it. It refuses what Run refuses, creates no cluster and leaves no run directory. Of the options, Plan,
// Provider and Artifacts count.
func Build(ctx context.Context, o Options) (out []Built, err error) {
	if err := o.Provider.Check(ctx, o.Plan.Needs(nil)); err != nil {
		return nil, err
	}
	if err := refuse(ctx, o.Provider, o.Plan); err != nil {
		return nil, err
	}
	if err := o.Artifacts.Decide(ctx, o.Plan); err != nil {
		return nil, err
	}
	if _, err := o.Artifacts.Prepare(ctx, o.Plan, o.Provider); err != nil {
		return nil, err
	}
	for _, t := range o.Plan.Trials {
		for _, a := range t.Arms {
			if slices.ContainsFunc(out, func(b Built) bool { return b.Pair == t.Pair && b.Arm == a.Name }) {
				continue // of an earlier trial
			}
			b, err := o.Artifacts.Of(a.Arm)
			if err != nil {
				return nil, err
			}
			out = append(out, Built{t.Pair, a.Name, b})
		}
	}
	return out, nil
}

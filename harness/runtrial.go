package harness

import (
	"context"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/trial"
)

// RunTrial runs one trial of a plan with what was carried here, as a part of the run of that name, which is made
// elsewhere. It seals the trial's bundle in a run's directory of its own, dir, and judges nothing. Of the options, Plan,
// Provider and Events count.
func RunTrial(
	ctx context.Context,
	o Options,
	from Artifacts,
	name, dir string,
	t plan.Trial,
) error {
	if err := o.Provider.Check(ctx, o.Plan.Needs(nil)); err != nil {
		return err
	}
	if err := refuse(ctx, o.Provider, o.Plan); err != nil {
		return err
	}
	provided, err := from.Prepare(ctx, o.Plan, o.Provider)
	if err != nil {
		return err
	}
	r := &run{
		Options:  o,
		versions: versions(o.Plan, provided),
		stages:   recordStages(o.Events),
	}
	defer r.stages.stop()
	r.ledger.Run = name
	if r.dir, err = trial.CreateRunDir(dir, name, o.Plan); err != nil {
		return err
	}
	return r.trial(ctx, from, t, true, r.soleSlot())
}

package harness

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/trial"
	"github.com/kube-relapse/relapse/harness/trial/environment"
)

// prepared is what trials take: artifacts that were prepared here, or those that were carried here.
type prepared interface {
	environment.Artifacts
	MixedParts(plan.Trial) []string
}

// Cargo is what the trials of a plan take, to be brought to other machines.
type Cargo struct {
	*artifacts.Carried
	Files map[string]string // paths of programs there -> here, where they stay until Close

	made *artifacts.Artifacts
}

// Close lets others prune the programs.
func (c *Cargo) Close() error { return c.made.Close() }

// Carry makes what Build would make for a plan, to be brought to other machines, where programs lie in the folder to.
// RunTrial takes it there.
func Carry(ctx context.Context, o Options, to string) (c *Cargo, err error) {
	if err := o.Provider.Check(ctx, o.Plan.Needs(nil)); err != nil {
		return nil, err
	}
	if err := refuse(ctx, o.Provider, o.Plan); err != nil {
		return nil, err
	}
	c = &Cargo{}
	if c.made, err = artifacts.Open(o.Artifacts()); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.made.Close())
		}
	}()
	if err := c.made.Decide(ctx, o.Plan, o.Publisher); err != nil {
		return nil, err
	}
	if _, err := prepare(ctx, o, c.made); err != nil {
		return nil, err
	}
	c.Carried, c.Files, err = c.made.Carry(o.Plan, to)
	return c, err
}

// RunTrial runs one trial of a plan with what was carried here, as a part of the run of that name, which is made elsewhere. It seals the
// trial's bundle in a run's directory of its own, dir, and judges nothing. Of the options, Plan, Provider and Events
// count.
func RunTrial(
	ctx context.Context,
	o Options,
	from *artifacts.Carried,
	name, dir string,
	t plan.Trial,
) error {
	if err := o.Provider.Check(ctx, o.Plan.Needs(nil)); err != nil {
		return err
	}
	if err := refuse(ctx, o.Provider, o.Plan); err != nil {
		return err
	}
	provided, err := o.Provider.Prepare(ctx, o.Plan.Needs(from))
	if err != nil {
		return err
	}
	r := &run{Options: o, versions: artifacts.Versions(), stages: recordStages(o.Events)}
	defer r.stages.stop()
	r.ledger.Run = name
	r.versions["kubernetes"] = strings.Join(o.Plan.Versions(), ", ")
	if from.Parts != "" {
		r.versions["clusterPrograms"] = from.Parts
	}
	maps.Copy(r.versions, provided)
	if r.dir, err = trial.CreateRunDir(dir, name, o.Plan); err != nil {
		return err
	}
	return r.trial(ctx, from, t, true, r.soleSlot())
}

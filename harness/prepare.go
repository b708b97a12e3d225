package harness

import (
	"context"
	"errors"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
)

// Built is the build of an arm of a pair.
type Built struct {
	Pair, Arm string
	artifacts.Build
}

// Build builds what Run would build for a plan, and gets what its clusters are made of: a run of the same plan then
// finds all of it. It refuses what Run refuses, creates no cluster and leaves no run directory.
func Build(ctx context.Context, o Options) (out []Built, err error) {
	if err := o.Provider.Check(ctx, o.Plan.Needs(nil)); err != nil {
		return nil, err
	}
	if err := refuse(ctx, o.Provider, o.Plan); err != nil {
		return nil, err
	}
	made, err := artifacts.Open(o.Artifacts())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	if err := made.Decide(ctx, o.Plan, o.Publisher); err != nil {
		return nil, err
	}
	if _, err := prepare(ctx, o, made); err != nil {
		return nil, err
	}
	for _, t := range o.Plan.Trials {
		for _, a := range t.Arms {
			if slices.ContainsFunc(out, func(b Built) bool { return b.Pair == t.Pair && b.Arm == a.Name }) {
				continue // of an earlier trial
			}
			b, err := made.Of(a.Arm)
			if err != nil {
				return nil, err
			}
			out = append(out, Built{t.Pair, a.Name, b})
		}
	}
	return out, nil
}

// Forecast says what of a plan's builds and of its clusters' parts is missing, and how long making it will take.
func Forecast(ctx context.Context, o Options) (f *build.Forecast, err error) {
	o.Events = nil
	made, err := artifacts.Open(o.Artifacts())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	return made.Forecast(ctx, o.Plan, o.Provider, o.Plan.Needs(nil)), nil
}

// Fit says how much disk all missing builds of several plans need, and refuses them if they can't fit. Programs that
// o.Publisher may have are not counted, because it isn't asked. provider returns what makes a plan's clusters; otherwise
// of o, only what says where builds lie counts.
func Fit(
	ctx context.Context,
	o Options,
	plans []*plan.Plan,
	provider func(*plan.Plan) (cluster.Provider, error),
) (err error) {
	made, err := artifacts.Open(o.Artifacts())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	f := made.NewForecast()
	for _, p := range plans {
		on, err := provider(p)
		if err != nil {
			return err
		}
		least := made.SupposePublished(p, o.Publisher)
		made.Foresee(ctx, f, least, on, least.Needs(nil))
	}
	return made.Fit(ctx, f)
}

// prepare builds the arms and the fixtures while the provider prepares its clusters' parts. It returns the versions
// that verdicts name.
func prepare(
	ctx context.Context,
	o Options,
	made *artifacts.Artifacts,
) (versions map[string]string, err error) {
	f := made.Forecast(ctx, o.Plan, o.Provider, o.Plan.Needs(nil))
	if err := made.Fit(ctx, f); err != nil {
		return nil, err
	}
	expected, _ := f.Takes()
	stage := o.Events.Stage(
		"build",
		"building the arms and getting what the clusters are made of; "+f.String(),
		expected,
	)
	defer func() { stage(err) }()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return made.Prepare(ctx, o.Plan) })
	g.Go(func() (err error) {
		versions, err = o.Provider.Prepare(ctx, o.Plan.Needs(made))
		return err
	})
	if err = g.Wait(); err != nil {
		return versions, err
	}
	if parts := made.Parts(); parts != "" {
		all := map[string]string{"clusterPrograms": parts}
		maps.Copy(all, versions)
		return all, nil
	}
	return versions, nil
}

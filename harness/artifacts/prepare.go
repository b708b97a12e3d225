package artifacts

import (
	"context"
	"maps"

	"golang.org/x/sync/errgroup"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
)

// Prepare builds the arms of a plan and its fixtures, while the provider gets what its clusters are made of. It refuses
// builds that can't fit on the disk. It returns the versions that verdicts name.
func (a *Artifacts) Prepare(
	ctx context.Context,
	p *plan.Plan,
	on cluster.Provider,
) (versions map[string]string, err error) {
	f := a.Forecast(ctx, p, on, p.Needs(nil))
	if err := a.Fit(ctx, f); err != nil {
		return nil, err
	}
	expected, _ := f.Takes()
	stage := a.events.Stage(
		"build",
		"building the arms and getting what the clusters are made of; "+f.String(),
		expected,
	)
	defer func() { stage(err) }()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.Build(ctx, p) })
	g.Go(func() (err error) {
		versions, err = on.Prepare(ctx, p.Needs(a))
		return err
	})
	if err = g.Wait(); err != nil {
		return versions, err
	}
	return withParts(versions, a.Parts()), nil
}

// withParts adds to versions by which way the programs of the clusters came, "" for none.
func withParts(versions map[string]string, parts string) map[string]string {
	if parts == "" {
		return versions
	}
	all := map[string]string{"clusterPrograms": parts}
	maps.Copy(all, versions)
	return all
}

// FitAll says how much disk all missing builds of several plans need, and refuses them if they can't fit. Programs that
// the publisher may have are not counted, because it isn't asked. provider returns what makes a plan's clusters.
func (a *Artifacts) FitAll(
	ctx context.Context,
	plans []*plan.Plan,
	provider func(*plan.Plan) (cluster.Provider, error),
) error {
	f := a.NewForecast()
	for _, p := range plans {
		on, err := provider(p)
		if err != nil {
			return err
		}
		least := a.SupposePublished(p)
		a.Foresee(ctx, f, least, on, least.Needs(nil))
	}
	return a.Fit(ctx, f)
}

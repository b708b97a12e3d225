package artifacts

import (
	"context"
	"fmt"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Forecast says what a plan and its clusters need that isn't in the cache, and how long it will take. p may be nil for
// clusters without arms. It builds nothing. What it can't find out is in it as unknown.
//
// It also decides which programs are taken if some were imported that another Go built. They are if they are all that is
// needed, and Go here would have to build any: all programs of a run come from one Go.
func (a *Artifacts) Forecast(ctx context.Context, p *plan.Plan, provider cluster.Provider,
	n cluster.Needs) *build.Forecast {
	a.builder.LookAs(nil)
	f := a.forecast(ctx, p, provider, n)
	if f.Built() {
		return f
	}
	all, err := build.Toolchains(a.cache.Dir())
	if err != nil {
		f.Other("what was imported", err.Error())
	}
	for _, tc := range all {
		a.builder.LookAs(&tc)
		imported := a.forecast(ctx, p, provider, n)
		if imported.Built() {
			a.events.Say(
				event.Note,
				"all programs were imported, built by "+tc.GOVERSION+"; nothing is built here",
			)
			return imported
		}
		a.events.Say(
			event.Note,
			fmt.Sprintf(
				"what was imported, built by %s, isn't all that is needed; %s",
				tc.GOVERSION,
				imported,
			),
		)
	}
	a.builder.LookAs(nil)
	return f
}

// forecast says what is missing for the builder as it looks for programs.
func (a *Artifacts) forecast(ctx context.Context, p *plan.Plan, provider cluster.Provider,
	n cluster.Needs) *build.Forecast {
	f := a.NewForecast()
	a.Foresee(ctx, f, p, provider, n)
	return f
}

// NewForecast returns a forecast without any plan.
func (a *Artifacts) NewForecast() *build.Forecast {
	f, err := a.builder.NewForecast()
	if err != nil {
		f.Other("all builds", err.Error())
	}
	return f
}

// Foresee adds to a forecast what a plan and its clusters need, as Forecast does.
func (a *Artifacts) Foresee(
	ctx context.Context,
	f *build.Forecast,
	p *plan.Plan,
	provider cluster.Provider,
	n cluster.Needs,
) {
	if p != nil {
		a.foreseeFixtures(ctx, f, p)
		for _, t := range p.Trials {
			for _, c := range t.Arms {
				a.foreseeArm(ctx, f, c)
			}
		}
	}
	known, ok := provider.(cluster.Foreseer)
	if !ok {
		return
	}
	parts, err := known.Foresee(ctx, n)
	if err != nil {
		f.Other("the parts of the clusters", err.Error())
		return
	}
	for _, x := range parts.Programs {
		if a.publishable(x.Version, x.Packages) != nil { // how long a download takes depends on the network
			continue
		}
		src := build.Source{Module: x.Module, Version: x.Version, Packages: x.Packages}
		unknown(f, src.String(), f.Source(ctx, src))
	}
	for _, name := range parts.Fixtures {
		unknown(f, "fixture "+name, f.Fixture(ctx, a.root, name))
	}
	for _, what := range parts.Lacks {
		f.Other(what, "it isn't in the container engine")
	}
}

func (a *Artifacts) foreseeFixtures(ctx context.Context, f *build.Forecast, p *plan.Plan) {
	for _, t := range p.Trials {
		for _, name := range t.Seams {
			s, err := kinds.Make[seam.Seam](kinds.Seam, name)
			if err != nil {
				unknown(f, "the seam "+name, err)
				continue
			}
			unknown(f, "fixture "+s.Fixture(), f.Fixture(ctx, a.root, s.Fixture()))
		}
	}
}

func (a *Artifacts) foreseeArm(ctx context.Context, f *build.Forecast, arm plan.Arm) {
	for _, s := range arm.Source.Builds() {
		a.foreseeBuild(ctx, f, scenario.Arm{Name: arm.Name, Role: arm.Role, Source: s})
	}
}

func (a *Artifacts) foreseeBuild(ctx context.Context, f *build.Forecast, arm scenario.Arm) {
	what := "arm " + arm.Name
	switch s := arm.Source; {
	case s.Image != "":
		f.Other(what, "its program is in the image "+s.Image)
	case s.NodeImage != "":
		f.Other(what, "its program is in the node image "+s.NodeImage)
	case s.Given(), s.Release != nil: // an executable that is there, or that nobody has to build
	default:
		from, err := a.resolve(s)
		if err == nil {
			err = f.Source(ctx, sourceOf(arm, from))
		}
		unknown(f, what, err)
	}
}

// unknown adds what can't be found out because of err, if there is an error.
func unknown(f *build.Forecast, what string, err error) {
	if err != nil {
		f.Other(what, err.Error())
	}
}

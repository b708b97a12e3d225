package artifacts

import (
	"context"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
)

// Taken returns the entries of the cache that were taken. Nobody prunes them until Close.
func (a *Artifacts) Taken() []cache.Entry { return a.cache.Taken() }

// Toolchain returns which Go builds the programs, or built those that are taken.
func (a *Artifacts) Toolchain(ctx context.Context) (build.Toolchain, error) {
	return a.builder.Toolchain(ctx)
}

// Kept returns the entries of the cache, and Go's cache if there is anything in it.
func (a *Artifacts) Kept() ([]cache.Entry, error) {
	compiled, err := a.cache.GoCache()
	if err != nil {
		return nil, err
	}
	entries, err := a.cache.List()
	if compiled.Bytes > 0 {
		entries = append(entries, compiled)
	}
	return entries, err
}

// Prune removes what the options allow and nobody is using.
func (a *Artifacts) Prune(o cache.PruneOptions) (cache.Pruned, error) { return a.cache.Prune(o) }

// BuildsOf returns a function that reports whether an entry of the cache is a build of one of the plans' arms.
func (a *Artifacts) BuildsOf(
	ctx context.Context,
	plans []*plan.Plan,
) func(kind, key string) bool {
	f := a.NewForecast()
	for _, p := range plans {
		for _, t := range p.Trials {
			for _, c := range t.Arms {
				a.foreseeArm(ctx, f, c)
			}
		}
	}
	return f.Needs
}

// Fit says how much disk the missing builds need, and refuses them if they can't fit. From then on nobody removes the
// builds that are there.
func (a *Artifacts) Fit(ctx context.Context, f *build.Forecast) error {
	said, err := f.Fit(a.maxDisk)
	if err != nil {
		return err
	}
	if said != "" {
		a.events.Say(event.Note, said)
	}
	return f.Hold(ctx)
}

// Clean removes the scratch directories of builds that were killed, and reports each.
func (a *Artifacts) Clean(ctx context.Context, say func(string)) error {
	scratch, err := a.cache.Clean(ctx)
	for _, x := range scratch {
		say("removed scratch " + x)
	}
	return err
}

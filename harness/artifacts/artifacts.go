// Package artifacts builds what all trials of a plan share: the arms' programs and the fixtures. It finds mistakes in
// arms before a cluster exists. It also builds for providers the other parts of their clusters.
package artifacts

import (
	"context"
	"fmt"
	"sync"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/build/image"
	"github.com/kube-relapse/relapse/harness/build/release"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial/environment"
)

// Artifacts holds a plan's builds and fixtures, and the means to make them. It is a cluster.Builder.
type Artifacts struct {
	events *event.Stream

	root     string       // the module's root
	engine   image.Engine // nil if there is none
	cache    *cache.Store
	building sync.Mutex // one go command at a time, because each uses all cores
	builder  *build.Builder
	maxDisk  int64                        // that the cache may take up
	arms     map[string]environment.Build // by armKey
	trees    map[string]string            // Keys of builds whose source trees aren't compared yet, by armKey
	fixtures map[string]string
	asked    map[string]map[string]string // what BuildPrograms returned, by programsKey

	programs  plan.Programs      // what Decide decided; "" for nothing
	publisher *release.Publisher // nil if there is none
	published map[string]string  // paths of published programs, by SHA-256
	parts     []part             // of the clusters, in the order in which they were got
}

// Options say where artifacts are made.
type Options struct {
	Root     string        // this module's root, to build its fixtures; "" for none
	CacheDir string        // "" for the user's default cache
	MaxDisk  int64         // the bytes that the cache may take up; 0 for $RELAPSE_MAX_DISK, or 20 GiB
	Events   *event.Stream // nil drops the progress
	Engine   image.Engine  // opens images with candidates; nil if there is none
	// Publisher has published programs for arms; nil builds all of them, unless the plan says otherwise.
	Publisher *release.Publisher
}

// Open opens the cache and returns Artifacts without any builds yet.
func Open(o Options) (*Artifacts, error) {
	dir := o.CacheDir
	if dir == "" {
		var err error
		if dir, err = cache.DefaultDir(); err != nil {
			return nil, err
		}
	}
	if o.MaxDisk == 0 {
		var err error
		if o.MaxDisk, err = cache.MaxDisk(); err != nil {
			return nil, err
		}
	}
	store, err := cache.Open(dir)
	if err != nil {
		return nil, err
	}
	say := func(s string) { o.Events.Say(event.Progress, s) }
	return &Artifacts{
		events: o.Events,
		root:   o.Root,
		engine: o.Engine,
		cache:  store,
		builder: &build.Builder{
			Cache:    store,
			Progress: say,
			MaxDisk:  o.MaxDisk,
		},
		maxDisk:   o.MaxDisk,
		arms:      map[string]environment.Build{},
		trees:     map[string]string{},
		fixtures:  map[string]string{},
		publisher: o.Publisher,
		published: map[string]string{},
		asked:     map[string]map[string]string{},
	}, nil
}

// Of returns the build of an arm. It is an error if the arm was not prepared.
func (a *Artifacts) Of(arm scenario.Arm) (environment.Build, error) {
	b, ok := a.arms[armKey(arm)]
	if !ok {
		return b, fmt.Errorf("the arm %s was not built", arm.Name)
	}
	return b, nil
}

// Fixture returns the path on this host of a prepared fixture's program.
func (a *Artifacts) Fixture(name string) string { return a.fixtures[name] }

// Close releases the cache.
func (a *Artifacts) Close() error { return a.cache.Close() }

// Build builds every arm of the plan and the fixtures that its seams need.
func (a *Artifacts) Build(ctx context.Context, p *plan.Plan) error {
	if err := a.buildFixtures(ctx, p); err != nil {
		return err
	}
	return a.buildArms(ctx, p)
}

// buildArms builds each distinct arm of the plan once. It refuses a pair whose arms became the same program, and
// constants that no fault is large enough for.
func (a *Artifacts) buildArms(ctx context.Context, p *plan.Plan) error {
	for _, t := range p.Trials {
		for _, c := range t.Arms {
			if err := a.buildArm(ctx, c.Arm, t.Subject, t.Constants); err != nil {
				return a.blame(ctx, &t, c.Arm, err)
			}
		}
		if err := a.compareTrees(ctx, &t); err != nil {
			return err
		}
	}
	if err := a.distinct(p); err != nil {
		return err
	}
	return a.refuseFaults(p)
}

func (a *Artifacts) buildFixtures(ctx context.Context, p *plan.Plan) (err error) {
	for _, t := range p.Trials {
		for _, name := range t.Seams {
			s, err := kinds.Make[seam.Seam](kinds.Seam, name)
			if err != nil {
				return err
			}
			if _, err := a.BuildFixture(ctx, s.Fixture()); err != nil {
				return err
			}
		}
	}
	return nil
}

// BuildFixture builds a fixture and returns its program's path.
func (a *Artifacts) BuildFixture(ctx context.Context, name string) (string, error) {
	a.building.Lock()
	defer a.building.Unlock()
	b, err := a.builder.Fixture(ctx, a.root, name)
	if err == nil {
		a.fixtures[name] = b.Path
	}
	return b.Path, err
}

// BuildPrograms builds main packages of a published module, or gets them as they were published if the arms' programs are
// got so. It returns the programs' paths, by program name.
func (a *Artifacts) BuildPrograms(
	ctx context.Context,
	module, version string,
	packages ...string,
) (map[string]string, error) {
	a.building.Lock()
	defer a.building.Unlock()
	out, err := a.buildPrograms(ctx, module, version, packages)
	if err == nil {
		a.asked[programsKey(module, version, packages)] = out
	}
	return out, err
}

func (a *Artifacts) buildPrograms(
	ctx context.Context,
	module, version string,
	packages []string,
) (map[string]string, error) {
	out, missing, err := a.publishedParts(ctx, version, packages)
	if err != nil || out != nil {
		return out, err
	}
	src := build.Source{Module: module, Version: version, Packages: packages}
	r, err := a.builder.Build(ctx, src)
	if err != nil {
		return nil, err
	}
	built := part{what: src.String()}
	for _, name := range missing {
		built.version = versionOf(name, version)
		built.missing = append(built.missing, name+" "+version)
	}
	a.parts = append(a.parts, built)
	out = map[string]string{}
	for name, b := range r.Binaries {
		out[name] = b.Path
	}
	return out, nil
}

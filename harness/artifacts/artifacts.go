// Package artifacts gets what all trials of a plan share and that outlives each of them: the arms' builds, the fixtures and the node images. What is
// wrong with an arm is found here, before a cluster exists.
package artifacts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/build/nodeimage"
	"github.com/kube-relapse/relapse/harness/cluster/engine"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/version"
)

// etcdVersion is the etcd of assembled node images.
const etcdVersion = "v3.6.5"

// Artifacts are the builds, the fixtures and the node images of a plan, and where they are made.
type Artifacts struct {
	Events *event.Stream

	root     string // the module's root
	engine   *engine.Engine
	cache    *cache.Store
	builder  *build.Builder
	store    *nodeimage.Store
	arms     map[string]Build // by armKey
	fixtures map[string]build.Binary
	images   map[string]nodeimage.Image // by Kubernetes version
}

// Build is one arm's executable and what is known of it.
type Build struct {
	Path      string // of the executable, on this host
	Digest    string // its SHA-256 in hex
	Graph     string // the sum of its module graph; "" if it was given
	GoVersion string
	Flags     []string
	Changes   []string // what else had to be changed to build it, or what is known of a program that was given, a sentence each
	Constants map[string]int64
	Modelled  []string
	Diff      []byte // of a source tree to its commit, as git prints it
}

// Open finds the engine and opens the cache. root is the root of this module, whose fixtures are built.
func Open(ctx context.Context, root, cacheDir string, events *event.Stream) (*Artifacts, error) {
	eng, err := engine.Detect(ctx)
	if err != nil {
		return nil, err
	}
	if cacheDir == "" {
		if cacheDir, err = cache.DefaultDir(); err != nil {
			return nil, err
		}
	}
	store, err := cache.Open(cacheDir)
	if err != nil {
		return nil, err
	}
	say := func(s string) { events.Emit(event.Event{Type: event.Progress, Message: s}) }
	images, err := nodeimage.New(cacheDir, eng, say)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &Artifacts{
		Events: events, root: root, engine: eng, cache: store, store: images, images: map[string]nodeimage.Image{},
		builder: &build.Builder{Cache: store, Progress: say},
		arms:    map[string]Build{}, fixtures: map[string]build.Binary{},
	}, nil
}

// Of is the build of an arm that was prepared.
func (a *Artifacts) Of(arm scenario.Arm) (Build, error) {
	b, ok := a.arms[armKey(arm)]
	if !ok {
		return b, fmt.Errorf("the arm %s was not built", arm.Name)
	}
	return b, nil
}

// Fixture is where a fixture that was prepared lies on this host.
func (a *Artifacts) Fixture(name string) string { return a.fixtures[name].Path }

// NodeImage is the reference of the node image of a version that was prepared.
func (a *Artifacts) NodeImage(version string) string { return a.images[version].Ref }

// Close lets go of the cache.
func (a *Artifacts) Close() error { return a.cache.Close() }

// Prepare builds every arm of the plan, the fixtures that its seams need, and gets the node image. Debian packages are fetched while
// Go builds.
func (a *Artifacts) Prepare(ctx context.Context, p *plan.Plan) (err error) {
	stage := a.Events.Stage("build", "building the arms, the fixtures and the node image", a.buildEstimate())
	defer func() { stage(err) }()
	g, ctx := errgroup.WithContext(ctx)
	found := make(chan []string, 1) // the versions whose image has to be assembled: the others are there or were pulled
	g.Go(func() error {
		defer close(found)
		missing, err := a.findImages(ctx, p)
		found <- missing
		if err != nil || len(missing) == 0 {
			return err
		}
		return a.base(ctx)
	})
	g.Go(func() error { // one go command at a time: each uses all cores by itself
		missing := <-found
		if err := a.buildFixtures(ctx, p, len(missing) > 0); err != nil {
			return err
		}
		for _, version := range missing {
			if err := a.assemble(ctx, version); err != nil {
				return err
			}
		}
		return a.buildArms(ctx, p)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	for _, v := range p.Versions() {
		img := a.images[v]
		a.Events.Say(event.Note, fmt.Sprintf("node image for %s: %s (%s)", v, img.Ref, img.Origin))
	}
	return nil
}

// buildEstimate is how long Prepare took where it was measured, on 2 cores: with nothing built before, and with everything there.
func (a *Artifacts) buildEstimate() time.Duration {
	if have, err := a.cache.List(); err == nil && len(have) == 0 {
		return 6 * time.Minute
	}
	return 5 * time.Second
}

// buildArms builds each distinct arm of the plan once, and refuses a pair that came out as one program, and constants that no fault is large enough for.
func (a *Artifacts) buildArms(ctx context.Context, p *plan.Plan) error {
	for _, t := range p.Trials {
		for _, c := range t.Cells {
			if err := a.buildArm(ctx, c.Arm, t.Subject, t.Constants); err != nil {
				return err
			}
		}
	}
	if err := a.distinct(p); err != nil {
		return err
	}
	return a.refuseFaults(p)
}

func (a *Artifacts) buildFixtures(ctx context.Context, p *plan.Plan, assembling bool) error {
	want := map[string]bool{}
	for _, t := range p.Trials {
		for _, name := range t.Seams {
			s, err := seam.New(name, nil)
			if err != nil {
				return err
			}
			want[s.Fixture()] = true
		}
	}
	if assembling {
		want["pause"] = true
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		b, err := a.builder.Fixture(ctx, a.root, name)
		if err != nil {
			return err
		}
		a.fixtures[name] = b
	}
	return nil
}

// Versions are what the verdict names as the versions of a run.
func (a *Artifacts) Versions(ctx context.Context, p *plan.Plan) map[string]string {
	v := map[string]string{
		"relapse": version.Relapse(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
	}
	var refs, ids, origins []string
	for _, minor := range p.Versions() {
		img := a.images[minor]
		refs, ids, origins = append(refs, img.Ref), append(ids, img.ID), append(origins, img.Origin)
	}
	v["kubernetes"] = strings.Join(p.Versions(), ", ")
	v["nodeImage"], v["nodeImageID"], v["nodeImageOrigin"] = strings.Join(refs, ", "), strings.Join(ids, ", "), strings.Join(origins, ", ")
	if info, err := a.engine.ServerInfo(ctx); err == nil {
		v["engine"] = a.engine.Name + " " + info.Version
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		v["kernel"] = string(kernel[:max(0, len(kernel)-1)])
	}
	return v
}

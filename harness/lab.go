package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/cache"
	"github.com/kube-relapse/relapse/harness/engine"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/mutate"
	"github.com/kube-relapse/relapse/harness/nodeimage"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/seam"
)

// etcdVersion is the etcd of assembled node images.
const etcdVersion = "v3.6.5"

// Lab holds what all trials of a plan share and that outlives each of them: the builds, the fixtures and the node image.
type Lab struct {
	Events *event.Stream

	root     string // the module's root
	engine   *engine.Engine
	cache    *cache.Store
	builder  *build.Builder
	store    *nodeimage.Store
	arms     map[string]built // by armKey
	fixtures map[string]build.Binary
	images   map[string]nodeimage.Image // by Kubernetes version
}

// built is one arm's executable and what is known of it.
type built struct {
	path, digest, graph, goVersion string
	flags, changes                 []string
	constants                      map[string]int64
	modelled                       []string
}

// OpenLab finds the engine and opens the cache. root is the root of this module, whose fixtures are built.
func OpenLab(ctx context.Context, root, cacheDir string, events *event.Stream) (*Lab, error) {
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
	return &Lab{
		Events: events, root: root, engine: eng, cache: store, store: images, images: map[string]nodeimage.Image{},
		builder: &build.Builder{Cache: store, Progress: say},
		arms:    map[string]built{}, fixtures: map[string]build.Binary{},
	}, nil
}

// Close lets go of the cache.
func (l *Lab) Close() error { return l.cache.Close() }

// Prepare builds every arm of the plan, the fixtures that its seams need, and gets the node image. Debian packages are fetched while
// Go builds.
func (l *Lab) Prepare(ctx context.Context, p *plan.Plan) (err error) {
	stage := l.stage("build", "building the arms, the fixtures and the node image", l.buildEstimate())
	defer func() { stage(err) }()
	g, ctx := errgroup.WithContext(ctx)
	found := make(chan []string, 1) // the versions whose image has to be assembled: the others are there or were pulled
	g.Go(func() error {
		defer close(found)
		missing, err := l.findImages(ctx, p)
		found <- missing
		if err != nil || len(missing) == 0 {
			return err
		}
		return l.base(ctx)
	})
	g.Go(func() error { // one go command at a time: each uses all cores by itself
		missing := <-found
		if err := l.buildFixtures(ctx, p, len(missing) > 0); err != nil {
			return err
		}
		for _, version := range missing {
			if err := l.assemble(ctx, version); err != nil {
				return err
			}
		}
		return l.buildArms(ctx, p)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	for _, version := range p.Versions() {
		img := l.images[version]
		l.Events.Say(event.Note, fmt.Sprintf("node image for %s: %s (%s)", version, img.Ref, img.Origin))
	}
	return nil
}

// buildEstimate is how long Prepare took where it was measured, on 2 cores: with nothing built before, and with everything there.
func (l *Lab) buildEstimate() time.Duration {
	if have, err := l.cache.List(); err == nil && len(have) == 0 {
		return 6 * time.Minute
	}
	return 5 * time.Second
}

// buildArms builds each distinct arm of the plan once.
func (l *Lab) buildArms(ctx context.Context, p *plan.Plan) error {
	for _, t := range p.Trials {
		for _, c := range t.Cells {
			if err := l.Arm(ctx, c.Arm, t.Constants); err != nil {
				return err
			}
		}
	}
	return nil
}

// Arm builds one arm, or takes up the user's own executable.
func (l *Lab) Arm(ctx context.Context, arm scenario.Arm, constants []scenario.Constant) error {
	key := armKey(arm)
	if _, done := l.arms[key]; done {
		return nil
	}
	if arm.Source.Binary != "" {
		digest, err := sha256File(arm.Source.Binary)
		if err != nil {
			return fmt.Errorf("arm %s: %w", arm.Name, err)
		}
		l.arms[key] = built{path: arm.Source.Binary, digest: digest, constants: map[string]int64{},
			changes: []string{"an executable that was given: " + filepath.Base(arm.Source.Binary) + "; how it was built is not known"}}
		return nil
	}
	from, err := l.resolve(arm.Source)
	if err != nil {
		return fmt.Errorf("arm %s: %w", arm.Name, err)
	}
	src := build.Source{Module: from.Module, Version: from.Version, Dir: from.Dir, Packages: []string{from.Package}, Unoptimized: from.Unoptimized}
	var modelled []string
	for _, m := range arm.Source.Mutations {
		mu := mutate.Mutation(m)
		src.Mutations = append(src.Mutations, mu)
		if mu.Compresses() {
			modelled = append(modelled, mu.Label())
		}
	}
	for _, c := range constants {
		src.Constants = append(src.Constants, build.ConstantRef{Name: c.Name, Package: c.Package, Ident: c.Ident})
	}
	began := time.Now()
	r, err := l.builder.Build(ctx, src)
	if err != nil {
		return fmt.Errorf("arm %s: %w", arm.Name, err)
	}
	if len(r.Binaries) != 1 {
		return fmt.Errorf("arm %s: building %s gave %d programs, want 1", arm.Name, from.Package, len(r.Binaries))
	}
	b := built{graph: r.GraphSum, goVersion: r.GoVersion, flags: r.Flags, changes: r.Changes, constants: map[string]int64{}, modelled: modelled}
	for _, bin := range r.Binaries {
		b.path, b.digest = bin.Path, bin.SHA256
	}
	for name, c := range r.Constants {
		b.constants[name] = c.Int
	}
	l.arms[key] = b
	l.Events.Say(event.Note, fmt.Sprintf("arm %s: %s of %s %s, sha256 %.12s, %s", arm.Name, filepath.Base(from.Package), from.Module,
		from.Version, b.digest, howLong(r.Cached, began)))
	return nil
}

func howLong(cached bool, began time.Time) string {
	if cached {
		return "from the cache"
	}
	return "built in " + time.Since(began).Round(time.Second).String()
}

func (l *Lab) buildFixtures(ctx context.Context, p *plan.Plan, assembling bool) error {
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
		b, err := l.builder.Fixture(ctx, l.root, name)
		if err != nil {
			return err
		}
		l.fixtures[name] = b
	}
	return nil
}

// stage announces a stage and returns how to end it.
func (l *Lab) stage(name, what string, expect time.Duration) func(error) {
	began := time.Now()
	l.Events.Emit(event.Event{Type: event.Stage, Stage: name, Message: what, Fields: map[string]any{"expectSeconds": expect.Seconds()}})
	return func(err error) {
		msg := "done"
		if err != nil {
			msg = "not done: " + err.Error()
		}
		l.Events.Emit(event.Event{Type: event.StageDone, Stage: name, Message: msg, Fields: map[string]any{"seconds": time.Since(began).Seconds()}})
	}
}

// versions are what the verdict names as the versions of a run.
func (l *Lab) versions(ctx context.Context, p *plan.Plan) map[string]string {
	v := map[string]string{
		"relapse": Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
	}
	var refs, ids, origins []string
	for _, version := range p.Versions() {
		img := l.images[version]
		refs, ids, origins = append(refs, img.Ref), append(ids, img.ID), append(origins, img.Origin)
	}
	v["kubernetes"] = strings.Join(p.Versions(), ", ")
	v["nodeImage"], v["nodeImageID"], v["nodeImageOrigin"] = strings.Join(refs, ", "), strings.Join(ids, ", "), strings.Join(origins, ", ")
	if info, err := l.engine.ServerInfo(ctx); err == nil {
		v["engine"] = l.engine.Name + " " + info.Version
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		v["kernel"] = string(kernel[:max(0, len(kernel)-1)])
	}
	return v
}

package harness

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
	"github.com/kube-relapse/relapse/harness/cache"
	"github.com/kube-relapse/relapse/harness/engine"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/nodeimage"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/seam"
	"github.com/kube-relapse/relapse/harness/version"
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
	diff                           []byte // of a source tree to its commit, as git prints it
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
	for _, v := range p.Versions() {
		img := l.images[v]
		l.Events.Say(event.Note, fmt.Sprintf("node image for %s: %s (%s)", v, img.Ref, img.Origin))
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

// buildArms builds each distinct arm of the plan once, and refuses a pair that came out as one program, and constants that no fault is large enough for.
func (l *Lab) buildArms(ctx context.Context, p *plan.Plan) error {
	for _, t := range p.Trials {
		for _, c := range t.Cells {
			if err := l.Arm(ctx, c.Arm, t.Subject, t.Constants); err != nil {
				return err
			}
		}
	}
	if err := l.distinct(p); err != nil {
		return err
	}
	return l.refuseFaults(p)
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
		"relapse": version.Relapse(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
	}
	var refs, ids, origins []string
	for _, minor := range p.Versions() {
		img := l.images[minor]
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

// Package watch looks for what a controller leaves behind while any test suite runs: goroutines that are stuck, memory
// that is kept, objects that are written for ever. It is for projects without an incident of their own: the suite is
// green, but did the controller leak?
//
// Start takes a baseline and records from then on. Stop lets the controller settle, asks the checks of the sealed
// evidence, and returns an error unless each is met. What the evidence doesn't answer is unknown, and fails, too.
//
//	w, err := watch.Start(ctx, watch.Options{Subject: watch.Self(), Checks: []watch.Check{watch.NothingStuck()}})
//	...
//	err = w.Stop(ctx)
//
// The cluster is any that a rest.Config reaches, and the subject any Go program that serves its profiles, or the test's
// own. The package knows no test framework: DeferCleanup(w.Stop) is a hook of Ginkgo, and package e2eframework has
// environment functions.
package watch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/collectors"
	"github.com/kube-relapse/relapse/harness/version"
)

// Suite is the phase in which the tests run, between check.Baseline and check.Recovery.
const Suite = "suite"

// arm is the subject's name in the evidence.
const arm = "subject"

// Options say what to watch. Subject and Checks are required.
type Options struct {
	Subject Subject
	Checks  []Check
	// Config reaches the cluster whose objects are recorded; required by QuietWorld.
	Config *rest.Config
	// Dir gets the evidence: the sealed bundle, and findings.json. It must be missing or empty. "" is a new folder
	// below relapse-watch, in the current one.
	Dir string
	// Every is how often a snapshot is taken while the tests run, 0 for 30s. A goroutine dump stops the subject shortly.
	Every time.Duration
	// Pace is the time between the snapshots of the baseline, and between those at the end, 0 for 2s. What all of the
	// last three show has lasted for twice as long.
	Pace time.Duration
	// Settle is how long Stop waits until all checks are met, and as long again while an answer is unknown; it is also how
	// long Work may take. 0 for 2m.
	Settle time.Duration
}

// Watch is a watch that has begun. Stop ends it.
type Watch struct {
	o      Options
	dir    string
	writer *bundle.Writer
	target capture.Target
	looks  processes
	snaps  []capture.Snapshotter
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	phase string
	gone  []error // why collectors gave up

	stop   sync.Once
	result error
}

// Start records a baseline and returns once the tests may begin. Call it when the controller runs and has done a first
// piece of work, so that its caches and connections are there: what grows afterwards counts as left behind. The error
// says what can't be recorded. ctx is for Start only: the watch goes on after it.
func Start(ctx context.Context, o Options) (*Watch, error) {
	w, err := begin(o.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("starting a watch: %w", err)
	}
	w.record(ctx)
	w.enter(check.Baseline)
	for range compared {
		if err = w.snapshot(ctx, "phase"); err == nil {
			err = pause(ctx, w.o.Pace)
		}
		if err != nil {
			return nil, errors.Join(
				fmt.Errorf("starting a watch: taking the baseline: %w", err),
				w.end(),
			)
		}
	}
	w.enter(Suite)
	return w, nil
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		of *time.Duration
		to time.Duration
	}{{&o.Every, 30 * time.Second}, {&o.Pace, 2 * time.Second}, {&o.Settle, 2 * time.Minute}} {
		if *d.of == 0 {
			*d.of = d.to
		}
	}
	if o.Dir == "" {
		o.Dir = filepath.Join("relapse-watch", time.Now().UTC().Format("20060102-150405.000"))
	}
	return o
}

// begin validates the options and makes the bundle.
func begin(o Options) (*Watch, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	w := &Watch{o: o, dir: dir}
	if w.writer, err = bundle.Create(filepath.Join(dir, bundleDir)); err != nil {
		return nil, err
	}
	w.target = capture.Target{Arm: arm, Component: component{o.Subject}, Phase: w.current}
	if o.Config != nil {
		w.target.Cluster = place{cfg: o.Config}
	}
	if err := w.writer.SetWorld(bundle.World{StartedAt: time.Now().UTC(), Arms: []bundle.ArmWorld{{Arm: arm}},
		Versions: map[string]string{"relapse": version.Relapse()}}); err != nil {
		return nil, err
	}
	w.looks = processes{Subject: o.Subject}
	w.looks.stream, err = w.writer.Stream(w.target.Meta(bundle.Identity), "jsonl")
	return w, err
}

func (o Options) validate() error {
	var errs []error
	if o.Subject.get == nil {
		errs = append(errs, errors.New("there is no subject\nhint: watch.Self() is the program of the test, watch.At(...) one that serves profiles"))
	}
	if len(o.Checks) == 0 {
		errs = append(errs, errors.New("there is no check\nhint: watch.NothingStuck()"))
	}
	for i, c := range o.Checks {
		if slices.ContainsFunc(o.Checks[:i], func(b Check) bool { return b.Name == c.Name }) {
			errs = append(
				errs,
				fmt.Errorf("two checks are called %q\nhint: set the Name of one", c.Name),
			)
		}
		if v, ok := c.Ask.(interface{ Validate() error }); ok {
			if err := v.Validate(); err != nil {
				errs = append(errs, fmt.Errorf("check %s: %w", c.Name, err))
			}
		}
		if c.Ask == nil {
			errs = append(errs, fmt.Errorf("check %q asks nothing", c.Name))
		} else if slices.Contains(c.Ask.Reads(), bundle.Objects) && o.Config == nil {
			errs = append(
				errs,
				fmt.Errorf("check %s needs a cluster\nhint: set Options.Config", c.Name),
			)
		}
	}
	return errors.Join(errs...)
}

// record starts the collectors, which live until end.
func (w *Watch) record(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	var all []capture.Collector
	for _, c := range w.o.Checks {
		all = append(all, c.Collectors...)
	}
	all = append(all, w.looks) // the last, so that its looks are not older than the others' snapshots
	for _, c := range all {
		if s, ok := c.(capture.Snapshotter); ok {
			w.snaps = append(w.snaps, s)
		}
		if s, ok := c.(capture.Streamer); ok {
			w.wg.Go(func() {
				if err := s.Stream(ctx, w.target, w.writer); err != nil && ctx.Err() == nil {
					w.lose(err)
				}
			})
		}
	}
	w.wg.Go(func() {
		tick := time.NewTicker(w.o.Every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if w.current() == Suite {
					_ = w.snapshot(ctx, "schedule") // a failure is in the bundle
				}
			}
		}
	})
}

// snapshot takes one snapshot of everything.
func (w *Watch) snapshot(ctx context.Context, mark string) error {
	t := w.target
	t.Mark = mark
	var errs []error
	for _, s := range w.snaps {
		errs = append(errs, s.Snapshot(ctx, t, w.writer))
	}
	return errors.Join(errs...)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (w *Watch) current() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.phase
}

// enter begins a phase.
func (w *Watch) enter(phase string) {
	w.mu.Lock()
	w.phase = phase
	w.mu.Unlock()
	w.writer.Emit(event.Event{Type: event.Phase, Message: phase})
}

// lose notes that a collector gave up.
func (w *Watch) lose(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = append(w.gone, err)
}

// end stops the collectors and seals the bundle.
func (w *Watch) end() error {
	w.cancel()
	w.wg.Wait()
	return errors.Join(errors.Join(w.gone...), w.writer.Seal())
}

// processes records which process the subject is, all the time and with each snapshot. So the process that the last
// snapshot shows is known to be the one of the baseline.
type processes struct {
	Subject
	stream *bundle.Stream
}

func (processes) Makes() []bundle.Kind { return []bundle.Kind{bundle.Identity} }

// Snapshot records a look. It fails if the process can't be told, so that Start does.
func (p processes) Snapshot(ctx context.Context, _ capture.Target, _ *bundle.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, collectors.AskTimeout)
	defer cancel()
	return p.look(ctx)
}

func (p processes) Stream(ctx context.Context, _ capture.Target, _ *bundle.Writer) error {
	collectors.Follow(ctx, 2*time.Second, p.stream, p.look)
	return p.stream.Close()
}

func (p processes) look(ctx context.Context) error {
	s, err := p.process(ctx)
	if err != nil {
		return err
	}
	return p.stream.JSON(s)
}

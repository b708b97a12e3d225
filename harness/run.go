// Package harness runs scenarios: it builds the arms, creates clusters, injects faults, collects evidence and has the
// evidence judged. Run lists the steps from top to bottom; everything else is part of one of them.
package harness

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/ledger"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/trial"
	"github.com/kube-relapse/relapse/harness/trial/environment"
)

// Options say how to run a plan.
type Options struct {
	Plan      *plan.Plan
	Provider  cluster.Provider // makes the trials' clusters
	Artifacts Maker            // makes what the trials take; whoever opened it closes it
	Out       string           // the directory of run directories
	Retain    bool             // keep the clusters of the last trial, or of the one that failed
	Parallel  int              // trials at once, 0 is 1; more only with a fixed number of trials and without Retain
	Events    *event.Stream
	// Report writes the reports of a run to its directory, before the run's verdict.json is written; nil writes none.
	Report func(dir string, v judge.Verdict) error
}

// Run runs every trial of a plan and judges the bundles. Each trial gets fresh clusters: a cluster that has been
// through a fault may not behave like a new one. Run returns the run directory and the verdict. When ctx ends, Run
// removes what it made, including faults and half-written bundles, and returns ctx's cause.
func Run(ctx context.Context, o Options) (dir string, v judge.Verdict, err error) {
	if err := o.Provider.Check(ctx, o.Plan.Needs(nil)); err != nil {
		return "", v, err
	}
	if err := refuse(ctx, o.Provider, o.Plan); err != nil {
		return "", v, err
	}
	if err := o.Artifacts.Decide(ctx, o.Plan); err != nil {
		return "", v, err
	}
	r, err := begin(o)
	if err != nil {
		return "", v, cache.Full(err, o.Out)
	}
	defer func() {
		err = cache.Full(err, filepath.Dir(r.dir.Path())) // before what is unfinished leaves room again
		err = r.kept(errors.Join(err, r.end(ctx, err)))
	}()
	if err := r.prepare(ctx); err != nil {
		return r.dir.Path(), v, err
	}
	if err := r.trials(ctx); err != nil {
		return r.dir.Path(), v, err
	}
	v, err = r.judge()
	return r.dir.Path(), v, err
}

// trials runs all trials.
func (r *run) trials(ctx context.Context) error {
	if r.Parallel > 1 {
		return r.runParallel(ctx)
	}
	queue := newQueue(r.Plan)
	for queue.next() {
		err := r.trial(ctx, r.Artifacts, queue.trial, queue.last, r.soleSlot())
		if err == nil {
			err = queue.over(r.dir.Path(), r.Events)
		}
		if err != nil {
			return err
		}
	}
	return queue.err
}

// run is a run that has begun: the ledger lists it, and it has a directory.
type run struct {
	Options
	ledger ledger.Ledger
	dir    *trial.RunDir
	stages *stages

	versions map[string]string // of the tools that make the trials
}

// begin records a run in the ledger before anything of it exists, and creates its directory.
func begin(o Options) (*run, error) {
	id := NewID()
	dir, err := filepath.Abs(filepath.Join(o.Out, id+"-"+o.Plan.Scenario))
	if err != nil {
		return nil, err
	}
	r := &run{Options: o}
	if r.ledger, err = ledger.Open("relapse-"+id, dir, o.Provider.Name(),
		clusterNames(runNames("relapse-"+id, o.Parallel), o.Plan)); err != nil {
		return nil, err
	}
	if r.dir, err = trial.CreateRunDir(dir, r.ledger.Run, o.Plan); err != nil {
		return nil, errors.Join(err, ledger.RemoveIfEmpty(dir), r.ledger.Forget())
	}
	r.stages = recordStages(o.Events)
	return r, nil
}

// prepare makes what the trials take.
func (r *run) prepare(ctx context.Context) error {
	provided, err := r.Artifacts.Prepare(ctx, r.Plan, r.Provider)
	r.versions = versions(r.Plan, provided)
	return err
}

// end removes unfinished parts of a failed run. It removes the run from the ledger unless the run's clusters are kept.
func (r *run) end(ctx context.Context, failed error) (err error) {
	r.stages.stop()
	if ctx.Err() != nil || failed != nil {
		err = errors.Join(ledger.RemoveUnsealed(r.dir.Path()), ledger.RemoveIfEmpty(r.dir.Path()))
	}
	if r.ledger.Retained {
		return err
	}
	return errors.Join(err, r.ledger.Close(ctx, r.Provider))
}

// kept adds to the error of a run for whose files a disk was too small what can be done with the trials that are finished.
func (r *run) kept(err error) error {
	if !errors.As(err, new(*cache.FullError)) {
		return err
	}
	if sealed, failed := filepath.Glob(filepath.Join(r.dir.Path(), "trials", "*", bundle.ManifestFile)); failed != nil || len(sealed) == 0 {
		return err
	}
	return fmt.Errorf(
		"%w; the trials that were finished are kept, and relapse judge %s judges them",
		err,
		r.dir.Path(),
	)
}

// trial creates a trial's clusters, runs the trial and deletes the clusters. Clusters are found by the run's name, and
// trials reuse the names. So only the clusters of the last trial, or of the one that failed, can be kept.
func (r *run) trial(
	ctx context.Context,
	made Artifacts,
	t plan.Trial,
	last bool,
	at runSlot,
) (err error) {
	env, err := environment.Create(
		ctx,
		environment.Options{
			Run:       at.run,
			Plan:      r.Plan,
			Trial:     t,
			Artifacts: made,
			Provider:  r.Provider,
			Versions:  r.versions,
			Deviates:  made.MixedParts(t),
			Events:    at.events,
		},
	)
	if err != nil {
		return err
	}
	err = trial.Run(ctx, env, r.dir, at.events, at.stages.take())
	if !r.Retain || !last && err == nil {
		return errors.Join(err, env.Delete(ctx))
	}
	for _, name := range env.Names() {
		if rerr := r.Provider.Retain(ctx, name); rerr != nil {
			return errors.Join(err, rerr, env.Delete(ctx))
		}
	}
	r.ledger.Retained = true
	inForce(r.Events, err)
	for _, name := range env.Names() {
		r.Events.Say(
			event.Note,
			fmt.Sprintf(
				"kept the cluster %s: KUBECONFIG=%s kubectl get nodes; `relapse clean %s` removes it",
				name,
				r.Provider.KubeconfigPath(name),
				r.ledger.Run,
			),
		)
	}
	return errors.Join(err, r.ledger.Save())
}

// judge marks the run as complete, judges the bundles and writes the verdict, after the reports.
func (r *run) judge() (judge.Verdict, error) { return Conclude(r.Options, r.dir) }

// Conclude marks a run as complete, judges its bundles and writes the verdict, after the reports. Of the options, Events
// and Report count.
func Conclude(o Options, dir *trial.RunDir) (v judge.Verdict, err error) {
	if err := dir.Complete(); err != nil {
		return v, err
	}
	stage := o.Events.Stage("judge", "judging the evidence", time.Second)
	if v, err = judge.Run(dir.Path()); err == nil {
		err = o.write(dir.Path(), v)
	}
	stage(err)
	if err != nil {
		return v, err
	}
	return v, judge.Latest(dir.Path())
}

// write writes the reports, and then verdict.json: a run that has it is done.
func (o Options) write(dir string, v judge.Verdict) error {
	if o.Report != nil {
		if err := o.Report(dir, v); err != nil {
			return err
		}
	}
	return judge.Write(dir, v)
}

// inForce reports in an event whether a fault may still be in force in clusters that are kept. Each trial lifts its
// faults before it ends, in whatever way it ends.
func inForce(events *event.Stream, err error) {
	var left *trial.LiftError
	if errors.As(err, &left) {
		events.Say(
			event.Warning,
			left.Error()+"; it lifts itself in its node after its time limit",
		)
		return
	}
	events.Say(event.Note, "no fault is in force any more: all that were injected were lifted")
}

// clusterNames returns the names of all clusters that a run may create, for each of the given prefixes.
func clusterNames(runs []string, p *plan.Plan) []string {
	var out []string
	for _, run := range runs {
		for _, t := range p.Trials {
			for _, c := range t.Clusters {
				if name := environment.ClusterName(run, c.Name); !slices.Contains(out, name) {
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// stages records the stages that end before a trial's bundle exists, so that the bundle's timeline can begin with them.
type stages struct {
	mu   sync.Mutex
	kept []event.Event
	stop func()
}

func recordStages(events *event.Stream) *stages {
	s := &stages{}
	s.stop = events.Attach(event.SinkFunc(func(e event.Event) {
		if e.Type == event.Stage || e.Type == event.StageDone {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.kept = append(s.kept, e)
		}
	}))
	return s
}

// take returns the events recorded since the last call.
func (s *stages) take() []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.kept
	s.kept = nil
	return out
}

// NewID returns a run's id: eight random hex digits, so that parallel runs don't share one.
func NewID() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // it never fails, see crypto/rand
	return hex.EncodeToString(b)
}

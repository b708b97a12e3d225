// Package harness runs scenarios: it builds the arms, makes a cluster, brings faults upon it, collects evidence and has it judged.
// Run reads from top to bottom; everything else in this package is a step of it.
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

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/provider"
	"github.com/kube-relapse/relapse/harness/provider/kind"
	"github.com/kube-relapse/relapse/harness/report"
)

// Options say how a plan is run.
type Options struct {
	Plan     *plan.Plan
	Root     string // the module's root, where fixtures are built from
	Out      string // the directory of run directories
	CacheDir string // "" is the user's
	Retain   bool   // keep the clusters
	Events   *event.Stream
}

// Run runs every trial of a plan, and judges the bundles. Each trial has clusters of its own: no scenario says that one which a fault has been upon
// is as good as new. It returns the run directory and the verdict. When ctx ends it removes what it made, faults and half-written bundles included, and returns ctx's cause.
func Run(ctx context.Context, o Options) (dir string, v report.Verdict, err error) {
	lab, err := OpenLab(ctx, o.Root, o.CacheDir, o.Events)
	if err != nil {
		return "", v, err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	id := NewID()
	dir, err = filepath.Abs(filepath.Join(o.Out, id+"-"+o.Plan.Scenario))
	if err != nil {
		return "", v, err
	}
	ledger, err := openLedger("relapse-"+id, dir, clusterNames("relapse-"+id, o.Plan))
	if err != nil {
		return dir, v, err
	}
	defer func() {
		if ctx.Err() != nil || err != nil {
			err = errors.Join(err, removeUnsealed(dir), removeIfEmpty(dir))
		}
		if !ledger.Retained {
			err = errors.Join(err, ledger.close(ctx))
		}
	}()
	run, err := CreateRunDir(dir, ledger.Run, o.Plan)
	if err != nil {
		return dir, v, err
	}
	stages, done := recordStages(o.Events)
	defer done()
	prov, err := newProvider(ledger.Files, o.Events, false)
	if err != nil {
		return dir, v, err
	}
	if err := refuse(ctx, prov, o.Plan); err != nil {
		return dir, v, err
	}
	if err := lab.Prepare(ctx, o.Plan); err != nil {
		return dir, v, err
	}
	turns := newTurns(o.Plan)
	for turns.next() {
		if turns.had > 0 {
			stages() // those of the trial before belong to its own bundle
		}
		retained, err := lab.trial(ctx, o, turns.trial, ledger, run, stages, turns.last)
		ledger.Retained = ledger.Retained || retained
		if err == nil {
			err = turns.over(dir, o.Events)
		}
		if err != nil {
			return dir, v, err
		}
	}
	if turns.err != nil {
		return dir, v, turns.err
	}
	if err := run.Complete(); err != nil {
		return dir, v, err
	}
	stage := lab.stage("judge", "judging the evidence", time.Second)
	if v, err = report.JudgeRun(dir); err == nil {
		err = report.Write(dir, v)
	}
	stage(err)
	if err != nil {
		return dir, v, err
	}
	return dir, v, report.Latest(dir)
}

// trial makes a trial's clusters, runs it in them and removes them again. Trials follow one another under one name, so --retain keeps the cluster of
// the last one, or of the one that failed.
func (l *Lab) trial(ctx context.Context, o Options, t plan.Trial, ledger Ledger, run *RunDir, stages func() []event.Event, last bool) (retained bool, err error) {
	prov, err := newProvider(ledger.Files, o.Events, o.Retain)
	if err != nil {
		return false, err
	}
	// kind's containers carry no labels of ours: the cluster's name is the run's identity, and its trials follow one another.
	world, err := l.Up(ctx, o.Plan, t, prov, ledger.Run)
	if err != nil {
		return false, err
	}
	defer func() {
		if o.Retain && (last || err != nil) {
			retained = true
			ledger.Retained = true
			err = errors.Join(err, ledger.save())
			inForce(l.Events, err)
			for _, name := range world.up() {
				l.Events.Say(event.Note, fmt.Sprintf("kept the cluster %s: KUBECONFIG=%s kubectl get nodes; `relapse clean %s` removes it",
					name, prov.KubeconfigPath(name), ledger.Run))
			}
			return
		}
		err = errors.Join(err, world.Down(ctx))
	}()
	world.earlier = stages()
	return false, world.Trial(ctx, t, run)
}

// inForce says of a cluster that is kept whether a fault may still be in force in it. Each trial lifts what it injected before it ends, however it ends.
func inForce(events *event.Stream, err error) {
	var left *LiftError
	if errors.As(err, &left) {
		events.Say(event.Warning, left.Error()+"; it lifts itself in its node after its time limit")
		return
	}
	events.Say(event.Note, "no fault is in force any more: all that were injected were lifted")
}

// clusterNames are the names of all clusters that a run may make.
func clusterNames(run string, p *plan.Plan) []string {
	var out []string
	for _, t := range p.Trials {
		for _, c := range t.Clusters {
			if name := clusterName(run, c.Name); !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// clusterName is the full name of a plan's cluster in a run.
func clusterName(run, name string) string {
	if name == "" {
		return run
	}
	return run + "-" + name
}

// newProvider is the kind provider with its files in dir.
func newProvider(dir string, events *event.Stream, retain bool) (*kind.Provider, error) {
	return kind.New(kind.Options{Dir: dir, Events: events, Retain: retain})
}

var _ provider.Provider = (*kind.Provider)(nil)

// recordStages keeps the stages that end before a trial's bundle exists, so that its timeline can begin with them. take returns those since it
// was last called.
func recordStages(events *event.Stream) (take func() []event.Event, done func()) {
	var mu sync.Mutex
	var kept []event.Event
	done = events.Attach(event.SinkFunc(func(e event.Event) {
		if e.Type == event.Stage || e.Type == event.StageDone {
			mu.Lock()
			defer mu.Unlock()
			kept = append(kept, e)
		}
	}))
	return func() []event.Event {
		mu.Lock()
		defer mu.Unlock()
		out := kept
		kept = nil
		return out
	}, done
}

// NewID is a run's id: eight hex digits, drawn at random so that runs side by side never meet.
func NewID() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails: see crypto/rand
	return hex.EncodeToString(b)
}

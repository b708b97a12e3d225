package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/ledger"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/trial"
)

// Run is a run whose trials a Job makes.
type Run struct {
	Name   string // the run's, and the Job's
	Plan   *plan.Plan
	Dir    *trial.RunDir
	Client kubernetes.Interface
	Job    ledger.Job
	Events *event.Stream

	mu      sync.Mutex
	said    map[string]bool
	failing map[string]time.Time // trials whose bundles can't be fetched, since when
}

// Open opens a run that was noted down, to follow it or to fetch its bundles.
func Open(l ledger.Ledger, client kubernetes.Interface, events *event.Stream) (*Run, error) {
	p, err := planIn(l.Dir)
	if err != nil {
		return nil, err
	}
	dir, err := trial.OpenRunDir(l.Dir)
	if err != nil {
		return nil, err
	}
	r := &Run{Name: l.Run, Plan: p, Dir: dir, Client: client, Job: *l.Job, Events: events}
	return r, os.RemoveAll(r.incoming()) // of a process that was killed
}

func planIn(dir string) (*plan.Plan, error) {
	raw, err := os.ReadFile(filepath.Join(dir, bundle.PlanFile))
	if err != nil {
		return nil, err
	}
	return plan.Read(raw)
}

// incoming is the folder in which bundles are unpacked before they are verified.
func (r *Run) incoming() string { return filepath.Join(r.Dir.Path(), ".incoming") }

// open returns the trials that have neither a bundle here nor are lost, with their indices.
func (r *Run) open() map[int]plan.Trial {
	out := map[int]plan.Trial{}
	for i, t := range r.Plan.Trials {
		if !r.Dir.Has(t.ID) && !r.Dir.Lost(t.ID) {
			out[i] = t
		}
	}
	return out
}

// lookAgain is how long Follow waits before it tries again what failed.
const lookAgain = 5 * time.Second

// Follow waits until each trial has a bundle here or is lost. It goes on while the API server or the registry is away.
// When ctx ends, the Job goes on.
func (r *Run) Follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.said, r.failing = map[string]bool{}, map[string]time.Time{}
	changed := make(chan struct{}, 1)
	seen, err := r.watch(ctx, changed)
	if err != nil {
		return err
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		pods, job := seen.all()
		if job == nil {
			return &ClusterError{fmt.Errorf("the Job %s/%s is gone", r.Job.Namespace, r.Name), "relapse fetch " + r.Name +
				" takes the bundles that the registry has"}
		}
		if err := r.look(ctx, pods, job); err != nil {
			return err
		}
		if len(r.open()) == 0 {
			r.sayNodes(pods)
			return os.RemoveAll(r.incoming())
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-tick.C:
		}
	}
}

// look takes every bundle that is complete, and notes down which trials are lost.
func (r *Run) look(ctx context.Context, pods []*corev1.Pod, job *batchv1.Job) error {
	r.explain(pods, job)
	of := map[int][]*corev1.Pod{}
	for _, p := range pods {
		of[indexOf(p)] = append(of[indexOf(p)], p)
	}
	g, fetching := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i, t := range r.open() {
		state := stateOf(i, of[i], job)
		if state.lost != "" {
			if err := r.lose(bundle.LostTrial{ID: t.ID, Pair: t.Pair, Why: state.lost, Outside: state.outside}); err != nil {
				return err
			}
		}
		if state.done {
			g.Go(func() error { return r.fetchDone(fetching, t, state) })
		}
	}
	return g.Wait()
}

// lose notes down that a trial is lost.
func (r *Run) lose(l bundle.LostTrial) error {
	r.Events.Say(event.Warning, l.String())
	return r.Dir.Lose(l)
}

// fetchFor is how long the bundle of a trial that was pushed may be out of reach.
const fetchFor = 10 * time.Minute

// fetchDone fetches the bundle of a trial that is done. What can't be fetched is tried again for a while.
func (r *Run) fetchDone(ctx context.Context, t plan.Trial, s state) error {
	err := r.fetch(ctx, t, s.bundle, s.manifest)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		delete(r.failing, t.ID)
		r.Events.Say(event.Note, fmt.Sprintf("trial %s: %s, on %s; %d of %d are done", t.ID, s.verdict, s.node,
			len(r.Plan.Trials)-len(r.open()), len(r.Plan.Trials)))
		return nil
	case errors.Is(err, errAgain):
		return r.lose(bundle.LostTrial{ID: t.ID, Pair: t.Pair, Why: "it was made again after a disruption, and the pods that tell of which kind are gone"})
	case errors.As(err, new(*bundle.DamageError)):
		return err
	}
	if r.failing[t.ID].IsZero() {
		r.failing[t.ID] = time.Now()
		r.Events.Say(event.Warning, fmt.Sprintf("trial %s is done, and its bundle can't be fetched yet: %v", t.ID, err))
	}
	if time.Since(r.failing[t.ID]) > fetchFor {
		return &ClusterError{fmt.Errorf("the bundle of trial %s: %w", t.ID, err), "relapse attach " + r.Name + ", once the registry answers"}
	}
	return nil
}

// fetch takes the bundle of a trial into the run. ref is its digest, or "" for its tag. manifest is the SHA-256 that its
// recorder said, or "" if nobody knows.
func (r *Run) fetch(ctx context.Context, t plan.Trial, ref, manifest string) error {
	if ref == "" {
		ref = bundleTag(r.Name, t.ID)
	}
	to := filepath.Join(r.incoming(), t.ID)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := registryOf(r.Job).pullBundle(ctx, ref, to); err != nil {
		return err
	}
	sum, err := bundle.ManifestSum(to)
	if err != nil {
		return err
	}
	if manifest != "" && sum != manifest {
		return &bundle.DamageError{Dir: to, Problems: []string{fmt.Sprintf("its manifest has SHA-256 %.12s, and its recorder sealed %.12s", sum, manifest)}}
	}
	return r.Dir.Adopt(t.ID, t.Pair, to)
}

// Fetch takes the bundles that the registry has, without asking the cluster, and returns how many trials have none yet.
func (r *Run) Fetch(ctx context.Context) (missing int, err error) {
	for _, t := range r.open() {
		err := r.fetch(ctx, t, "", "")
		if errors.Is(err, errAgain) {
			r.Events.Say(event.Warning, fmt.Sprintf("trial %s: %v; relapse attach %s asks the cluster", t.ID, errAgain, r.Name))
		}
		if errors.Is(err, errAbsent) || errors.Is(err, errAgain) {
			missing++
			continue
		}
		if err != nil {
			return missing, err
		}
		r.Events.Say(event.Note, "trial "+t.ID+" was fetched")
	}
	return missing, os.RemoveAll(r.incoming())
}

// say says something once.
func (r *Run) say(key, kind, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.said[key] {
		r.said[key] = true
		r.Events.Say(kind, text)
	}
}

// sayNodes says which verdicts the trials have by the nodes that they ran on, as far as their pods are still there.
func (r *Run) sayNodes(pods []*corev1.Pod) {
	of, total := map[string]map[string]int{}, 0
	for _, p := range pods {
		report, _ := reportOf(p)
		if p.Status.Phase != corev1.PodSucceeded || report == nil {
			continue
		}
		if of[p.Spec.NodeName] == nil {
			of[p.Spec.NodeName] = map[string]int{}
		}
		of[p.Spec.NodeName][report.Verdict]++
		total++
	}
	var lines []string
	for _, node := range slices.Sorted(maps.Keys(of)) {
		var parts []string
		for _, v := range slices.Sorted(maps.Keys(of[node])) {
			parts = append(parts, fmt.Sprintf("%d %s", of[node][v], v))
		}
		lines = append(lines, node+" "+strings.Join(parts, ", "))
	}
	r.Events.Say(event.Note, fmt.Sprintf("%d pods by node, on which no verdict depends: %s", total, strings.Join(lines, "; ")))
}

// reportOf reads the termination message of a pod's recorder; nil if there is none.
func reportOf(p *corev1.Pod) (*Report, *corev1.ContainerStateTerminated) {
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated == nil {
			continue
		}
		var r Report
		if json.Unmarshal([]byte(c.State.Terminated.Message), &r) != nil {
			return nil, c.State.Terminated
		}
		return &r, c.State.Terminated
	}
	return nil, nil
}

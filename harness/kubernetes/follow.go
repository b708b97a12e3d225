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
	"github.com/kube-relapse/relapse/harness/judge"
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
	Exec   Exec // nil unless bundles come by commands in pods
	Job    ledger.Job
	Events *event.Stream

	schedule  *judge.Schedule // of an open-ended run; otherwise nil
	volume    *files          // once something was read from the volume, with what ends its pod
	endReader func() error
	released  map[string]bool // pods that were told that their bundle was fetched

	mu      sync.Mutex
	said    map[string]bool
	failing map[string]time.Time // trials whose bundles can't be fetched, since when
}

// Open opens a run that was noted down, to follow it or to fetch its bundles.
func Open(
	l ledger.Ledger,
	client kubernetes.Interface,
	exec Exec,
	events *event.Stream,
) (*Run, error) {
	p, err := planIn(l.Dir)
	if err != nil {
		return nil, err
	}
	dir, err := trial.OpenRunDir(l.Dir)
	if err != nil {
		return nil, err
	}
	r := &Run{
		Name:   l.Run,
		Plan:   p,
		Dir:    dir,
		Client: client,
		Exec:   exec,
		Job:    *l.Job,
		Events: events,
	}
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

// open returns the trials that have neither a bundle here nor are lost, with their indices. Of an open-ended run, it is the
// next one.
func (r *Run) open() map[int]plan.Trial {
	if r.schedule != nil {
		return r.next()
	}
	out, settled := map[int]plan.Trial{}, r.Dir.Settled()
	for i, t := range r.Plan.Trials {
		if !settled[t.ID] {
			out[i] = t
		}
	}
	return out
}

// lookAgain is how long Follow waits before it tries again what failed.
const lookAgain = 5 * time.Second

// Follow waits until each trial has a bundle here or is lost, or until the rule of an open-ended run has ended it: the Job
// is deleted then. Follow goes on while the API server or the registry is away. When ctx ends, the Job goes on.
func (r *Run) Follow(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := r.begin(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.unmount()) }()
	changed := make(chan struct{}, 1)
	seen, err := r.watch(ctx, changed)
	if err != nil {
		return err
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		pods, job := seen.all()
		if job == nil && len(r.open()) > 0 {
			return r.gone()
		}
		took, err := r.look(ctx, pods, job)
		if err != nil {
			return err
		}
		if released := r.release(ctx, pods); released && len(r.open()) == 0 {
			r.sayNodes(pods)
			return errors.Join(os.RemoveAll(r.incoming()), r.cancelRest(ctx, pods))
		}
		if took && r.schedule != nil {
			continue // the next one may be there already
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-tick.C:
		}
	}
}

// begin prepares for looks at the run.
func (r *Run) begin() error {
	r.said, r.failing, r.released = map[string]bool{}, map[string]time.Time{}, map[string]bool{}
	return r.replay()
}

// gone says what is left to do without the Job.
func (r *Run) gone() error {
	next := "relapse fetch " + r.Name + " takes the bundles that are kept elsewhere"
	if r.Job.Held {
		next = "run it again: its bundles were in its pods; relapse judge judges those that are here"
	}
	return &ClusterError{fmt.Errorf("the Job %s/%s is gone", r.Job.Namespace, r.Name), next}
}

// look takes every bundle that is complete, and notes down which trials are lost. It reports whether it settled a trial.
func (r *Run) look(
	ctx context.Context,
	pods []*corev1.Pod,
	job *batchv1.Job,
) (took bool, err error) {
	if job == nil { // all that there is, is here
		return false, nil
	}
	r.explain(pods, job)
	of := map[int][]*corev1.Pod{}
	for _, p := range pods {
		of[indexOf(p)] = append(of[indexOf(p)], p)
	}
	open := r.open()
	states := map[int]state{}
	for i, t := range open {
		if states[i] = stateOf(i, of[i], job); !states[i].done {
			delete(r.failing, t.ID) // it was disrupted, and is made again
		}
	}
	g, fetching := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i, t := range open {
		state := states[i]
		if state.lost != "" {
			lost := bundle.LostTrial{ID: t.ID, Pair: t.Pair, Why: state.lost, Outside: state.outside}
			lost.Seen = r.seenOf(ctx, t.ID, state.ended)
			if err := r.lose(lost); err != nil {
				return false, err
			}
		}
		if state.done {
			g.Go(func() error { return r.fetchDone(fetching, t, state) })
		}
	}
	err = g.Wait()
	settled := r.Dir.Settled()
	for _, t := range open {
		took = took || settled[t.ID]
	}
	return took, err
}

// release tells the pods that wait for their bundles to be fetched that they may end, if their trials need nothing more.
// It reports whether all of them have been told.
func (r *Run) release(ctx context.Context, pods []*corev1.Pod) (all bool) {
	all = true
	for _, p := range pods {
		if !waits(p) || r.released[p.Name] || !r.settled(indexOf(p)) {
			continue
		}
		if err := r.held(p.Name).release(ctx); err != nil {
			r.say(
				"release "+p.Name,
				event.Warning,
				"a pod can't be told yet that its bundle was fetched: "+err.Error(),
			)
			all = false
			continue
		}
		r.released[p.Name] = true
	}
	return all
}

// settled reports whether the trial of an index has its bundle here or is lost.
func (r *Run) settled(index int) bool {
	if index < 0 || index >= TrialsOf(r.Plan) {
		return false
	}
	t, err := trialAt(r.Plan, index)
	return err == nil && (r.Dir.Has(t.ID) || r.Dir.Lost(t.ID))
}

// held returns the bundle that waits in a pod.
func (r *Run) held(pod string) files {
	return files{exec: r.Exec, namespace: r.Job.Namespace, pod: pod, folder: heldDir}
}

// lose notes down that a trial is lost.
func (r *Run) lose(l bundle.LostTrial) error {
	r.Events.Say(event.Warning, l.String())
	if r.schedule != nil {
		r.schedule.Lost(l)
	}
	return r.Dir.Lose(l)
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
	if total == 0 {
		return
	}
	r.Events.Say(
		event.Note,
		fmt.Sprintf(
			"%d pods by node, on which no verdict depends: %s",
			total,
			strings.Join(lines, "; "),
		),
	)
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

package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
)

// fetchFor is how long the bundle of a trial that was pushed may be out of reach.
const fetchFor = 10 * time.Minute

// fetchDone fetches the bundle of a trial that is done. What can't be fetched is tried again for a while.
func (r *Run) fetchDone(ctx context.Context, t plan.Trial, s state) error {
	err := r.fetch(ctx, t, s)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		delete(r.failing, t.ID)
		if r.schedule != nil {
			return r.rule(t.ID)
		}
		r.Events.Say(event.Note, fmt.Sprintf("trial %s: %s, on %s; %d of %d are done", t.ID, cmp.Or(s.verdict, "fetched"), s.node,
			len(r.Plan.Trials)-len(r.open()), len(r.Plan.Trials)))
		return nil
	case errors.Is(err, errAgain):
		return r.lose(bundle.LostTrial{
			ID:   t.ID,
			Pair: t.Pair,
			Why:  "it was made again after a disruption, and the pods that tell of which kind are gone",
		})
	case errors.As(err, new(*bundle.DamageError)):
		return err
	}
	if r.failing[t.ID].IsZero() {
		r.failing[t.ID] = time.Now()
		r.Events.Say(
			event.Warning,
			fmt.Sprintf("trial %s is done, and its bundle can't be fetched yet: %v", t.ID, err),
		)
	}
	if time.Since(r.failing[t.ID]) > fetchFor {
		return &ClusterError{
			fmt.Errorf("the bundle of trial %s: %w", t.ID, err),
			"relapse attach " + r.Name + ", once that answers",
		}
	}
	return nil
}

// fetch takes the bundle of a trial into the run. What the state knows of it is the digest, and the SHA-256 of the manifest
// that its recorder said; without a digest the bundle is taken by its name.
func (r *Run) fetch(ctx context.Context, t plan.Trial, s state) error {
	to := filepath.Join(r.incoming(), t.ID)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	manifest, err := r.pull(ctx, t, s, to)
	if err != nil {
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

// pull unpacks the bundle of a trial, and returns the SHA-256 that its manifest has to have, "" if nobody knows.
func (r *Run) pull(
	ctx context.Context,
	t plan.Trial,
	s state,
	to string,
) (manifest string, err error) {
	if inRegistry(r.Job) {
		return s.manifest, registryOf(r.Job).pullBundle(ctx, cmp.Or(s.bundle, bundleTag(r.Name, t.ID)), to)
	}
	from := r.held(s.pod)
	if r.Job.Storage != "" {
		volume, err := r.mounted(ctx)
		if err != nil {
			return "", err
		}
		from = *volume
	}
	if s.bundle == "" {
		reports, err := from.reports(ctx)
		if err != nil {
			return "", err
		}
		known, there := reports[t.ID]
		switch {
		case !there:
			return "", fmt.Errorf("the bundle of trial %s: %w", t.ID, errAbsent)
		case known.Again && s.pod == "":
			return "", fmt.Errorf("the bundle of trial %s: %w", t.ID, errAgain)
		}
		s.bundle, s.manifest = known.Bundle, known.Manifest
	}
	return s.manifest, from.pull(ctx, t.ID, s.bundle, to)
}

// mounted returns the run's volume, which a pod reads from now on.
func (r *Run) mounted(ctx context.Context) (*files, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.volume != nil {
		p, err := r.Client.CoreV1().
			Pods(r.Job.Namespace).
			Get(ctx, r.volume.pod, metav1.GetOptions{})
		switch {
		case err == nil && p.Status.Phase == corev1.PodRunning:
			return r.volume, nil
		case err != nil && !apierrors.IsNotFound(err):
			return nil, err
		}
		if err := r.unmount(); err != nil {
			return nil, err
		}
	}
	volume, end, err := volumeOf(ctx, r.Client, r.Exec, r.Name, r.Job)
	if err != nil {
		return nil, err
	}
	r.volume, r.endReader = &volume, end
	return r.volume, nil
}

// unmount removes the pod that reads the run's volume, if there is one.
func (r *Run) unmount() error {
	if r.volume == nil {
		return nil
	}
	r.volume = nil
	return r.endReader()
}

// Fetch takes the bundles that are there, and returns how many trials have none yet. It asks the cluster only where the
// bundles lie there.
func (r *Run) Fetch(ctx context.Context) (missing int, err error) {
	if err := r.begin(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.unmount()) }()
	if r.Job.Held {
		return r.fetchHeld(ctx)
	}
	passed := map[string]bool{}
	for {
		took := false
		for _, t := range r.open() {
			if passed[t.ID] {
				continue
			}
			err := r.fetch(ctx, t, state{})
			if errors.Is(err, errAgain) {
				r.Events.Say(
					event.Warning,
					fmt.Sprintf(
						"trial %s: %v; relapse attach %s asks the cluster",
						t.ID,
						errAgain,
						r.Name,
					),
				)
			}
			if errors.Is(err, errAbsent) || errors.Is(err, errAgain) {
				passed[t.ID] = true
				continue
			}
			if err != nil {
				return len(r.open()), err
			}
			took = true
			r.Events.Say(event.Note, "trial "+t.ID+" was fetched")
			if err := r.rule(t.ID); err != nil {
				return len(r.open()), err
			}
		}
		if !took {
			r.sayLeft()
			return len(r.open()), os.RemoveAll(r.incoming())
		}
	}
}

// sayLeft says that the Job of an open-ended run that its rule has ended may go on: Fetch doesn't ask the cluster.
func (r *Run) sayLeft() {
	if r.schedule != nil && len(r.open()) == 0 {
		r.Events.Say(
			event.Warning,
			"the rule has ended the run, and its Job may go on: relapse attach "+r.Name+
				" ends it, and notes down how the trials came out that were over by then",
		)
	}
}

// fetchHeld takes the bundles that wait in pods.
func (r *Run) fetchHeld(ctx context.Context) (missing int, err error) {
	of := metav1.ListOptions{LabelSelector: RunLabel + "=" + r.Name}
	list, err := r.Client.CoreV1().Pods(r.Job.Namespace).List(ctx, of)
	if err != nil {
		return 0, refusedBy(err, r.Job.Namespace)
	}
	job, err := r.Client.BatchV1().Jobs(r.Job.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return 0, r.gone()
	}
	if err != nil {
		return 0, refusedBy(err, r.Job.Namespace)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	if _, err := r.look(ctx, pods, job); err != nil {
		return len(r.open()), err
	}
	r.release(ctx, pods)
	return len(r.open()), os.RemoveAll(r.incoming())
}

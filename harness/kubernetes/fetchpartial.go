package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kube-relapse/relapse/harness/event"
)

// PartialDir is the folder of a run's directory with what trials without a bundle have seen, one folder for each. No
// verdict reads it.
const PartialDir = "partial"

// lookAtLost is how long what a lost trial had seen may take to come here.
const lookAtLost = time.Minute

// errOther says that what there is comes from another pod of the trial.
var errOther = errors.New("it comes from another pod of the trial")

// seenOf fetches what a lost trial had seen, and returns it in words: "" if there is nothing. The trial is lost either
// way.
func (r *Run) seenOf(ctx context.Context, id, pod string) string {
	ctx, cancel := context.WithTimeout(ctx, lookAtLost)
	defer cancel()
	p, err := r.fetchPartial(ctx, id, pod)
	switch {
	case errors.Is(err, errAbsent), errors.Is(err, errOther):
		return ""
	case err != nil:
		r.Events.Say(
			event.Warning,
			fmt.Sprintf("what trial %s had seen can't be fetched: %v; relapse fetch %s --partial tries again", id, err, r.Name),
		)
		return ""
	}
	return p.String()
}

// String says how far a trial had come.
func (p Partial) String() string {
	return fmt.Sprintf("what it had seen when its phase %s began is in %s/%s", p.Phase, PartialDir, p.Trial)
}

// fetchPartial takes what a trial without a bundle has seen so far into the run's directory, in place of what is there.
// pod is the one that has to have seen it, "" for any. Nothing of it is verified: it is for people to look at.
func (r *Run) fetchPartial(ctx context.Context, id, pod string) (p Partial, err error) {
	to := filepath.Join(r.incoming(), PartialDir, id)
	if err := os.RemoveAll(to); err != nil {
		return p, err
	}
	switch {
	case r.Job.Held:
		return p, fmt.Errorf("what lies in a pod ends with it: %w", errAbsent)
	case r.Job.Storage != "":
		volume, e := r.mounted(ctx)
		if e != nil {
			return p, e
		}
		err = volume.pullPartial(ctx, id, to)
	default:
		err = registryOf(r.Job).pullPartial(ctx, partialTag(r.Name, id), to)
	}
	if err != nil {
		return p, err
	}
	raw, err := os.ReadFile(filepath.Join(to, partialFile))
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("reading %s of trial %s: %w", partialFile, id, err)
	}
	if p.Trial != id {
		return p, fmt.Errorf("what is there for trial %s is of trial %q", id, p.Trial)
	}
	if pod != "" && p.Pod != pod {
		return p, fmt.Errorf("want the pod %s, and it is of %s: %w", pod, p.Pod, errOther)
	}
	at := filepath.Join(r.Dir.Path(), PartialDir, id)
	if err := errors.Join(os.RemoveAll(at), os.MkdirAll(filepath.Dir(at), 0o755)); err != nil {
		return p, err
	}
	return p, os.Rename(to, at)
}

// FetchPartial takes what the trials without a bundle have seen so far, whether they are lost or go on, and returns of how
// many there was something.
func (r *Run) FetchPartial(ctx context.Context) (fetched int, err error) {
	if err := r.begin(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.unmount(), os.RemoveAll(r.incoming())) }()
	for i := range TrialsOf(r.Plan) {
		t, err := trialAt(r.Plan, i)
		if err != nil {
			return fetched, err
		}
		if r.Dir.Has(t.ID) {
			continue
		}
		p, err := r.fetchPartial(ctx, t.ID, "")
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return fetched, err
		}
		fetched++
		r.Events.Say(event.Note, "trial "+t.ID+" has no bundle here; "+p.String())
	}
	return fetched, nil
}

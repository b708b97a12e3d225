// Package kubernetes runs the trials of a run in the pods of an Indexed Job, one trial in each, and brings their bundles
// here, where they are judged as if they had been made here. Nothing is installed in the cluster, and nothing but
// Kubernetes schedules.
//
// Start pushes an image with all programs and creates the Job. In each pod Record makes one trial and pushes its bundle.
// Follow waits for the pods and takes their bundles into the run's directory. What Follow knows is in the cluster and in
// the registry: whoever is killed is followed by the next Follow.
package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
)

// RecorderCommand is the command of this program that calls Record in a pod.
const RecorderCommand = "recorder"

// DisruptedEnv is a recorder's environment variable with the number of pods of its trial that were disrupted before.
const DisruptedEnv = "RELAPSE_DISRUPTED"

// Exit codes of a recorder without a complete bundle. The Job's failure policy knows them.
const (
	ExitLost        = 1   // the trial had begun and left no bundle: never repeated
	ExitOwnFailure  = 4   // before the trial began, or before anything of its bundle was sent: repeated
	ExitInterrupted = 130 // the pod was told to end: repeated
	// exitUnseen is what containerd says, in loadContainer of internal/cri/server/restart.go, of a container that ran when
	// its node was powered off. It is never repeated: nothing here tells whether the incident brought the node down.
	exitUnseen = 255
)

// repeated are the exit codes after which a trial begins again.
var repeated = []int32{ExitOwnFailure, ExitInterrupted}

// Report is the termination message of a recorder.
type Report struct {
	Trial    string  `json:"trial"`
	Verdict  string  `json:"verdict,omitempty"`  // of this trial alone
	Bundle   string  `json:"bundle,omitempty"`   // digest of the bundle's artifact, or of its file
	Manifest string  `json:"manifest,omitempty"` // SHA-256 of the bundle's manifest
	Seconds  float64 `json:"seconds"`
	Why      string  `json:"why,omitempty"`   // there is no bundle
	Again    bool    `json:"again,omitempty"` // another pod of the trial was disrupted before
}

// LostError says that a trial began and left no complete bundle.
type LostError struct{ Err error }

// Error returns the reason.
func (e *LostError) Error() string { return "the trial left no complete bundle: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *LostError) Unwrap() error { return e.Err }

// Recorder makes one trial in a pod.
type Recorder struct {
	Run      string // the run's name
	Registry Registry
	Folder   string        // for the bundle, instead of the registry; "" for the registry
	Hold     time.Duration // how long to wait for the bundle to be fetched from the folder; 0 for not at all
	Index    string        // of the trial in the plan, from 0: $JOB_COMPLETION_INDEX
	Again    bool          // another pod of the trial was disrupted before
	Pod      string        // its own name
	Provider cluster.Provider
	Events   *event.Stream
	Aside    *event.Stream // what doesn't belong into the bundle
}

// Record makes the trial, judges it and delivers its bundle. A bundle of a trial that failed is complete, too. An error
// means that the bundle wasn't delivered: a *LostError if the trial had begun, which must not be repeated.
func (r Recorder) Record(ctx context.Context) (report Report, err error) {
	began := time.Now()
	defer func() {
		if report.Seconds = time.Since(began).Seconds(); err != nil {
			report.Why = err.Error()
		}
	}()
	p, t, err := r.planned()
	if err != nil {
		return report, err
	}
	report.Trial = t.ID
	raw, err := os.ReadFile(carriedFile)
	if err != nil {
		return report, err
	}
	carried, err := artifacts.ReadCarried(raw)
	if err != nil {
		return report, err
	}
	dir := filepath.Join(workDir, "run")
	at := filepath.Join(dir, "trials", t.ID)
	end := r.whileItGoesOn(ctx, t.ID, at)
	failed := harness.RunTrial(
		ctx,
		harness.Options{Plan: p, Provider: r.Provider, Events: r.Events},
		carried,
		r.Run,
		dir,
		t,
	)
	end()
	if report.Manifest, err = bundle.ManifestSum(at); err != nil || report.Manifest == "" {
		return report, r.without(ctx, at, errors.Join(failed, err))
	}
	judged, err := judge.Bundle(at)
	if err != nil {
		return report, &LostError{err}
	}
	report.Verdict, report.Again = string(judged.Verdict), r.Again
	return report, r.deliver(ctx, at, &report)
}

// deliver brings a bundle to where it lasts, or waits for it to be fetched.
func (r Recorder) deliver(ctx context.Context, at string, report *Report) (err error) {
	if r.Folder == "" {
		report.Bundle, err = r.push(ctx, report.Trial, at)
		return lostUnlessOutside(ctx, err)
	}
	if err := keep(r.Folder, at, report); err != nil {
		return &LostError{fmt.Errorf("leaving the bundle in %s: %w", r.Folder, err)} // the incident may have filled the disk
	}
	if err := os.Remove(filepath.Join(r.Folder, partialName(report.Trial))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Aside.Say(event.Note, "what was delivered before the end stays on the volume: "+err.Error())
	}
	if r.Hold == 0 {
		return nil
	}
	r.Events.Say(
		event.Note,
		fmt.Sprintf("the bundle is complete, and waits for %s to be fetched", r.Hold),
	)
	return lostUnlessOutside(ctx, untilFetched(ctx, filepath.Join(r.Folder, fetchedFile), r.Hold))
}

// lostUnlessOutside returns the error of a bundle's way. The trial is lost, unless the pod was told to end or nothing of the
// bundle was sent: anything else may come of what the bundle holds, such as its size, and a trial must not be made again
// until it leaves one that gets through.
func lostUnlessOutside(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || nothingSent(err) {
		return err
	}
	return &LostError{err}
}

// nothingSent reports whether a push ended before anything of its bundle was sent. A push begins with requests that have
// nothing in them: it asks whether there is a registry, and maybe for a token. No other of its requests is a GET. If one
// of them fails, there is no connection, or a proxy answers in place of a registry that is away.
func nothingSent(err error) bool {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Op == "Get"
	}
	refused := (*transport.Error)(nil)
	return errors.As(err, &refused) && refused.Request != nil && refused.Request.Method == http.MethodGet
}

// planned returns the plan and the trial of this pod.
func (r Recorder) planned() (*plan.Plan, plan.Trial, error) {
	raw, err := os.ReadFile(planFile)
	if err != nil {
		return nil, plan.Trial{}, err
	}
	p, err := plan.Read(raw)
	if err != nil {
		return nil, plan.Trial{}, err
	}
	i, err := strconv.Atoi(r.Index)
	if err != nil || i < 0 || i >= TrialsOf(p) {
		return nil, plan.Trial{}, fmt.Errorf(
			"$JOB_COMPLETION_INDEX is %q, and the plan has %d trials",
			r.Index,
			TrialsOf(p),
		)
	}
	t, err := trialAt(p, i)
	return p, t, err
}

// without returns why there is no bundle. A trial that had begun is lost, unless the pod was told to end.
func (r Recorder) without(ctx context.Context, at string, err error) error {
	if _, began := os.Stat(at); began != nil || ctx.Err() != nil {
		return err
	}
	return &LostError{err}
}

// pushFor is how long a recorder tries to push its bundle: a registry that is away for some minutes costs no trial.
// pushEvery is the wait between two tries.
const (
	pushFor   = 10 * time.Minute
	pushEvery = 5 * time.Second
)

func (r Recorder) push(ctx context.Context, id, at string) (digest string, err error) {
	return tryFor(ctx, pushFor, pushEvery, func(ctx context.Context) (string, error) {
		digest, err := r.Registry.pushBundle(ctx, bundleTag(r.Run, id), at, r.Again)
		if err != nil {
			r.Events.Say(
				event.Warning,
				"the bundle is complete and can't be pushed yet: "+err.Error(),
			)
		}
		return digest, err
	})
}

// tryFor tries to push for a time. Of several errors it returns the last one, but rather one of a try that had sent
// something: a registry that breaks under a bundle is away at the next try, and that doesn't come from outside.
func tryFor(
	ctx context.Context,
	limit, every time.Duration,
	push func(context.Context) (digest string, err error),
) (digest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var sent error
	for {
		if digest, err = push(ctx); err == nil {
			return digest, nil
		}
		if !nothingSent(err) {
			sent = err
		}
		select {
		case <-ctx.Done():
			return "", cmp.Or(sent, err)
		case <-time.After(every):
		}
	}
}

// terminationLog is the file that a kubelet takes for the container's termination message, of at most 4096 bytes.
const terminationLog = "/dev/termination-log"

// Leave leaves the report as the container's termination message.
func (r Report) Leave() error {
	if len(r.Why) > 2000 {
		r.Why = r.Why[:2000] + "…"
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(terminationLog, raw, 0o644)
}

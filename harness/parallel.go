package harness

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
)

// runSlot is what a trial needs to run while others may: the prefix of its clusters' names, and its own events and
// stages.
type runSlot struct {
	run    string
	events *event.Stream
	stages *stages
}

// soleSlot returns the slot of trials that run one after the other.
func (r *run) soleSlot() runSlot { return runSlot{r.ledger.Run, r.Events, r.stages} }

// runParallel runs all trials of the plan, r.Parallel of them at once. When one fails, the others end.
func (r *run) runParallel(ctx context.Context) error {
	g, running := errgroup.WithContext(ctx)
	names := make(chan string, r.Parallel) // names that no trial is using
	for _, name := range runNames(r.ledger.Run, r.Parallel) {
		names <- name
	}
	before := r.stages.take()
	for _, t := range r.Plan.Trials {
		var name string
		select {
		case name = <-names:
		case <-running.Done():
		}
		if running.Err() != nil {
			break
		}
		g.Go(func() error {
			defer func() { names <- name }()
			return r.runInSlot(running, t, name, before)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// runInSlot runs one trial, whose timeline has only its own events.
func (r *run) runInSlot(
	ctx context.Context,
	t plan.Trial,
	name string,
	before []event.Event,
) error {
	own := event.NewStream(event.SinkFunc(func(e event.Event) {
		e.Message = "trial " + t.ID + ": " + e.Message
		r.Events.Emit(e)
	}))
	at := runSlot{run: name, events: own, stages: recordStages(own)}
	defer at.stages.stop()
	at.stages.kept = append(at.stages.kept, before...)
	return r.trial(ctx, r.Artifacts, t, false, at)
}

// runNames returns the prefixes of the clusters' names, one for each of the parallel trials.
func runNames(run string, parallel int) []string {
	if parallel < 2 {
		return []string{run}
	}
	var out []string
	for i := range parallel {
		out = append(out, fmt.Sprintf("%s-%d", run, i+1))
	}
	return out
}

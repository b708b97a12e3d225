package fault

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Restarter is a Fault that can make a component another process. Restarts reports whether it does so to a component
// that runs on its nodes. It records each process that it ends as a bundle.EndedProcess, before it ends the process:
// whoever sees the other process must be able to know why.
type Restarter interface{ Restarts(component string) bool }

// end kills or restarts a component, and returns once its process was seen to be gone.
func (f *Process) end(ctx context.Context, t Target, k cluster.Component) error {
	restart := k.Abilities().Restart
	if f.Action == ProcessRestart && restart == nil {
		return errors.New("it can't be restarted here")
	}
	// Between two processes of a component there is none.
	before, err := ProbeUntil(ctx, f.ready(), identity(k), func(id cluster.Identity) bool { return id.PID != 0 })
	if err != nil {
		return fmt.Errorf("there is no process to %s: %w", f.Action, err)
	}
	end := bundle.EndedByFault{Fault: t.Name, PID: before.PID, StartTicks: before.StartTicks, Restarts: before.Restarts,
		Counted: f.Action == ProcessKill, ReadySeconds: f.ready().Seconds()}
	if err := record(t, k, end); err != nil {
		return err
	}
	if f.Action == ProcessKill {
		err = k.Signal(ctx, syscall.SIGKILL)
	} else {
		err = restart(ctx)
	}
	if errors.Is(err, cluster.ErrNoProcess) { // it had ended of itself
		end.Withdrawn = true
		return errors.Join(err, record(t, k, end))
	}
	if err != nil {
		return err
	}
	now, err := ProbeUntil(ctx, processSeen, identity(k), func(id cluster.Identity) bool {
		return id.PID != before.PID || id.StartTicks != before.StartTicks
	})
	if err != nil {
		return fmt.Errorf("process %d was to end and was not seen to: %w", before.PID, err)
	}
	does := map[string]string{ProcessKill: "was killed", ProcessRestart: "was ended for a restart"}[f.Action]
	after := fmt.Sprintf("process %d is in its place", now.PID)
	if now.PID == 0 {
		after = "none is in its place yet"
	}
	Emit(t, event.FaultSeen, k.Node(), "the process %d of %s %s, and %s", before.PID, f.Component, does, after)
	return nil
}

// record notes down the process that is about to be ended or, withdrawn, that it wasn't the fault that ended it.
func record(t Target, k cluster.Component, end bundle.EndedByFault) error {
	if t.Writer == nil {
		return nil
	}
	end.Time = time.Now().UTC()
	_, err := t.Writer.WriteJSON(bundle.Meta{Kind: bundle.EndedProcess, Arm: t.Arm, Node: k.Node().Name(), Component: k.Name(),
		Time: end.Time}, end)
	if err != nil {
		return fmt.Errorf("recording that process %d is to end: %w", end.PID, err)
	}
	return nil
}

// awaitReady returns once the component has a process and answers that it is ready. A subject that doesn't get there is
// an answer about the subject, so it is reported and is no error. So is a component that runs and is asked through the
// subject.
func (f *Process) awaitReady(ctx context.Context, t Target, k cluster.Component) error {
	row, _ := component.Of(f.Component)
	within, unasked := f.ready(), false // unasked: it runs, and did not answer the last time
	seen, err := ProbeUntil(ctx, within, func(ctx context.Context) (cluster.Identity, error) {
		id, err := k.Identity(ctx, false)
		if err != nil || !runs(id) {
			unasked = unasked && ctx.Err() != nil
			return id, err
		}
		body, err := k.Get(ctx, row.Ready)
		if unasked = err != nil; unasked {
			return id, err
		}
		return id, body.Close()
	}, runs)
	switch {
	case err == nil:
		Emit(t, event.FaultGone, k.Node(), "the process %d of %s answers on %s", seen.PID, f.Component, row.Ready)
	case ctx.Err() == nil && f.Component == t.Subject:
		Emit(t, event.Warning, k.Node(), "%s, the subject, was not ready within %s, and is judged as it is: %v",
			f.Component, within, err)
		err = nil
	case ctx.Err() == nil && unasked && row.Endpoint.Proxied && t.Subject == "kube-apiserver":
		Emit(t, event.Warning, k.Node(), "%s, which is asked through %s, the subject, did not answer within %s, and the "+
			"subject is judged as it is: %v", f.Component, t.Subject, within, err)
		err = nil
	case ctx.Err() == nil:
		err = fmt.Errorf("it was not ready again within %s: %w", within, err)
	}
	return err
}

package faults

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
	"github.com/kube-relapse/relapse/harness/inject/fault"
)

// ending is how a fault ends a process.
type ending struct {
	verb    string
	counted bool // by the supervisor, as a restart
	build   int  // the number of the build that comes in its place; 0 if it is the same
	act     func(ctx context.Context, before cluster.Identity) error
}

func (f *Process) kill(ctx context.Context, t fault.Target, k cluster.Component) error {
	before, now, err := f.end(ctx, t, k, ending{verb: ProcessKill, counted: true,
		act: func(ctx context.Context, before cluster.Identity) error {
			return k.Signal(ctx, syscall.SIGKILL, before)
		}})
	if err != nil {
		return err
	}
	f.sayEnded(t, k, before, "was killed", now)
	return nil
}

func (f *Process) restart(ctx context.Context, t fault.Target, k cluster.Component) error {
	restart := k.Abilities().Restart
	if restart == nil {
		return errors.New("it can't be restarted here")
	}
	before, now, err := f.end(ctx, t, k, ending{verb: ProcessRestart,
		act: func(ctx context.Context, _ cluster.Identity) error { return restart(ctx) }})
	if err != nil {
		return err
	}
	f.sayEnded(t, k, before, "was ended for a restart", now)
	return nil
}

func (f *Process) sayEnded(
	t fault.Target,
	k cluster.Component,
	before cluster.Identity,
	does string,
	now cluster.Identity,
) {
	after := fmt.Sprintf("process %d is in its place", now.PID)
	if now.PID == 0 {
		after = "none is in its place yet"
	}
	Emit(t, event.FaultSeen, k.Node(), "the process %d of %s %s, and %s", before.PID, f.Component, does, after)
}

// end ends the component's process. It returns that process, and what was seen in its place once it was gone: another
// one, or none.
func (f *Process) end(
	ctx context.Context,
	t fault.Target,
	k cluster.Component,
	how ending,
) (before, now cluster.Identity, err error) {
	// Between two processes of a component there is none.
	before, err = ProbeUntil(
		ctx,
		f.ready(),
		identity(k),
		func(id cluster.Identity) bool { return id.PID != 0 },
	)
	if err != nil {
		return before, now, fmt.Errorf("there is no process to %s: %w", how.verb, err)
	}
	now, err = f.endProcess(ctx, t, k, before, how)
	return before, now, err
}

// endProcess ends the process before. If that had ended of itself, the process which its supervisor has started in its
// place must not be taken for it: its record is withdrawn, and the error is cluster.ErrNoProcess.
func (f *Process) endProcess(
	ctx context.Context,
	t fault.Target,
	k cluster.Component,
	before cluster.Identity,
	how ending,
) (now cluster.Identity, err error) {
	end := bundle.EndedByFault{
		Fault:        t.Name,
		PID:          before.PID,
		StartTicks:   before.StartTicks,
		Restarts:     before.Restarts,
		Counted:      how.counted,
		ReadySeconds: f.ready().Seconds(),
		Build:        how.build,
	}
	if err := record(t, k, end); err != nil {
		return now, err
	}
	now, err = k.Identity(ctx, false)
	begun := err == nil && now.Same(before)
	switch {
	case begun:
		err = how.act(ctx, before)
	case err == nil:
		err = fmt.Errorf("process %d had ended of itself: %w", before.PID, cluster.ErrNoProcess)
	}
	if !begun || err != nil && (errors.Is(err, cluster.ErrNoProcess) || stays(ctx, k, before)) {
		end.Withdrawn = true
		return now, errors.Join(err, record(t, k, end))
	}
	if err != nil {
		return now, err
	}
	now, err = ProbeUntil(
		ctx,
		processSeen,
		identity(k),
		func(id cluster.Identity) bool { return !id.Same(before) },
	)
	if err != nil {
		err = fmt.Errorf("process %d was to end and was not seen to: %w", before.PID, err)
	}
	return now, err
}

// endsWithin is how long a process takes to end that was told to, at most, unless something is wrong with it.
const endsWithin = 5 * time.Second

// stays reports whether a process that was to be ended, and may not have been, is still there once it would have ended:
// if it ends later, that is not the fault's doing. It looks even if ctx is over.
func stays(ctx context.Context, k cluster.Component, before cluster.Identity) bool {
	seen, err := ProbeUntil(
		context.WithoutCancel(ctx),
		endsWithin,
		identity(k),
		func(id cluster.Identity) bool { return !id.Same(before) },
	)
	return err != nil && seen.Same(before)
}

// record notes down the process that is about to be ended or, withdrawn, that it wasn't the fault that ended it.
func record(t fault.Target, k cluster.Component, end bundle.EndedByFault) error {
	if t.Writer == nil {
		return nil
	}
	end.Time = time.Now().UTC()
	_, err := t.Writer.WriteJSON(
		bundle.Meta{
			Kind:      bundle.EndedProcess,
			Arm:       t.Arm,
			Node:      k.Node().Name(),
			Component: k.Name(),
			Time:      end.Time,
		},
		end,
	)
	if err != nil {
		return fmt.Errorf("recording that process %d is to end: %w", end.PID, err)
	}
	return nil
}

// awaitReady returns once the component has a process and answers that it is ready. A subject that doesn't get there is
// an answer about the subject, so it is reported and is no error. So is a component that runs and is asked through the
// subject.
func (f *Process) awaitReady(ctx context.Context, t fault.Target, k cluster.Component) error {
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
		Emit(
			t,
			event.FaultGone,
			k.Node(),
			"the process %d of %s answers on %s",
			seen.PID,
			f.Component,
			row.Ready,
		)
	case ctx.Err() == nil && f.Component == t.Subject:
		Emit(
			t,
			event.Warning,
			k.Node(),
			"%s, the subject, was not ready within %s, and is judged as it is: %v",
			f.Component,
			within,
			err,
		)
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

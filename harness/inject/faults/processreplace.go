package faults

import (
	"context"
	"errors"
	"fmt"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
)

// Replaces returns the component and the build that is put in place.
func (f *Process) Replaces() (component string, build int) {
	if f.Action != ProcessReplace {
		return "", 0
	}
	return f.Component, f.Build
}

// replace installs another build of the arm and restarts the component from it. Only the build before it is replaced.
func (f *Process) replace(ctx context.Context, t fault.Target, k cluster.Component) error {
	n, restart := f.Build, k.Abilities().Restart
	if n == 0 {
		n = len(t.Builds)
	}
	switch {
	case restart == nil:
		return errors.New("it can't be restarted here")
	case n < 2 || n > len(t.Builds):
		return fmt.Errorf(
			"there is no build %d to put in its place (builds: %d)",
			n,
			len(t.Builds),
		)
	}
	was, next := t.Builds[n-2], t.Builds[n-1]
	before, err := ProbeUntil(ctx, f.ready(),
		func(ctx context.Context) (cluster.Identity, error) { return k.Identity(ctx, true) },
		func(id cluster.Identity) bool { return id.PID != 0 })
	switch {
	case err != nil:
		return fmt.Errorf("there is no process to %s: %w", f.Action, err)
	case before.SHA256 == next.Digest: // by an Inject before this one
		Emit(t, event.FaultSeen, k.Node(), "the process %d of %s is of build %d (SHA-256 %.12s)", before.PID, f.Component, n,
			next.Digest)
		return nil
	case before.SHA256 != was.Digest:
		return fmt.Errorf(
			"process %d is the program %.12s: want build %d, which is %.12s",
			before.PID,
			before.SHA256,
			n-1,
			was.Digest,
		)
	}
	// The program is laid down only once the process was seen to be there still: if it ends of itself before, its
	// supervisor starts the same build again.
	now, err := f.endProcess(ctx, t, k, before, ending{verb: f.Action, build: n,
		act: func(ctx context.Context, _ cluster.Identity) error {
			if err := k.Node().Install(ctx, k.Name(), next.Path); err != nil {
				return err
			}
			return restart(ctx)
		}})
	if err != nil {
		return err
	}
	f.sayEnded(
		t,
		k,
		before,
		fmt.Sprintf("was ended for build %d (SHA-256 %.12s)", n, next.Digest),
		now,
	)
	return nil
}

package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
)

var flagName = regexp.MustCompile(`^[a-z][-a-z0-9]*$`)

// validateFlags refuses flags of another action than restart, of a component without flags, and with no flag's name.
func (f *Process) validateFlags(row component.Component) error {
	switch {
	case f.Flags == nil:
		return nil
	case f.Action != ProcessRestart:
		return fmt.Errorf(
			"flags have no effect on the action %s (want %s, or flags left out)",
			f.Action,
			ProcessRestart,
		)
	case len(f.Flags) == 0:
		return errors.New("flags are empty (want a flag, or flags left out)")
	case !component.TakesFlags(row):
		return fmt.Errorf("flags: %s takes none (want one of %s)", row.Name,
			strings.Join(component.Names(component.TakesFlags), ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Flags)) {
		if !flagName.MatchString(name) {
			return fmt.Errorf(
				"flags: %q is no flag's name (want it without dashes in front and without a value: v)",
				name,
			)
		}
	}
	return nil
}

// Flagged returns the flags that the component gets.
func (f *Process) Flagged() (component string, flags map[string]string) {
	if len(f.Flags) == 0 {
		return f.Component, nil
	}
	flags = map[string]string{}
	for name, value := range f.Flags {
		flags[name] = string(value)
	}
	return f.Component, flags
}

// flagsText returns flags as they are on a command line.
func flagsText(flags map[string]string) string {
	return strings.Join(cluster.WithFlags(nil, flags), " ")
}

// reflagged is a process with its arguments.
type reflagged struct {
	cluster.Identity
	Arguments []string
}

func withArguments(k cluster.Component) func(context.Context) (reflagged, error) {
	return func(ctx context.Context) (out reflagged, err error) {
		if out.Identity, err = k.Identity(ctx, false); err == nil {
			out.Arguments, err = k.Abilities().Flags.Arguments(ctx)
		}
		return out, err
	}
}

// giveFlags restarts the component with the flags, and returns once a process was seen to run with them.
func (f *Process) giveFlags(ctx context.Context, t fault.Target, k cluster.Component) error {
	can := k.Abilities().Flags
	if can == nil {
		return errors.New("it can't be restarted with other flags here")
	}
	_, flags := f.Flagged()
	added, err := can.Added(ctx)
	if err != nil {
		return err
	}
	was, err := ProbeUntil(
		ctx,
		f.ready(),
		withArguments(k),
		func(r reflagged) bool { return r.PID != 0 },
	)
	if err != nil {
		return fmt.Errorf("there is no process to restart: %w", err)
	}
	has, given := cluster.HasFlags(was.Arguments, flags), maps.Equal(added, flags)
	switch {
	case has && given: // by an Inject before this one
		Emit(
			t,
			event.FaultSeen,
			k.Node(),
			"the process %d of %s runs with %s",
			was.PID,
			f.Component,
			flagsText(flags),
		)
		return nil
	case has:
		return fmt.Errorf("process %d runs with %s already: other flags are wanted", was.PID, flagsText(flags))
	}
	if _, err := f.endProcess(ctx, t, k, was.Identity, ending{verb: ProcessRestart,
		act: func(ctx context.Context, _ cluster.Identity) error { return can.RestartWith(ctx, flags) }}); err != nil {
		return err
	}
	now, err := ProbeUntil(ctx, f.ready(), withArguments(k), func(r reflagged) bool {
		return r.PID != 0 && !r.Same(was.Identity) && cluster.HasFlags(r.Arguments, flags)
	})
	if err != nil {
		return fmt.Errorf("no process was seen to run with %s: %w", flagsText(flags), err)
	}
	Emit(t, event.FaultSeen, k.Node(), "the process %d of %s was ended for a restart, and process %d runs with %s", was.PID,
		f.Component, now.PID, flagsText(flags))
	return nil
}

// takeFlags restarts the component with its own flags, if it was given others. If it has no process, because each ends
// of itself with these flags, it is restarted all the same, and no end by the fault is recorded.
func (f *Process) takeFlags(ctx context.Context, t fault.Target, k cluster.Component) error {
	can := k.Abilities().Flags
	if len(f.Flags) == 0 || can == nil {
		return nil
	}
	added, err := can.Added(ctx)
	if err != nil {
		return err
	}
	_, flags := f.Flagged()
	if len(added) == 0 { // by a Recover before this one, which may not have seen it
		return f.awaitOwnFlags(ctx, k, flags)
	}
	before, err := ProbeUntil(
		ctx,
		processSeen,
		identity(k),
		func(id cluster.Identity) bool { return id.PID != 0 },
	)
	if err != nil {
		if before, err = k.Identity(ctx, false); err != nil {
			return err
		}
	}
	err = cluster.ErrNoProcess
	if before.PID != 0 {
		_, err = f.endProcess(ctx, t, k, before, ending{
			verb: ProcessRestart,
			act:  func(ctx context.Context, _ cluster.Identity) error { return can.RestartWith(ctx, nil) },
		})
	}
	if errors.Is(err, cluster.ErrNoProcess) {
		err = can.RestartWith(ctx, nil)
	}
	if err != nil {
		return err
	}
	return f.awaitOwnFlags(ctx, k, flags)
}

// awaitOwnFlags returns once no process of the component runs with the flags. That there is none at all is an answer
// about the component, for which awaitReady waits.
func (f *Process) awaitOwnFlags(
	ctx context.Context,
	k cluster.Component,
	flags map[string]string,
) error {
	if _, err := ProbeUntil(ctx, processSeen, withArguments(k), func(r reflagged) bool {
		return r.PID == 0 || !cluster.HasFlags(r.Arguments, flags)
	}); err != nil {
		return fmt.Errorf("its process runs with %s still: %w", flagsText(flags), err)
	}
	return nil
}

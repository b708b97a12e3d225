package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// CleanOptions say what Clean may remove in addition to the remains of dead runs. Runs names retained runs.
type CleanOptions struct {
	Runs []string
	All  bool // every retained run
	// Job removes the Job of a run and the artifacts that it has in a registry.
	Job func(context.Context, Ledger) error
}

// Clean undoes runs whose process no longer exists: their clusters with the faults in them, networks, private files and
// half-written bundles. It doesn't touch runs that are alive, nor retained runs that are not named.
func Clean(
	ctx context.Context,
	provider func(name string) (cluster.Provider, error),
	o CleanOptions,
	say func(string),
) error {
	ledgers, err := List()
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range ledgers {
		named := o.All || slices.Contains(o.Runs, l.Run)
		switch {
		case l.alive() && (!l.Retained || l.Job != nil):
			say(fmt.Sprintf("%s is running (process %d): left alone", l.Run, l.PID))
			continue
		case l.Retained && !named:
			say(
				fmt.Sprintf(
					"%s was kept on purpose: `relapse clean %s` removes it",
					l.Run,
					l.Run,
				),
			)
			continue
		}
		if l.Job != nil {
			if err := errors.Join(o.Job(ctx, l), RemoveIfEmpty(l.Dir)); err != nil {
				errs = append(errs, fmt.Errorf("undoing %s: %w", l.Run, err))
				continue
			}
			errs = append(errs, l.Forget())
			say("removed what " + l.Run + " had left: its Job, its image and its bundles there")
			continue
		}
		if err := l.undo(ctx, provider); err != nil {
			errs = append(errs, fmt.Errorf("undoing %s: %w", l.Run, err))
			continue
		}
		say("removed what " + l.Run + " had left: clusters, networks, private files")
	}
	return errors.Join(errs...)
}

func (l Ledger) undo(
	ctx context.Context,
	provider func(name string) (cluster.Provider, error),
) error {
	prov, err := provider(l.Provider)
	if err != nil {
		return err
	}
	if err := l.deleteClusters(ctx, prov); err != nil {
		return err
	}
	if err := RemoveUnsealed(l.Dir); err != nil {
		return err
	}
	if err := RemoveIfEmpty(l.Dir); err != nil {
		return err
	}
	return l.Forget()
}

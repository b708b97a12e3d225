package clustertest

import (
	"context"
	"maps"
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// RestartWith replaces the process as Restart does, by one that has the flags in addition to those of the topology.
func (k *Component) RestartWith(ctx context.Context, flags map[string]string) error {
	k.mu.Lock()
	before := k.added
	k.added = maps.Clone(flags)
	k.mu.Unlock()
	err := k.Restart(ctx)
	if err != nil {
		k.mu.Lock()
		k.added = before
		k.mu.Unlock()
	}
	return err
}

// Added returns the flags that RestartWith was given.
func (k *Component) Added(ctx context.Context) (map[string]string, error) {
	if err := k.asked(ctx, "flags"); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.added), nil
}

// Arguments returns the flags that the process was started with.
func (k *Component) Arguments(ctx context.Context) ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.id.PID == 0 {
		return nil, ctx.Err()
	}
	return slices.Clone(k.arguments), ctx.Err()
}

// commandLine returns the arguments of the next process. The caller holds the lock, if others know of k.
func (k *Component) commandLine() []string {
	return cluster.WithFlags(
		cluster.WithFlags(nil, k.node.spec.ArgsIn(k.name, k.node.Folder(k.name))),
		k.added,
	)
}

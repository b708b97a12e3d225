package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
)

// Clusters returns the provider with a name, ready to create clusters of a topology: it checks this host, and gets or
// builds what the clusters are made of, as a run does. That takes minutes where nothing of it is in the cache.
func Clusters(
	ctx context.Context,
	name string,
	t cluster.Topology,
	events *event.Stream,
) (p cluster.Provider, err error) {
	if p, err = newProvider(name, events, false); err != nil {
		return nil, err
	}
	root, err := moduleRoot(&cobra.Command{})
	if err != nil {
		return nil, err
	}
	made, err := artifacts.Open(artifacts.Options{Root: root, Events: events})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	needs := cluster.Needs{Topologies: []cluster.Topology{t}, Builder: made}
	if err := p.Check(ctx, needs); err != nil {
		return nil, err
	}
	_, err = p.Prepare(ctx, needs)
	return p, err
}

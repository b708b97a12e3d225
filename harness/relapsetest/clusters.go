package relapsetest

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kube-relapse/relapse/harness/cli"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
)

// Clusters returns a provider, kind or processes, that is ready to create clusters of a topology: for
// e2eframework.New, or to be used as it is. It checks this host and gets or builds what the clusters are made of, which
// takes minutes where nothing of it is in the cache. stderr has the progress.
//
// Clusters of processes end with the test's program, however it ends. A cluster of kind stays until Delete.
func Clusters(
	ctx context.Context,
	provider string,
	t cluster.Topology,
) (cluster.Provider, error) {
	p, err := cli.Clusters(ctx, provider, t, event.NewStream(&event.Lines{W: os.Stderr}))
	var host *cluster.HostError
	if errors.As(err, &host) {
		err = fmt.Errorf("%w\nhint: %s", err, host.Hint)
	}
	if err != nil {
		return nil, fmt.Errorf(
			"getting what clusters of the provider %s are made of: %w",
			provider,
			err,
		)
	}
	return p, nil
}

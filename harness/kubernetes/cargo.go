package kubernetes

import (
	"context"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/artifacts"
)

// cargo is what the trials of a plan take, to be brought to the pods.
type cargo struct {
	carried *artifacts.Carried
	files   map[string]string // paths of programs in a pod -> here
}

// carry makes what harness.Build makes for a plan, and returns it as the pods take it.
func carry(ctx context.Context, o Options) (c cargo, err error) {
	build := harness.Options{Plan: o.Plan, Provider: o.Provider, Artifacts: o.Artifacts}
	if _, err := harness.Build(ctx, build); err != nil {
		return c, err
	}
	c.carried, c.files, err = o.Artifacts.Carry(o.Plan, programsDir)
	return c, err
}

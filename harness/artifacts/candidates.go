package artifacts

import (
	"context"
	"errors"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// BuildCandidates builds every arm of a plan's first trial into the cache, the controls first. failed maps each
// candidate that can't be built to the reason. The error is about a control or this machine; then no candidate can be
// judged.
func (a *Artifacts) BuildCandidates(
	ctx context.Context,
	p *plan.Plan,
) (failed map[string]error, err error) {
	f := a.Forecast(ctx, p, nil, cluster.Needs{})
	if err := a.Fit(ctx, f); err != nil {
		return nil, err
	}
	expected, _ := f.Takes()
	stage := a.events.Stage("build", "building the candidates; "+f.String(), expected)
	defer func() { stage(err) }()
	failed = map[string]error{}
	t := p.Trials[0]
	for _, candidates := range []bool{false, true} {
		for _, c := range t.Arms {
			if (c.Role == scenario.Candidate) != candidates {
				continue
			}
			err := a.buildArm(ctx, c.Arm, t.Subject, t.Constants)
			switch {
			case ctx.Err() != nil:
				return failed, context.Cause(ctx)
			case err != nil && (!candidates || errors.As(err, new(*cache.FullError))):
				return failed, err
			case err != nil:
				failed[c.Name] = err
			}
		}
	}
	return failed, nil
}

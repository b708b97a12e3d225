package harness

import (
	"context"
	"errors"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// BuildCandidates builds every arm of a plan's first trial into the cache, the controls first, and says of each candidate that can't be built why not.
// The error is for what is wrong with a control, or with this machine: then no candidate can be judged.
func BuildCandidates(ctx context.Context, o Options) (failed map[string]error, err error) {
	lab, err := OpenLab(ctx, o.Root, o.CacheDir, o.Events)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	stage := lab.stage("build", "building the candidates", lab.buildEstimate())
	defer func() { stage(err) }()
	failed = map[string]error{}
	t := o.Plan.Trials[0]
	for _, candidates := range []bool{false, true} {
		for _, c := range t.Cells {
			if (c.Arm.Role == scenario.Candidate) != candidates {
				continue
			}
			err := lab.Arm(ctx, c.Arm, t.Subject, t.Constants)
			switch {
			case ctx.Err() != nil:
				return failed, context.Cause(ctx)
			case err != nil && !candidates:
				return failed, err
			case err != nil:
				failed[c.Name] = err
			}
		}
	}
	return failed, nil
}

package measure

import (
	"context"

	"github.com/kube-relapse/relapse/harness/evidence/archive"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/match/healthy"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/harness/version"
)

// Well makes baselines from evidence of processes that were well: see match.Well. An arm of a bundle was well in its
// baseline if it was judged Reproduced or NotReproduced. Both outcomes need a steady state, and a baseline without the
// incident.
func Well(ctx context.Context, paths []string) ([]*healthy.Baseline, []archive.Problem, error) {
	return match.Well(ctx, paths, version.Relapse(), func(t *match.Trial) (map[string]bool, error) {
		judged, err := judge.Bundle(t.Dir)
		if err != nil {
			return nil, err
		}
		well := map[string]bool{}
		for _, a := range judged.Arms {
			well[a.Name] = a.Outcome == verdict.Reproduced || a.Outcome == verdict.NotReproduced
		}
		return well, nil
	})
}

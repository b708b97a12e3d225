package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// Regrade judges recorded runs again and grades candidates by the new verdicts. dir is a run's directory, or an
// oracle's, which stands for all of the oracle's runs. Regrade runs and writes nothing. Candidates that no run has are
// left out.
func Regrade(
	name string,
	candidates []scenario.CandidateFile,
	dir string,
) (OracleSummary, error) {
	s := OracleSummary{Schema: oracleSchema, Scenario: name}
	dirs, err := s.recorded(dir)
	if err != nil {
		return s, err
	}
	for _, dir := range dirs {
		v, err := judge.Run(dir)
		if err != nil {
			return s, err
		}
		if v.Scenario != name {
			return s, fmt.Errorf(
				"grading %s: it is a run of %s, not of %s",
				dir,
				v.Scenario,
				name,
			)
		}
		for _, k := range candidates {
			if !slices.ContainsFunc(v.Arms, func(a verdict.Arm) bool { return a.Name == k.Metadata.Name }) {
				continue
			}
			g := ungraded(k)
			g.Dir = filepath.Base(dir)
			g.grade(v)
			s.Candidates = append(s.Candidates, g)
		}
		s.Versions, s.Relapse = v.Versions, v.Judge
		if s.StartedAt.IsZero() {
			s.StartedAt, s.EndedAt = v.StartedAt, v.StartedAt
		}
	}
	if len(s.Candidates) == 0 {
		return s, fmt.Errorf("grading %s: it has none of the candidates of %s", dir, name)
	}
	s.sum()
	return s, nil
}

// recorded returns the run directories that dir stands for. It takes over how their candidates were run from an earlier
// oracle's summary, or else from the run's plan.
func (s *OracleSummary) recorded(dir string) ([]string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, OracleFile))
	if errors.Is(err, fs.ErrNotExist) {
		raw, err := os.ReadFile(filepath.Join(dir, bundle.PlanFile))
		if err != nil {
			return nil, fmt.Errorf("grading %s: %w", dir, err)
		}
		p, err := plan.Read(raw)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", bundle.PlanFile, err)
		}
		s.Settings = Settings{Pair: p.Trials[0].Pair, Provider: p.Provider, Set: p.Params}
		return []string{dir}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("grading %s: %w", dir, err)
	}
	var before OracleSummary
	if err := json.Unmarshal(raw, &before); err != nil {
		return nil, fmt.Errorf("reading %s: %w", OracleFile, err)
	}
	s.Settings, s.Beside, s.StartedAt, s.EndedAt = before.Settings, before.Beside, before.StartedAt, before.EndedAt
	var out []string
	for _, c := range before.Candidates {
		if run := filepath.Join(filepath.Dir(dir), c.Dir); c.Dir != "" && !slices.Contains(out, run) {
			out = append(out, run)
		}
	}
	return out, nil
}

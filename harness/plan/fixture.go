package plan

import (
	"path/filepath"
	"slices"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// withFixtureFolders returns arms in which each fixture that is part of the scenario's own folder has its path on this
// host, which only whoever knows the scenario's file can tell.
func withFixtureFolders(arms []scenario.Arm, s *scenario.Scenario) []scenario.Arm {
	if s.Origin == nil {
		return arms
	}
	folder := filepath.Dir(s.Origin.File)
	arms = slices.Clone(arms)
	for i := range arms {
		src := &arms[i].Source
		if scenario.OwnFixture(src.Fixture) {
			src.Dir = filepath.Join(folder, src.Fixture)
		}
		src.Before = slices.Clone(src.Before)
		for j := range src.Before {
			if e := &src.Before[j]; scenario.OwnFixture(e.Fixture) {
				e.Dir = filepath.Join(folder, e.Fixture)
			}
		}
	}
	return arms
}

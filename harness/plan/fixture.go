package plan

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/sums"
)

// withFixtureFolders returns arms in which each fixture that is part of the scenario's own folder has its path on this
// host and what its files are: the scenario's digest says nothing of them.
func withFixtureFolders(arms []scenario.Arm, s *scenario.Scenario) ([]scenario.Arm, error) {
	if s.Origin == nil {
		return arms, nil
	}
	folder, err := filepath.Abs(filepath.Dir(s.Origin.File))
	if err != nil {
		return nil, fmt.Errorf("finding the folder of %s: %w", s.Origin.File, err)
	}
	arms = slices.Clone(arms)
	for i := range arms {
		src := &arms[i].Source
		src.Dir, src.Tree = ownFixture(folder, src.Fixture, src.Dir)
		src.Before = slices.Clone(src.Before)
		for j := range src.Before {
			e := &src.Before[j]
			e.Dir, e.Tree = ownFixture(folder, e.Fixture, e.Dir)
		}
	}
	return arms, nil
}

// ownFixture returns the path of a fixture in the scenario's folder and the sum of its files, "" if they can't be read:
// building it says why. For any other fixture it returns dir.
func ownFixture(folder, fixture, dir string) (path, tree string) {
	if !scenario.OwnFixture(fixture) {
		return dir, ""
	}
	path = filepath.Join(folder, fixture)
	tree, err := sums.Tree(path)
	if err != nil {
		return path, ""
	}
	return path, tree
}

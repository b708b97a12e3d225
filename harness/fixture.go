package harness

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// fixtureVersion is what a fixture's module is required at: it is never published.
const fixtureVersion = "v0.0.0"

// resolve says where a subject of our own lies: its module is what its go.mod says.
func (l *Lab) resolve(s scenario.Source) (scenario.Source, error) {
	if s.Fixture == "" {
		return s, nil
	}
	s.Dir = filepath.Join(l.root, "fixtures", s.Fixture)
	file := filepath.Join(s.Dir, "go.mod")
	text, err := os.ReadFile(file)
	if err != nil {
		return s, fmt.Errorf("looking for the fixture %s: %w", s.Fixture, err)
	}
	mod, err := modfile.ParseLax(file, text, nil)
	if err != nil {
		return s, fmt.Errorf("reading the fixture %s: %w", s.Fixture, err)
	}
	if mod.Module == nil {
		return s, fmt.Errorf("reading the fixture %s: %s names no module", s.Fixture, file)
	}
	s.Module, s.Version = mod.Module.Mod.Path, fixtureVersion
	s.Package = cmp.Or(s.Package, s.Module)
	return s, nil
}

package artifacts

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// fixtureVersion is the version given to a fixture's module, which is never published.
const fixtureVersion = "v0.0.0"

// resolve fills in the directory, module, version and package of a fixture that is a subject, or of a candidate for
// one. The go.mod names the module. Other sources stay unchanged.
func (a *Artifacts) resolve(s scenario.Source) (scenario.Source, error) {
	what := "fixture " + s.Fixture
	switch {
	case scenario.OwnFixture(s.Fixture): // the plan has its folder
	case s.Fixture != "":
		s.Dir = filepath.Join(a.root, "fixtures", s.Fixture)
	case s.Dir != "" && s.Module == "":
		what = "module in " + s.Dir
	default:
		return s, nil
	}
	file := filepath.Join(s.Dir, "go.mod")
	text, err := os.ReadFile(file)
	if err != nil {
		return s, fmt.Errorf("looking for the %s: %w", what, err)
	}
	mod, err := modfile.ParseLax(file, text, nil)
	if err != nil {
		return s, fmt.Errorf("reading the %s: %w", what, err)
	}
	if mod.Module == nil {
		return s, fmt.Errorf("reading the %s: %s names no module", what, file)
	}
	s.Module, s.Version = mod.Module.Mod.Path, fixtureVersion
	s.Package = cmp.Or(s.Package, s.Module)
	return s, nil
}

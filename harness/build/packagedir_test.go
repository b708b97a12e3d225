package build_test

import (
	"os"
	"path/filepath"
	"testing"
)

// A package is found in the module that has it, in the version that the release's programs are built with; what is not of
// the release's repository is told apart.
func TestPackageDir(t *testing.T) {
	base, b := publishedModules(t), newBuilder(t, t.TempDir())
	for _, c := range []struct {
		pkg, file string
		own       bool
	}{
		{"example.org/tree/cmd/subject", "main.go", true},
		{"example.org/staged", "staged.go", true},
		{"example.org/needed", "", false},
		{"fmt", "", false},
	} {
		dir, own, err := b.PackageDir(t.Context(), base.Module, base.Version, c.pkg)
		if err != nil || own != c.own {
			t.Fatalf("%s: own %t, %v", c.pkg, own, err)
		}
		if c.file == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, c.file)); err != nil {
			t.Errorf("%s: %v", c.pkg, err)
		}
	}
	dir, own, err := b.PackageDir(t.Context(), base.Module, base.Version, "example.org/tree/gone")
	if _, missing := os.Stat(dir); err != nil || !own || !os.IsNotExist(missing) {
		t.Errorf("a package that the release lacks: %s, own %t, %v", dir, own, err)
	}
	if _, _, err := b.PackageDir(t.Context(), base.Module, "v9.9.9", "example.org/tree"); err == nil {
		t.Error("a release that isn't there has no error")
	}
}

package candidate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// sourceTree is a tree of the user.
func sourceTree(ctx context.Context, a asked) (*scenario.Source, error) {
	given, stated := a.rest, ""
	if _, err := os.Stat(given); err != nil {
		if dir, v, ok := strings.Cut(given, "@"); ok && semver.IsValid(v) {
			given, stated = dir, v
		}
	}
	dir, err := filepath.Abs(given)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, hinted{err, "give the folder of a source tree"}
	case !info.IsDir():
		return nil, hinted{errors.New("it is no folder"),
			"bin:" + given + " for an executable, image:" + given + " for an archive of an image"}
	}
	src := &scenario.Source{Dir: dir}
	module, pkg := a.like.Module, a.like.Package
	if a.like.Fixture != "" {
		module = ""
	}
	if module, err = treeModule(dir, module, a); err != nil {
		return nil, err
	}
	if a.like.Fixture == "" {
		src.Module = module
		if rel, ok := strings.CutPrefix(pkg, module+"/"); ok {
			if found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(rel), "*.go")); err != nil ||
				len(found) == 0 {
				return nil, hinted{fmt.Errorf("it has no program %s (looked in %s)", path.Base(rel), rel),
					"give the root of the module " + module}
			}
		}
		src.Version = a.treeVersion(ctx, dir, stated)
	}
	return src, nil
}

// treeModule is the module in a folder; want is what it must be, "" for anything.
func treeModule(dir, want string, a asked) (string, error) {
	file := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", hinted{fmt.Errorf("reading its go.mod: %w", err), "give the root of a Go module"}
	}
	module := modfile.ModulePath(text)
	if want != "" && module != want {
		return "", hinted{fmt.Errorf("its go.mod says that it is module %q, want %s", module, want),
			"give a tree of " + want + ", which the scenario's " + a.subject() + " is built from"}
	}
	return module, nil
}

// treeVersion is the stated version, else the nearest tag's, else the one of the tree's folder. A change log is one
// patch behind at a release, so it only counts if its minor version isn't the scenario's. "" leaves the version to
// the fixed arm.
func (a asked) treeVersion(ctx context.Context, dir, stated string) string {
	if stated != "" {
		return stated
	}
	if s, err := build.LookAt(ctx, dir); err == nil && s.Version != "" { // what keeps git from answering is named when the tree is built
		return s.Version
	}
	v, exact := build.VersionOfTree(dir)
	if !exact && semver.MajorMinor(v) == semver.MajorMinor(a.like.Version) {
		return ""
	}
	return v
}

package candidate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// sourceTree returns the source for a source tree of the user: DIR or DIR@VERSION.
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
				return nil, hinted{
					fmt.Errorf("it has no program %s (looked in %s)", path.Base(rel), rel),
					"give the root of the module " + module,
				}
			}
		}
		src.Version = a.treeVersion(ctx, dir, stated)
	}
	return src, nil
}

// treeModule returns the name of the module in a folder. want is the name that it must have, "" for any.
func treeModule(dir, want string, a asked) (string, error) {
	file := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", hinted{
			errors.New("there is no Go module in it, because it has no go.mod"),
			"give the root of a Go module",
		}
	}
	if err != nil {
		return "", hinted{
			fmt.Errorf("reading its go.mod: %w", err),
			"give the root of a Go module",
		}
	}
	module := modfile.ModulePath(text)
	if want != "" && module != want {
		return "", hinted{
			fmt.Errorf("its go.mod says that it is module %q, want %s", module, want),
			"give a tree of " + want + ", which the scenario's " + a.subject() + " is built from",
		}
	}
	return module, nil
}

// treeVersion returns the version of a source tree: the stated one, else that of the nearest tag, else the one that the
// files of the tree suggest. A change log is one patch version behind at a release, so it only counts if its minor
// version differs from the scenario's. "" means that the fixed arm's version is used.
func (a asked) treeVersion(ctx context.Context, dir, stated string) string {
	if stated != "" {
		return stated
	}
	if s, err := build.LookAt(ctx, dir); err == nil && s.Version != "" { // the build reports why git didn't answer
		return s.Version
	}
	v, exact := build.VersionOfTree(dir)
	if !exact && semver.MajorMinor(v) == semver.MajorMinor(a.like.Version) {
		return ""
	}
	return v
}

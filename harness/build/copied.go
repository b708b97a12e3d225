package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/kube-relapse/relapse/internal/sums"
)

// This file refuses trees that would lose code if they were built from a copy: the program would not be of its source.

// TreeError says why no program can be built that is of a source tree's own code.
type TreeError struct{ Err error }

// Error returns the reason.
func (e *TreeError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *TreeError) Unwrap() error { return e.Err }

// copyKey returns the key of a build from a copy. It covers the vendor directory, which the copy lacks, because the build
// refuses one that differs.
func (s Source) copyKey(tc Toolchain) (string, error) {
	vendor := filepath.Join(s.Dir, "vendor")
	if _, err := os.Stat(filepath.Join(vendor, "modules.txt")); s.Dir == "" || errors.Is(err, fs.ErrNotExist) {
		return s.key(tc)
	}
	sum, err := sums.Files(
		vendor,
		func(_, _ string, d fs.DirEntry) (bool, error) { return d.Type().IsRegular(), nil },
	)
	if err != nil {
		return "", err
	}
	return s.key(tc, "vendor", sum)
}

// keepsVendored returns an error if the vendor directory of a copied tree has other code than what goes into the copy's
// programs, which are built from the published modules. Modules that have to be raised differ in any case.
func (b *Builder) keepsVendored(ctx context.Context, src Source, work string) error {
	vendor := filepath.Join(src.Dir, "vendor")
	if _, err := os.Stat(filepath.Join(vendor, "modules.txt")); src.Dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	list, err := b.list(ctx, command{dir: work}, "mod", src)
	if err != nil {
		return err
	}
	for _, p := range list {
		raised := p.Module != nil &&
			slices.ContainsFunc(floors, func(f floor) bool { return f.module == p.Module.Path })
		if p.Standard || p.Module == nil || p.Module.local() || raised {
			continue
		}
		own := filepath.Join(vendor, filepath.FromSlash(p.ImportPath))
		if _, err := os.Stat(own); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		differs, err := p.differs(own)
		if err != nil {
			return err
		}
		if differs != "" {
			return &TreeError{
				fmt.Errorf(
					"%s is not as in %s %s, and the tree can't be built in place, where its vendor directory would count",
					filepath.Join(own, differs),
					p.Module.Path,
					p.Module.Version,
				),
			}
		}
	}
	return nil
}

// differs returns a file of a package that differs in another directory, or that only one of them has; "" if there is none.
func (p listed) differs(dir string) (file string, err error) {
	names := p.files()
	list, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range list {
		if name := e.Name(); !e.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		here, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		there, other := os.ReadFile(filepath.Join(p.Dir, name))
		if other != nil && !errors.Is(other, fs.ErrNotExist) {
			return "", other
		}
		if (err == nil) != (other == nil) || !bytes.Equal(here, there) {
			return name, nil
		}
	}
	return "", nil
}

// local reports whether a module's code is in a directory of this host, rather than published.
func (m *listedModule) local() bool {
	return m.Replace != nil && m.Replace.Version == "" || m.Replace == nil && m.Version == ""
}

// keepsWorkspace returns an error if the tree's go.work takes modules from elsewhere than its go.mod does, which is all
// that a copy goes by.
func (t tree) keepsWorkspace() error {
	if t.work == "" {
		return nil
	}
	mod, err := readMod(filepath.Join(t.root, "go.mod"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(t.work)
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork(t.work, text, nil)
	if err != nil {
		return fmt.Errorf("parsing %s: %w", t.work, err)
	}
	lost := func(module, place string) error {
		return &TreeError{
			fmt.Errorf(
				"%s takes %s from %s, its go.mod doesn't, and it can't be built in place",
				t.work,
				module,
				place,
			),
		}
	}
	for _, u := range work.Use {
		dir := u.Path
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(t.work), dir)
		}
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if errors.Is(err, fs.ErrNotExist) || dir == t.root {
			continue
		}
		if err != nil {
			return err
		}
		module := modfile.ModulePath(text)
		required := slices.ContainsFunc(mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == module })
		if required && !slices.ContainsFunc(mod.Replace, func(r *modfile.Replace) bool { return r.Old.Path == module && under(t.root, r.New.Path) == dir }) {
			return lost(module, u.Path)
		}
	}
	for _, r := range work.Replace {
		if !slices.ContainsFunc(mod.Replace, func(o *modfile.Replace) bool {
			return o.Old == r.Old &&
				(o.New == r.New || r.New.Version == "" && under(t.root, o.New.Path) == under(filepath.Dir(t.work), r.New.Path))
		}) {
			return lost(r.Old.Path, strings.TrimSpace(r.New.Path+" "+r.New.Version))
		}
	}
	return nil
}

// under returns a path that is relative to a directory, or absolute.
func under(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

package build

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/kube-relapse/relapse/harness/build/mutate"
)

// This file handles mutations of packages in a module that the source requires, such as Kubernetes' staging modules.
// A mutated copy of that module replaces it.

// standInDir is the directory below the generated module that holds the copies, each under its module's path.
const standInDir = "standin"

// partMutations separates the mutations of the source's own module from those of modules that the go.mod in root
// requires. required holds the latter by module path, each list in order. A package in none of these modules is left to
// the own module, whose search then reports that the package is missing.
func partMutations(
	src Source,
	root string,
) (own []mutate.Mutation, required map[string][]mutate.Mutation, err error) {
	mod, err := readMod(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, nil, err
	}
	required = map[string][]mutate.Mutation{}
	for _, m := range src.Mutations {
		s, err := m.Shape()
		if err != nil {
			return nil, nil, err
		}
		if owner := ownerOf(s.Scope().Package, src.Module, mod); owner != src.Module {
			required[owner] = append(required[owner], m)
		} else {
			own = append(own, m)
		}
	}
	return own, required, nil
}

// ownerOf returns the module that has a package: the one with the longest path that the package's path begins with. It
// returns own if there is none.
func ownerOf(pkg, own string, mod *modfile.File) string {
	has := func(module string) bool { return strings.HasPrefix(pkg+"/", module+"/") }
	owner := own
	for _, r := range mod.Require {
		if has(r.Mod.Path) && (!has(owner) || len(r.Mod.Path) > len(owner)) {
			owner = r.Mod.Path
		}
	}
	return owner
}

// PackageDir returns the folder of a package as a published version of a module has it: the module's own, or one of a
// module that it requires, in the version that its programs are built with. own reports whether that one is published from
// the same repository. The folder may not be there.
func (b *Builder) PackageDir(
	ctx context.Context,
	module, version, pkg string,
) (dir string, own bool, err error) {
	root, mod, published, err := b.builtWith(ctx, module, version)
	if err != nil {
		return "", false, err
	}
	owner := ownerOf(pkg, module, mod)
	own = owner == module && strings.HasPrefix(pkg+"/", module+"/") ||
		slices.Contains(published, owner)
	if !own {
		return "", false, nil
	}
	if owner != module {
		if root, err = b.locate(ctx, origin(mod, owner)); err != nil {
			return "", true, err
		}
	}
	return filepath.Join(
		root,
		filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(pkg, owner), "/")),
	), true, nil
}

// builtWith returns the folder of a release's module, the go.mod that its programs are built with, and the modules that
// are of its own repository.
func (b *Builder) builtWith(
	ctx context.Context,
	module, version string,
) (root string, mod *modfile.File, own []string, err error) {
	src := Source{Module: module, Version: version}
	if root, err = b.locate(ctx, src); err != nil {
		return "", nil, nil, err
	}
	text, own, _, err := armMod(src, root)
	if err != nil {
		return "", nil, nil, err
	}
	if mod, err = modfile.Parse("go.mod", text, nil); err != nil {
		return "", nil, nil, fmt.Errorf("parsing what %s@%s is built with: %w", module, version, err)
	}
	return root, mod, own, nil
}

// mutateRequired copies each of the required modules, in the version or from the directory that the go.mod in work
// names, and rewrites the copy. A mutation's range of versions is about the source's version, because the mutation's
// author knows that one. Each site's file begins with its module's path.
func (b *Builder) mutateRequired(ctx context.Context, src Source, work string,
	required map[string][]mutate.Mutation) ([]mutate.Site, []string, error) {
	if len(required) == 0 {
		return nil, nil, nil
	}
	mod, err := readMod(filepath.Join(work, "go.mod"))
	if err != nil {
		return nil, nil, err
	}
	var sites []mutate.Site
	var changes []string
	for _, module := range slices.Sorted(maps.Keys(required)) {
		from := origin(mod, module)
		root, err := b.locate(ctx, from)
		if err != nil {
			return nil, nil, err
		}
		rewritten, err := mutate.Rewrite(
			mutate.Module{Path: module, Version: src.Version, FS: os.DirFS(root)},
			required[module],
		)
		if err != nil {
			return nil, nil, err
		}
		to := filepath.Join(work, standInDir, filepath.FromSlash(module))
		if err := copyTree(ctx, root, to, from.Dir == ""); err != nil {
			return nil, nil, fmt.Errorf("copying the source of module %s: %w", module, err)
		}
		if err := rewritten.WriteTo(to); err != nil {
			return nil, nil, err
		}
		changes = append(changes,
			strings.TrimSpace(fmt.Sprintf("a mutated copy stands in for %s %s", module, from.Version)))
		for _, s := range rewritten.Sites {
			s.File = path.Join(module, s.File)
			sites = append(sites, s)
		}
	}
	return sites, changes, nil
}

// origin returns where a generated go.mod takes a module from: a directory or a version.
func origin(mod *modfile.File, module string) Source {
	from := Source{Module: module}
	for _, r := range mod.Require {
		if r.Mod.Path == module {
			from.Version = r.Mod.Version
		}
	}
	for _, r := range mod.Replace {
		switch {
		case r.Old.Path != module || r.Old.Version != "" && r.Old.Version != from.Version:
		case r.New.Version == "":
			return Source{Module: module, Dir: r.New.Path}
		default:
			return Source{Module: r.New.Path, Version: r.New.Version}
		}
	}
	return from
}

// standIn replaces modules by their copies in the generated go.mod. It runs after the graph was resolved and hashed, so
// that arms that differ only in their mutations have the same graph, byte for byte.
func standIn(work string, modules []string) error {
	if len(modules) == 0 {
		return nil
	}
	file := filepath.Join(work, "go.mod")
	mod, err := readMod(file)
	if err != nil {
		return err
	}
	for _, m := range modules {
		for _, r := range mod.Replace {
			if r.Old.Path == m {
				err = mod.DropReplace(m, r.Old.Version)
			}
		}
		if err == nil {
			err = mod.AddReplace(m, "", "./"+path.Join(standInDir, m), "")
		}
		if err != nil {
			return fmt.Errorf("putting the copy of %s in its place: %w", m, err)
		}
	}
	mod.Cleanup()
	text, err := mod.Format()
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing the generated go.mod with its copies: %w", err)
	}
	return nil
}

func readMod(file string) (*modfile.File, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading go.mod: %w", err)
	}
	mod, err := modfile.Parse(file, b, nil)
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", file, err)
	}
	return mod, nil
}

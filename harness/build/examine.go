package build

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/kube-relapse/relapse/harness/build/mutate"
)

// Mistake is what is wrong with a part of a source.
type Mistake struct {
	Part  string // one of the parts below
	Index int    // of the mutation or constant
	Err   error
}

// The parts of a source that can be wrong.
const (
	PartVersion  = "version" // the module at its version, or its directory
	PartPackage  = "package"
	PartReplace  = "replace"
	PartMutation = "mutations"
	PartConstant = "constants"
)

// Examine finds what would make a build fail before it compiles anything: a version or package that doesn't exist,
// mutations that don't hit as many sites as they should or that are of no package of the program, and constants that
// can't be read. It fetches modules that Go's module cache lacks. Only one Examine may run at a time.
func (b *Builder) Examine(ctx context.Context, src Source) (out []Mistake) {
	root, err := b.locate(ctx, src)
	if err != nil {
		return []Mistake{{Part: PartVersion, Err: err}}
	}
	mod := mutate.Module{Path: src.Module, Version: src.Version, FS: os.DirFS(root)}
	reached := map[string]bool{}
	for _, pkg := range src.Packages {
		err := isProgram(mod, pkg)
		if err == nil {
			err = b.reach(root, mod, pkg, reached)
		}
		if err != nil {
			out = append(out, Mistake{Part: PartPackage, Err: err})
		}
	}
	for _, module := range slices.Sorted(maps.Keys(src.Replace)) {
		if _, err := b.locate(ctx, Source{Module: module, Version: src.Replace[module]}); err != nil {
			out = append(out, Mistake{Part: PartReplace, Err: err})
		}
	}
	hit, wrong := b.examineMutations(ctx, src, root, mod, reached)
	out = append(out, wrong...)
	for i, ref := range src.Constants {
		_, err := ReadConstants(mod, hit, []ConstantRef{ref})
		if _, own := packageDir(mod.Path, ref.Package); err == nil && own && len(reached) > 0 && !reached[ref.Package] {
			err = fmt.Errorf("constant %s: %w", ref.Ident, unreached(ref.Package, src))
		}
		if err != nil {
			out = append(out, Mistake{Part: PartConstant, Index: i, Err: err})
		}
	}
	return out
}

// examineMutations applies the mutations in order, without writing anything. It returns those of the source's own module
// that hit their sites, and what is wrong with the others. reached has the program's packages of that module, or none if
// they aren't known.
func (b *Builder) examineMutations(
	ctx context.Context,
	src Source,
	root string,
	mod mutate.Module,
	reached map[string]bool,
) (own []mutate.Mutation, out []Mistake) {
	text, _, _, err := armMod(src, root)
	var file *modfile.File
	if err == nil {
		file, err = modfile.Parse("go.mod", text, nil)
	}
	if err != nil {
		return nil, []Mistake{{Part: PartVersion, Err: err}}
	}
	of := map[string][]mutate.Mutation{}
	modules := map[string]mutate.Module{src.Module: mod}
	for i, m := range src.Mutations {
		err := func() error {
			s, err := m.Shape()
			if err != nil {
				return err
			}
			pkg := s.Scope().Package
			owner := ownerOf(pkg, src.Module, file)
			if _, known := modules[owner]; !known {
				dir, err := b.locate(ctx, origin(file, owner))
				if err != nil {
					return err
				}
				modules[owner] = mutate.Module{
					Path:    owner,
					Version: src.Version,
					FS:      os.DirFS(dir),
				}
			}
			if _, err := mutate.Rewrite(modules[owner], append(slices.Clip(of[owner]), m)); err != nil {
				return err
			}
			if owner == src.Module && len(reached) > 0 && !reached[pkg] {
				return fmt.Errorf("mutation %s: %w", m.Kind, unreached(pkg, src))
			}
			of[owner] = append(of[owner], m)
			return nil
		}()
		if err != nil {
			out = append(out, Mistake{Part: PartMutation, Index: i, Err: err})
		}
	}
	return of[src.Module], out
}

// unreached says that a package is no part of what is built.
func unreached(pkg string, src Source) error {
	return fmt.Errorf(
		"package %s is no part of %s, which doesn't import it",
		pkg,
		strings.Join(src.Packages, ", "),
	)
}

// isProgram returns an error if a package is no program of the module. It names programs that are.
func isProgram(mod mutate.Module, pkg string) error {
	dir, ok := packageDir(mod.Path, pkg)
	if !ok {
		return fmt.Errorf("package %s is not in module %s", pkg, mod.Path)
	}
	name, err := packageName(mod.FS, dir)
	if err != nil {
		return err
	}
	if name == "main" {
		return nil
	}
	what := fmt.Sprintf("%s %s has no package %s", mod.Path, mod.Version, pkg)
	if name != "" {
		what = fmt.Sprintf(
			"%s %s has the package %s, which is no program",
			mod.Path,
			mod.Version,
			pkg,
		)
	}
	where := path.Dir(dir)
	if _, err := fs.Stat(mod.FS, where); err != nil {
		where = "cmd"
	}
	if programs := programsIn(mod.FS, where); len(programs) > 0 {
		return fmt.Errorf("%s (programs in %s: %s)", what, where, strings.Join(programs, ", "))
	}
	return errors.New(what)
}

// programsIn returns the names of the programs in the folders of a directory.
func programsIn(fsys fs.FS, dir string) (out []string) {
	list, _ := fs.ReadDir(fsys, dir)
	for _, e := range list {
		if name, err := packageName(fsys, path.Join(dir, e.Name())); err == nil && name == "main" {
			out = append(out, e.Name())
		}
	}
	return out
}

func packageDir(module, pkg string) (string, bool) {
	if pkg == module {
		return ".", true
	}
	return strings.CutPrefix(pkg, module+"/")
}

// packageName returns the name of the package in a directory, "" if there is none.
func packageName(fsys fs.FS, dir string) (string, error) {
	for _, name := range sources(fsys, dir) {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", name, err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.PackageClauseOnly)
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", name, err)
		}
		return f.Name.Name, nil
	}
	return "", nil
}

// sources returns the Go files of a directory that aren't tests, none if there is no such directory.
func sources(fsys fs.FS, dir string) (out []string) {
	list, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil
	}
	for _, e := range list {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			out = append(out, path.Join(dir, e.Name()))
		}
	}
	return out
}

// reach adds a package and everything of its module that it imports, whatever the system that it is built for. root is
// where the module is; what was reached from there once is remembered.
func (b *Builder) reach(
	root string,
	mod mutate.Module,
	pkg string,
	reached map[string]bool,
) error {
	key := root + " " + pkg
	known, ok := b.reached[key]
	if !ok {
		var err error
		if known, err = reachable(mod, pkg); err != nil {
			return err
		}
		if b.reached == nil {
			b.reached = map[string]map[string]bool{}
		}
		b.reached[key] = known
	}
	maps.Copy(reached, known)
	return nil
}

// reachable returns a package and everything of its module that it imports.
func reachable(mod mutate.Module, pkg string) (map[string]bool, error) {
	reached, todo := map[string]bool{}, []string{pkg}
	for len(todo) > 0 {
		pkg, todo = todo[0], todo[1:]
		dir, ok := packageDir(mod.Path, pkg)
		if !ok || reached[pkg] {
			continue
		}
		reached[pkg] = true
		for _, name := range sources(mod.FS, dir) {
			text, err := fs.ReadFile(mod.FS, name)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", name, err)
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
			if err != nil {
				continue // a file that no build reads may be anything
			}
			for _, i := range f.Imports {
				if imported, err := strconv.Unquote(i.Path.Value); err == nil {
					todo = append(todo, imported)
				}
			}
		}
	}
	return reached, nil
}

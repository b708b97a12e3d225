package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/build/mutate"
)

// ConstantRef names a Go constant of the subject, and gives it the name that the scenario uses.
type ConstantRef struct {
	Name    string `json:"name"`    // the scenario's name for it
	Package string `json:"package"` // import path inside the source's module
	Ident   string `json:"ident"`   // the Go constant, best unexported: only its own package is searched for uses
}

// Constant is the value of a Go constant in the arm's own, mutated source.
type Constant struct {
	Name     string        `json:"name"`
	Package  string        `json:"package"`
	Ident    string        `json:"ident"`
	Expr     string        `json:"expr"`     // as in the source: "time.Minute * 3"
	Int      int64         `json:"int"`      // nanoseconds if it is a duration
	Duration time.Duration `json:"duration"` // 0 if it isn't one
	File     string        `json:"file"`     // relative to the module's root
	Line     int           `json:"line"`
}

// Constants reads the source's constants without building anything. It fetches the module if the constants aren't in
// the cache and Go's module cache lacks the module.
func (b *Builder) Constants(ctx context.Context, src Source) (map[string]Constant, error) {
	if len(src.Constants) == 0 {
		return map[string]Constant{}, nil
	}
	if src.Dir != "" { // reading a tree is quicker than finding out whether it has changed
		out, err := b.constants(ctx, src)
		if err != nil {
			return nil, fmt.Errorf("reading the constants of %s: %w", src.Dir, err)
		}
		return out, nil
	}
	key, err := src.key(Toolchain{GOARCH: runtime.GOARCH}, src.Constants, "as used")
	if err != nil {
		return nil, err
	}
	dir, _, err := b.Cache.Do(ctx, "constants", key, func(ctx context.Context, dir string) error {
		out, err := b.constants(ctx, src)
		var unreadable *unreadableError
		if errors.As(err, &unreadable) {
			return os.WriteFile(
				filepath.Join(dir, unreadableFile),
				[]byte(unreadable.Error()),
				0o644,
			)
		}
		if err != nil {
			return err
		}
		return writeJSON(filepath.Join(dir, "constants.json"), out)
	})
	if why, none := os.ReadFile(filepath.Join(dir, unreadableFile)); err == nil && none == nil {
		err = errors.New(string(why))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the constants of %s@%s: %w", src.Module, src.Version, err)
	}
	var out map[string]Constant
	return out, readJSON(filepath.Join(dir, "constants.json"), &out)
}

// unreadableFile is the file of an entry that says why the constants can't be read. A version of a module never changes,
// so nobody has to fetch it again to find the same.
const unreadableFile = "unreadable"

// unreadableError says that a source's constants can't be read from it, whoever tries.
type unreadableError struct{ err error }

// Error returns the reason.
func (e *unreadableError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *unreadableError) Unwrap() error { return e.err }

func (b *Builder) constants(ctx context.Context, src Source) (map[string]Constant, error) {
	root, err := b.locate(ctx, src)
	if err != nil {
		return nil, err
	}
	mod := mutate.Module{Path: src.Module, Version: src.Version, FS: os.DirFS(root)}
	mutations, _, err := partMutations(src, root)
	if err != nil {
		return nil, err
	}
	out, err := ReadConstants(mod, mutations, src.Constants)
	if at := (*fs.PathError)(nil); errors.As(err, &at) && !errors.Is(err, fs.ErrNotExist) {
		return nil, err // this host failed, and the next try may not
	}
	if err != nil {
		return nil, &unreadableError{err}
	}
	return out, nil
}

// ReadConstants evaluates constants in a module's mutated source. It supports integer and float arithmetic, the units
// of package time, conversions, and constants of the same package. Any other expression is an error that shows the
// expression. It is also an error if the package uses the constant otherwise than declared; that error shows the place
// and the expression.
func ReadConstants(
	mod mutate.Module,
	mutations []mutate.Mutation,
	refs []ConstantRef,
) (map[string]Constant, error) {
	changed, err := mutate.Rewrite(mod, mutations)
	if err != nil {
		return nil, err
	}
	out := map[string]Constant{}
	packages := map[string]*constants{}
	for _, ref := range refs {
		p := packages[ref.Package]
		if p == nil {
			if p, err = parsePackage(mod, changed.Files, ref.Package); err != nil {
				return nil, err
			}
			packages[ref.Package] = p
		}
		c, err := p.read(ref)
		if err != nil {
			return nil, fmt.Errorf(
				"constant %s of %s@%s, package %s: %w",
				ref.Ident,
				mod.Path,
				mod.Version,
				ref.Package,
				err,
			)
		}
		out[ref.Name] = c
	}
	return out, nil
}

// constants holds the package-level constants of one package.
type constants struct {
	fset  *token.FileSet
	decls map[string]declaration
	other map[string]string // what a name is if it is no constant: "a variable"
	files []*ast.File
}

type declaration struct {
	typ, expr ast.Expr
	iota      int
	at        token.Position
	imports   map[string]string // of its file: name -> path
}

// value is an evaluated constant, with whether it is a time.Duration.
type value struct {
	constant.Value
	duration bool
}

func parsePackage(mod mutate.Module, changed map[string][]byte, pkg string) (*constants, error) {
	dir, ok := strings.CutPrefix(pkg, mod.Path+"/")
	if pkg == mod.Path {
		dir, ok = ".", true
	}
	if !ok {
		return nil, fmt.Errorf("package %s is not in module %s", pkg, mod.Path)
	}
	list, err := goFiles(mod, changed, dir)
	if err != nil {
		return nil, fmt.Errorf("looking for package %s in module %s: %w", pkg, mod.Path, err)
	}
	read := func(name string) ([]byte, error) {
		if src, ok := changed[name]; ok {
			return src, nil
		}
		return fs.ReadFile(mod.FS, name)
	}
	target := build.Default
	target.GOOS, target.GOARCH, target.CgoEnabled = "linux", runtime.GOARCH, false
	target.JoinPath = path.Join
	target.OpenFile = func(name string) (io.ReadCloser, error) {
		src, err := read(name)
		return io.NopCloser(bytes.NewReader(src)), err
	}
	p := &constants{
		fset:  token.NewFileSet(),
		decls: map[string]declaration{},
		other: map[string]string{},
	}
	for _, file := range list {
		name := path.Join(dir, file)
		if built, err := target.MatchFile(dir, file); err != nil {
			return nil, fmt.Errorf("reading the build constraints of %s: %w", name, err)
		} else if !built {
			continue
		}
		src, err := read(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		tree, err := parser.ParseFile(p.fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parsing %s: %w", name, err)
		}
		p.add(tree)
		p.files = append(p.files, tree)
	}
	return p, nil
}

// goFiles returns the names of a directory's Go files without tests, including files that a mutation adds.
func goFiles(mod mutate.Module, changed map[string][]byte, dir string) ([]string, error) {
	list, err := fs.ReadDir(mod.FS, dir)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, e := range list {
		names[e.Name()] = !e.IsDir()
	}
	for name := range changed {
		if path.Dir(name) == dir {
			names[path.Base(name)] = true
		}
	}
	maps.DeleteFunc(names, func(name string, isFile bool) bool {
		return !isFile || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go")
	})
	return slices.Sorted(maps.Keys(names)), nil
}

// add records a file's constants, each with its expression. A constant without one repeats the expression above it.
func (p *constants) add(tree *ast.File) {
	imports := map[string]string{}
	for _, i := range tree.Imports {
		file := strings.Trim(i.Path.Value, `"`)
		name := path.Base(file)
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = file
	}
	for _, d := range tree.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST && decl.Tok != token.VAR {
			continue
		}
		var last *ast.ValueSpec
		for i, s := range decl.Specs {
			spec := s.(*ast.ValueSpec)
			if len(spec.Values) > 0 || last == nil {
				last = spec
			}
			for j, id := range spec.Names {
				if decl.Tok == token.VAR {
					p.other[id.Name] = fmt.Sprintf(
						"a variable at %s",
						p.fset.PositionFor(id.Pos(), false),
					)
				} else if j < len(last.Values) {
					p.decls[id.Name] = declaration{typ: last.Type, expr: last.Values[j], iota: i,
						at: p.fset.PositionFor(id.Pos(), false), imports: imports}
				}
			}
		}
	}
}

func (p *constants) read(ref ConstantRef) (Constant, error) {
	v, err := p.named(ref.Ident, nil)
	if err != nil {
		return Constant{}, err
	}
	if err := p.asDeclared(ref.Ident); err != nil {
		return Constant{}, err
	}
	d := p.decls[ref.Ident]
	n, exact := constant.Int64Val(constant.ToInt(v.Value))
	if constant.ToInt(v.Value).Kind() != constant.Int || !exact {
		return Constant{}, fmt.Errorf(
			"%s is %s, not an integer of 64 bits",
			printed(d.expr),
			v.Value,
		)
	}
	c := Constant{
		Name:    ref.Name,
		Package: ref.Package,
		Ident:   ref.Ident,
		Expr:    printed(d.expr),
		Int:     n,
		File:    d.at.Filename,
		Line:    d.at.Line,
	}
	if v.duration {
		c.Duration = time.Duration(n)
	}
	return c, nil
}

// named evaluates a constant of the package. stack lists the constants whose evaluation led to it.
func (p *constants) named(name string, stack []string) (value, error) {
	d, ok := p.decls[name]
	switch {
	case !ok && p.other[name] != "":
		return value{}, fmt.Errorf("%s is %s", name, p.other[name])
	case !ok:
		return value{}, fmt.Errorf("no constant %s", name)
	case slices.Contains(stack, name):
		return value{}, fmt.Errorf("%s refers to itself", name)
	}
	v, err := p.eval(d, d.expr, append(slices.Clone(stack), name))
	if err != nil {
		return value{}, fmt.Errorf("%s = %s: %w", name, printed(d.expr), err)
	}
	if d.typ != nil {
		return p.convert(d, d.typ, v)
	}
	return v, nil
}

var errUnsupported = errors.New("not an expression that can be evaluated here")

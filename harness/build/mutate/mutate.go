// Package mutate rewrites a subject's source: it takes a fix out again, or changes a constant.
//
// A mutation finds a syntactic shape and replaces it; it is never a line diff. It states how many sites it must hit
// and in which versions it applies. Any other count is an error that names the files searched and what was found
// there, because a vulnerable arm that silently isn't vulnerable would make every verdict wrong.
//
// Everything outside the sites stays the same, byte for byte, except imports that are no longer used. Each shape has
// its own file and registers itself under kinds.Mutation.
package mutate

import (
	"encoding/json"
	"fmt"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// Mutation is one rewrite as data. It has the fields of a scenario's mutation, so that one converts to the other.
type Mutation struct {
	Kind     string          `json:"kind"`
	Sites    int             `json:"sites"`              // how many places it must change, at least 1
	Versions string          `json:"versions,omitempty"` // semver range of the arm's source in which it applies (">=1.14.0 <1.36.0"); empty is any
	Spec     json.RawMessage `json:"spec"`               // the fields of the Shape registered as Kind
}

// Shape is what a kind of mutation looks for, and what it puts in its place.
type Shape interface {
	// Validate reports what the spec lacks.
	Validate() error
	// Scope is where to look.
	Scope() Where
	// Declaration names what must be there for the shape to be looked for at all: "method (*GenericPLEG).Relist".
	Declaration() string
	// Want names one site: "select sending on eventChannel with default in (*GenericPLEG).Relist".
	Want() string
	// Label says in a sentence what the rewrite does to the subject.
	Label() string
	// Find searches one file.
	Find(f *File) Found
}

// Compressor is a Shape that only scales the subject's own numbers, which a verdict names as modelled.
type Compressor interface{ Compresses() }

// Importer is a Shape whose code needs packages: PATH, or NAME PATH, in each file that it changes.
type Importer interface{ AddImports() []string }

// Adder is a Shape that adds a file to its package instead of changing those that are there.
type Adder interface {
	// Added is the file's base name and its content.
	Added() (name string, content []byte)
}

// Where limits a search to one package of the module and, if File is set, to one file of it. Test files are never
// searched.
type Where struct {
	Package string `json:"package"`        // import path
	File    string `json:"file,omitempty"` // base name
}

// Scope implements Shape for the shapes that embed Where.
func (w Where) Scope() Where { return w }

// Found is what a shape saw in one file.
type Found struct {
	Declared bool     // the declaration is in this file
	Edits    []Edit   // one for each site
	Near     []string // what looks like a site and isn't, each with its line
}

// Edit replaces the source from Pos to End. New is inserted as it is: it must be formatted, its first line without
// indentation.
type Edit struct {
	Pos, End token.Pos
	New      string
}

// Site is one place that was changed, for the report. Before and After are the source text.
type Site struct {
	Kind   string `json:"kind"`
	File   string `json:"file"` // relative to the module's root, with slashes
	Line   int    `json:"line"` // in the source as it was before this mutation
	Before string `json:"before"`
	After  string `json:"after"`
}

// Module is the source to rewrite.
type Module struct {
	Path    string // module path
	Version string // of the arm's source, with its v; a module that the source requires goes by the source's version, too
	FS      fs.FS  // the module's root
}

// Result is what mutations made of a module: the changed files by name, relative to its root, and each site.
type Result struct {
	Files map[string][]byte
	Sites []Site
}

// Shape decodes and validates the mutation. Unknown fields, an unknown kind, a bad range and fewer than one site are
// errors.
func (m Mutation) Shape() (Shape, error) {
	s, err := kinds.Make[Shape](kinds.Mutation, m.Kind)
	if err != nil {
		return nil, err
	}
	if err := kinds.DecodeStrictly(m.Spec, s); err != nil {
		return nil, fmt.Errorf("mutation %s: decoding spec %s: %w", m.Kind, m.Spec, err)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("mutation %s: %w", m.Kind, err)
	}
	if s.Scope().Package == "" {
		return nil, fmt.Errorf("mutation %s: no package", m.Kind)
	}
	if m.Sites < 1 {
		return nil, fmt.Errorf("mutation %s: sites is %d: a mutation must change at least one place", m.Kind, m.Sites)
	}
	if _, err := m.inRange("v0.0.0"); err != nil {
		return nil, err
	}
	return s, nil
}

// Label says what the mutation does to the subject, or what is wrong with it.
func (m Mutation) Label() string {
	s, err := m.Shape()
	if err != nil {
		return err.Error()
	}
	return s.Label()
}

// Compresses reports whether the mutation only scales the subject's own numbers; its Label then belongs to what is
// modelled.
func (m Mutation) Compresses() bool {
	s, err := m.Shape()
	_, scales := s.(Compressor)
	return err == nil && scales
}

// inRange reports whether a version is one that the mutation applies to.
func (m Mutation) inRange(version string) (bool, error) {
	if m.Versions == "" {
		return true, nil
	}
	in, err := semver.ParseRange(m.Versions)
	if err != nil {
		return false, fmt.Errorf("mutation %s: parsing version range %q: %w", m.Kind, m.Versions, err)
	}
	v, err := semver.ParseTolerant(version)
	if err != nil {
		return false, fmt.Errorf("mutation %s: parsing version %q: %w", m.Kind, version, err)
	}
	return in(v), nil
}

// Rewrite applies mutations in order, each to what the ones before it left. It reads the module and writes nothing.
func Rewrite(mod Module, mutations []Mutation) (Result, error) {
	r := Result{Files: map[string][]byte{}}
	for _, m := range mutations {
		if err := r.apply(mod, m); err != nil {
			return Result{}, err
		}
	}
	return r, nil
}

func (r *Result) apply(mod Module, m Mutation) error {
	s, err := m.Shape()
	if err != nil {
		return err
	}
	applies, err := m.inRange(mod.Version)
	if err != nil {
		return err
	}
	files, err := r.open(mod, s.Scope())
	if err != nil {
		return fmt.Errorf("mutation %s: %s: %w", m.Kind, mod.Version, err)
	}
	found := make([]Found, len(files))
	total := 0
	for i, f := range files {
		found[i] = s.Find(f)
		total += len(found[i].Edits)
	}
	if adder, ok := s.(Adder); ok && applies {
		return r.add(mod, m, s, adder)
	}
	if total != m.Sites || !applies {
		return mismatch(m, s, mod, files, found)
	}
	for i, f := range files {
		if len(found[i].Edits) == 0 {
			continue
		}
		for _, e := range found[i].Edits {
			r.Sites = append(r.Sites,
				Site{Kind: m.Kind, File: f.Name, Line: f.Line(e.Pos), Before: f.text(e.Pos, e.End), After: e.New})
		}
		src, err := f.rewritten(found[i].Edits)
		if importer, ok := s.(Importer); ok && err == nil {
			src, err = withImports(f.Name, src, importer.AddImports())
		}
		if err != nil {
			return fmt.Errorf("mutation %s: %s: %w", m.Kind, mod.Version, err)
		}
		r.Files[f.Name] = src
	}
	return nil
}

// add adds a file where there is none.
func (r *Result) add(mod Module, m Mutation, s Shape, adder Adder) error {
	dir, _ := packageDir(mod.Path, s.Scope().Package) // it was found before
	base, content := adder.Added()
	name := path.Join(dir, base)
	_, err := fs.Stat(mod.FS, name)
	if _, added := r.Files[name]; added || err == nil {
		return fmt.Errorf("mutation %s: %s: %s is there already: want another name for the file", m.Kind, mod.Version,
			name)
	}
	if m.Sites != 1 {
		return fmt.Errorf("mutation %s: sites is %d: want 1, the file", m.Kind, m.Sites)
	}
	r.Files[name] = content
	r.Sites = append(r.Sites, Site{Kind: m.Kind, File: name, Line: 1, After: string(content)})
	return nil
}

// open parses the files of a scope, those changed before in their changed form.
func (r *Result) open(mod Module, w Where) ([]*File, error) {
	dir, ok := packageDir(mod.Path, w.Package)
	if !ok {
		return nil, fmt.Errorf("package %s is not in module %s", w.Package, mod.Path)
	}
	list, err := fs.ReadDir(mod.FS, dir)
	if err != nil {
		return nil, fmt.Errorf("looking for package %s in module %s: %w", w.Package, mod.Path, err)
	}
	var files []*File
	for _, e := range list {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") ||
			w.File != "" && e.Name() != w.File {
			continue
		}
		name := path.Join(dir, e.Name())
		src, changed := r.Files[name]
		if !changed {
			if src, err = fs.ReadFile(mod.FS, name); err != nil {
				return nil, fmt.Errorf("reading %s: %w", name, err)
			}
		}
		f, err := parse(name, src)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no Go file to search in %s", path.Join(dir, w.File))
	}
	return files, nil
}

// packageDir is the directory of an import path inside a module.
func packageDir(module, pkg string) (string, bool) {
	if pkg == module {
		return ".", true
	}
	return strings.CutPrefix(pkg, module+"/")
}

// mismatch says what was searched, what was wanted and what was there instead.
func mismatch(m Mutation, s Shape, mod Module, files []*File, found []Found) error {
	var where, all, near []string
	declared, total := false, 0
	for i, f := range files {
		all = append(all, f.Name)
		declared = declared || found[i].Declared
		total += len(found[i].Edits)
		if found[i].Declared {
			where = append(where, f.Name)
		}
		for _, e := range found[i].Edits {
			near = append(near, fmt.Sprintf("a site at line %d", f.Line(e.Pos)))
		}
		near = append(near, found[i].Near...)
	}
	if !declared {
		where, near = all, append(near, "no "+s.Declaration())
	}
	if len(near) == 0 {
		near = append(near, s.Declaration()+" without anything like it")
	}
	outside := ""
	if ok, err := m.inRange(mod.Version); err == nil && !ok {
		outside = fmt.Sprintf("outside its version range %q: ", m.Versions)
	}
	return fmt.Errorf("mutation %s: %s: %s%s: want %d %s, found %d (found: %s)", m.Kind, mod.Version, outside,
		strings.Join(where, ", "), m.Sites, s.Want(), total, strings.Join(near, "; "))
}

// WriteTo writes the changed files over those in dir, a copy of the module's root.
func (r Result) WriteTo(dir string) error {
	for name, src := range r.Files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.WriteFile(file, src, 0o644); err != nil {
			return fmt.Errorf("writing mutated %s: %w", name, err)
		}
	}
	return nil
}

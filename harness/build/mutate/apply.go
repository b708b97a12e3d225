package mutate

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Rewrite applies mutations in order, each to the result of the ones before it. It reads the module and writes nothing.
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

// add adds a file, and fails if the file already exists.
func (r *Result) add(mod Module, m Mutation, s Shape, adder Adder) error {
	dir, _ := packageDir(mod.Path, s.Scope().Package) // Shape.Scope was resolved before
	base, content := adder.Added()
	name := path.Join(dir, base)
	_, err := fs.Stat(mod.FS, name)
	if _, added := r.Files[name]; added || err == nil {
		return fmt.Errorf(
			"mutation %s: %s: %s is there already: want another name for the file",
			m.Kind,
			mod.Version,
			name,
		)
	}
	if m.Sites != 1 {
		return fmt.Errorf("mutation %s: sites is %d: want 1, the file", m.Kind, m.Sites)
	}
	r.Files[name] = content
	r.Sites = append(r.Sites, Site{Kind: m.Kind, File: name, Line: 1, After: string(content)})
	return nil
}

// open parses the files of a scope. Files that were changed before are parsed in their changed form.
func (r *Result) open(mod Module, w Where) ([]*File, error) {
	dir, ok := packageDir(mod.Path, w.Package)
	if !ok {
		return nil, fmt.Errorf("package %s is not in module %s", w.Package, mod.Path)
	}
	list, err := fs.ReadDir(mod.FS, dir)
	if err != nil {
		return nil, fmt.Errorf(
			"looking for package %s in module %s: %w",
			w.Package,
			mod.Path,
			err,
		)
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

// packageDir returns the directory of an import path inside a module.
func packageDir(module, pkg string) (string, bool) {
	if pkg == module {
		return ".", true
	}
	return strings.CutPrefix(pkg, module+"/")
}

// mismatch returns an error that names the files searched, what was wanted and what was there instead.
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

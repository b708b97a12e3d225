// Package mutate rewrites a subject's source: it removes a fix, or changes a constant.
//
// A mutation finds a syntactic shape and replaces it; it is never a line diff. It states how many sites it must change
// and in which versions it applies. Any other number of sites is an error that names the files searched and what was
// found there, because a vulnerable arm that silently isn't vulnerable would make every verdict wrong.
//
// Everything outside the sites stays the same, byte for byte, except imports that are no longer used. Each shape has
// its own file and registers itself under kinds.Mutation.
package mutate

import (
	"encoding/json"
	"fmt"
	"go/token"
	"io/fs"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// Mutation is one rewrite as data. It has the fields of a scenario's mutation, so that either converts to the other.
type Mutation struct {
	Kind     string          `json:"kind"`
	Sites    int             `json:"sites"`              // how many places it must change, at least 1
	Versions string          `json:"versions,omitempty"` // semver range of the source (">=1.14.0 <1.36.0"); empty: any
	Spec     json.RawMessage `json:"spec"`               // the fields of the Shape registered as Kind
}

// Shape is a kind of mutation: the code that it looks for, and the replacement.
type Shape interface {
	// Validate reports what is wrong with the spec.
	Validate() error
	// Scope returns where to look.
	Scope() Where
	// Declaration names the declaration without which the shape is not looked for: "method (*GenericPLEG).Relist".
	Declaration() string
	// Want names one site: "select sending on eventChannel with default in (*GenericPLEG).Relist".
	Want() string
	// Label describes in a sentence what the rewrite does to the subject.
	Label() string
	// Find searches one file.
	Find(f *File) Found
}

// Compressor is a Shape that only scales the subject's own numbers. A verdict names it as modelled.
type Compressor interface{ Compresses() }

// Importer is a Shape whose code needs imports in each file that it changes. An import is PATH, or NAME PATH.
type Importer interface{ AddImports() []string }

// Adder is a Shape that adds a file to its package instead of changing existing ones.
type Adder interface {
	// Added returns the file's base name and its content.
	Added() (name string, content []byte)
}

// Where limits a search to one package of the module and, if File is set, to one of its files. Test files are never
// searched.
type Where struct {
	Package string `json:"package"`        // import path
	File    string `json:"file,omitempty"` // base name
}

// Scope implements Shape for the shapes that embed Where.
func (w Where) Scope() Where { return w }

// Found is what a shape found in one file.
type Found struct {
	Declared bool     // the declaration is in this file
	Edits    []Edit   // one for each site
	Near     []string // near misses, which look like a site and aren't, each with its line
}

// Edit replaces the source from Pos to End by New. New must be formatted, without indentation on its first line.
type Edit struct {
	Pos, End token.Pos
	New      string
}

// Site is one changed place, for the report. Before and After are the source text.
type Site struct {
	Kind   string `json:"kind"`
	File   string `json:"file"` // relative to the module's root, with slashes
	Line   int    `json:"line"` // in the source before this mutation
	Before string `json:"before"`
	After  string `json:"after"`
}

// Diff returns the change as text, with - before each line of the source and + before each line that is there instead.
func (s Site) Diff() string {
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s:%d\n+++ %s, by %s\n", s.File, s.Line, s.File, s.Kind)
	for _, part := range []struct{ mark, text string }{{"-", s.Before}, {"+", s.After}} {
		for _, line := range dedented(part.text) {
			out.WriteString(strings.TrimRight(part.mark+line, " \t") + "\n")
		}
	}
	return out.String()
}

// dedented returns the lines of a text that begins after its first line's indentation, without the indentation that
// all others have in common.
func dedented(text string) []string {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	common := -1
	for _, l := range lines[1:] {
		if in := len(l) - len(strings.TrimLeft(l, "\t")); l != "" && (common < 0 || in < common) {
			common = in
		}
	}
	for i, l := range lines {
		if i > 0 && l != "" {
			lines[i] = l[common:]
		}
	}
	return lines
}

// Module is the source to rewrite.
type Module struct {
	Path    string // module path
	Version string // the source's version, with its v; also for a module that the source requires
	FS      fs.FS  // the module's root
}

// Result is a module after its mutations: the changed files, by their names relative to its root, and all sites.
type Result struct {
	Files map[string][]byte
	Sites []Site
}

// Shape decodes and validates the mutation. Unknown fields, an unknown kind, an invalid range and fewer than one site
// are errors.
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
		return nil, fmt.Errorf(
			"mutation %s: sites is %d: a mutation must change at least one place",
			m.Kind,
			m.Sites,
		)
	}
	if _, err := m.inRange("v0.0.0"); err != nil {
		return nil, err
	}
	return s, nil
}

// Label describes what the mutation does to the subject, or what is wrong with the mutation.
func (m Mutation) Label() string {
	s, err := m.Shape()
	if err != nil {
		return err.Error()
	}
	return s.Label()
}

// Compresses reports whether the mutation only scales the subject's own numbers. A verdict then names its Label as
// modelled.
func (m Mutation) Compresses() bool {
	s, err := m.Shape()
	_, scales := s.(Compressor)
	return err == nil && scales
}

// inRange reports whether the mutation applies to a version.
func (m Mutation) inRange(version string) (bool, error) {
	if m.Versions == "" {
		return true, nil
	}
	in, err := semver.ParseRange(m.Versions)
	if err != nil {
		return false, fmt.Errorf(
			"mutation %s: parsing version range %q: %w",
			m.Kind,
			m.Versions,
			err,
		)
	}
	v, err := semver.ParseTolerant(version)
	if err != nil {
		return false, fmt.Errorf("mutation %s: parsing version %q: %w", m.Kind, version, err)
	}
	return in(v), nil
}

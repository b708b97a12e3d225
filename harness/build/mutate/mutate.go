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

package scenario

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Field is a field that a scenario's file, or a candidate's, may have.
type Field struct {
	Path     string // spec.pairs[].arms[].source; [] stands for any member of a list
	In       string // scenario or candidate
	Required bool
	Schema   *jsonschema.Schema // without references, and with closed sets
	Below    []Field            // of a field that FindFields found: the fields below it, to a depth of two

	steps []step
}

// step is one name of a field's path. many says that a member's name or key may follow it.
type step struct {
	name string
	many bool
}

// Fields returns every field of a scenario's file, and then every field of a candidate's. The spec of a kind has fields
// of its own; see SpecWithChoices. Of a group of checks, only the first level is listed.
func Fields() ([]Field, error) {
	root, err := Schema()
	if err != nil {
		return nil, err
	}
	if err := AddChoices(root); err != nil {
		return nil, err
	}
	LeaveOut(root)
	known, err := KnownSchema()
	if err != nil {
		return nil, err
	}
	var out []Field
	for _, f := range []struct {
		in string
		s  *jsonschema.Schema
	}{{"scenario", root}, {"candidate", known}} {
		w := walker{in: f.in, defs: f.s.Defs}
		w.walk(f.s, nil)
		out = append(out, w.out...)
	}
	return out, nil
}

// LeaveOut has a scenario's schema let a file leave out what is derived.
func LeaveOut(root *jsonschema.Schema) {
	spec := root.Properties["spec"]
	Optional(spec, "collectors", "version", "placement", "phases")
	Optional(spec.Properties["parameters"].Items, "type")
	spec.Properties["phases"].Required = nil
}

// Optional lets an object go without fields.
func Optional(s *jsonschema.Schema, names ...string) {
	s.Required = slices.DeleteFunc(
		slices.Clone(s.Required),
		func(name string) bool { return slices.Contains(names, name) },
	)
}

// walker lists the fields of one schema.
type walker struct {
	in   string
	defs map[string]*jsonschema.Schema
	out  []Field
}

// walk adds the properties of s, which is at path, and what is below them.
func (w *walker) walk(s *jsonschema.Schema, path []step) {
	for _, name := range propertyNames(s) {
		p := w.resolved(s.Properties[name])
		at := append(slices.Clip(path), step{name, p.Items != nil || keyed(p)})
		w.out = append(
			w.out,
			Field{Path: written(at), In: w.in, Required: slices.Contains(s.Required, name),
				Schema: p, steps: at},
		)
		below := p
		if p.Items != nil {
			below = p.Items
		}
		if name != "anyOf" { // checks within checks have the same fields again
			w.walk(below, at)
		}
	}
}

// resolved returns s, or what it refers to, with its items resolved in the same way.
func (w *walker) resolved(s *jsonschema.Schema) *jsonschema.Schema {
	if def, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		s = w.defs[def]
	}
	if s.Items != nil && s.Items.Ref != "" {
		copied := *s
		copied.Items = w.resolved(s.Items)
		return &copied
	}
	return s
}

// propertyNames returns the names of an object's properties, in the order of the struct where it is known.
func propertyNames(s *jsonschema.Schema) []string {
	names := slices.Clone(s.PropertyOrder)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// keyed reports whether s is a mapping whose keys the file chooses.
func keyed(s *jsonschema.Schema) bool {
	return s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil
}

func written(path []step) string {
	var b strings.Builder
	for i, s := range path {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.name)
		if s.many && i < len(path)-1 {
			b.WriteString("[]")
		}
	}
	return b.String()
}

// brackets matches what follows the name of a list or mapping in brackets.
var brackets = regexp.MustCompile(`\[[^\]]*\]`)

// FindFields returns the fields that a path means. The path may be a whole one as a complaint names it
// (spec.pairs[0].arms[1].source) or as a setting names it (pairs.modern.arms.fixed.source), or the end of one (source,
// arms.source). If it is a whole path, ends are left out of the result, and names of members are only taken for such if
// they are no fields.
func FindFields(path string) ([]Field, error) {
	all, err := Fields()
	if err != nil {
		return nil, err
	}
	asked := strings.Split(brackets.ReplaceAllString(path, ""), ".")
	if len(asked) > 1 && asked[0] == "spec" {
		asked = asked[1:]
	}
	for _, way := range []struct{ end, members bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		var out []Field
		for _, f := range all {
			steps := f.steps
			if len(steps) > 1 && steps[0].name == "spec" {
				steps = steps[1:]
			}
			for i := range steps {
				if (i > 0) == way.end && leads(steps[i:], asked, way.members) {
					out = append(out, f.with(all))
				}
			}
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	return nil, nil
}

// with returns f with the fields below it, to a depth of two.
func (f Field) with(all []Field) Field {
	for _, g := range all {
		if n := len(f.steps); g.In == f.In && len(g.steps) > n && len(g.steps) <= n+2 && slices.Equal(g.steps[:n], f.steps) {
			f.Below = append(f.Below, g)
		}
	}
	return f
}

// leads reports whether asked leads through all steps. With members it may name a member after a list or a mapping.
func leads(steps []step, asked []string, members bool) bool {
	if len(steps) == 0 || len(asked) == 0 {
		return len(steps) == 0 && len(asked) == 0
	}
	if steps[0].name != asked[0] {
		return false
	}
	return leads(steps[1:], asked[1:], members) ||
		members && steps[0].many && len(asked) > 1 && leads(steps[1:], asked[2:], members)
}

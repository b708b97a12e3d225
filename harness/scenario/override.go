package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Override returns a copy of s with settings applied. A setting's name is a parameter of s, or a path below spec in
// which list members go by their names (faults.slow-runtime.spec.latency, phases.recovery.deadline). The value of a
// path is a YAML scalar or flow value; null removes the field. The settings of a layer replace what earlier layers set
// at their paths or below. The result is validated like a file; mistakes are returned as Violations without lines.
func Override(s *Scenario, layers ...map[string]string) (*Scenario, error) {
	tree, err := s.source()
	if err != nil {
		return nil, err
	}
	if s.Origin != nil {
		layers = slices.Concat(s.Origin.settings, layers)
	}
	d := &document{file: s.Metadata.Name + " with settings", value: tree, settings: true}
	params, given := d.declared(), map[string]string{}
	var errs []error
	for _, layer := range layers {
		for _, name := range slices.Sorted(maps.Keys(layer)) { // a path comes before the paths below it
			if err := apply(tree, params, given, name, layer[name]); err != nil {
				errs = append(errs, fmt.Errorf("setting %s: %w", name, err))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out, err := d.scenario("", given)
	if err != nil {
		return nil, err
	}
	if s.Origin == nil {
		out.Origin = nil
		return out, nil
	}
	out.Origin.File, out.Origin.Digest = s.Origin.File, s.Origin.Digest
	out.Origin.text, out.Origin.beside, out.Origin.settings = s.Origin.text, s.Origin.beside, layers
	out.Origin.surveyed = s.Origin.surveyed
	return out, nil
}

// source returns the values that s was made from, without settings. For a scenario made in memory these values are the
// scenario itself.
func (s *Scenario) source() (any, error) {
	encoded, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding scenario %s: %w", s.Metadata.Name, err)
	}
	if s.Origin == nil || s.Origin.text == "" {
		return jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	}
	// Starting from the text would undo the change in memory. Starting from the result would leave parameters without
	// effect.
	if !bytes.Equal(encoded, s.Origin.encoded) {
		return nil, fmt.Errorf(
			"scenario %s was changed in memory since it was read from %s: it takes no settings",
			s.Metadata.Name,
			s.Origin.File,
		)
	}
	d := read(s.Origin.File, "scenario", []byte(s.Origin.text))
	d.beside = s.Origin.beside
	d.expand()
	return d.value, nil
}

// apply applies one setting. A parameter's value goes into given, anything else into the tree.
func apply(tree any, params []Parameter, given map[string]string, name, text string) error {
	if i := slices.IndexFunc(params, func(p Parameter) bool { return p.Name == name }); i >= 0 {
		if _, err := params[i].value(text); err != nil {
			return err
		}
		given[name] = text
		return nil
	}
	path := strings.Split(name, ".")
	spec := lookup(tree, []string{"spec"})
	known, err := specFields()
	if err != nil {
		return err
	}
	if !slices.Contains(known, path[0]) {
		return unknownParameter(name, params, known)
	}
	v, err := flowValue(text)
	if err != nil {
		return err
	}
	return set(spec, path, v)
}

// specFields returns the names of the fields that a spec may have, sorted.
func specFields() ([]string, error) {
	v, err := compiled()
	if err != nil {
		return nil, err
	}
	return fields(pointer(v.schema, "/properties/spec")), nil
}

func flowValue(text string) (v any, err error) {
	d := read("value", "value", []byte(text))
	if len(d.found) > 0 {
		return nil, fmt.Errorf("the value %q %s", text, d.found[0].Message)
	}
	return d.value, nil
}

// set puts v at path below tree. Every step but the last must exist; the schema decides whether the last may.
func set(tree any, path []string, v any) error {
	for i, step := range path {
		last := i == len(path)-1
		switch t := tree.(type) {
		case map[string]any:
			if last && v == nil {
				delete(t, step)
				return nil
			}
			if last {
				t[step] = v
				return nil
			}
			next, ok := t[step]
			if !ok && step == "spec" {
				next = map[string]any{}
				t[step] = next
			} else if !ok {
				return fmt.Errorf(
					"there is no %q %s",
					step,
					oneOf(step, slices.Sorted(maps.Keys(t))),
				)
			}
			tree = next
		case []any:
			j, names := member(t, step)
			if j < 0 {
				return fmt.Errorf("nothing there is called %q %s", step, oneOf(step, names))
			}
			if last {
				t[j] = v
				return nil
			}
			tree = t[j]
		default:
			return fmt.Errorf(
				"%s is %s, which has nothing under it",
				strings.Join(path[:i], "."),
				show(tree),
			)
		}
	}
	return nil
}

// member finds a list element by its name, or by its index if it has none. So no element goes by two names, of which
// one setting could undo another's. If there is none, member returns -1 and the names of all elements.
func member(list []any, step string) (int, []string) {
	var names []string
	for i, e := range list {
		name, ok := lookup(e, []string{"name"}).(string)
		if !ok { // a pasted manifest
			name, _ = lookup(e, []string{"metadata", "name"}).(string)
		}
		if name == "" {
			name = strconv.Itoa(i)
		}
		if name == step {
			return i, nil
		}
		names = append(names, name)
	}
	return -1, names
}

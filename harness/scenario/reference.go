package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// substitution replaces references by values. It tracks positions, because leaving out list members moves later ones.
type substitution struct {
	from   *document
	params map[string]Parameter
	values map[string]string
	used   map[string]bool

	placed, keyed map[string]position
	lost          [][]string
	moved         map[string][]string
	derived       map[string]bool
}

// substitute replaces the references in spec by their values and returns the names that were used. A reference to an
// unknown parameter is a violation. A reference to an invalid parameter is dropped silently, because the parameter
// itself is already reported.
func (d *document) substitute(ps []Parameter, values map[string]string) map[string]bool {
	s := &substitution{
		from: d, params: map[string]Parameter{}, values: values, used: map[string]bool{},
		placed: map[string]position{}, keyed: map[string]position{}, moved: map[string][]string{},
		derived: map[string]bool{},
	}
	for _, p := range ps {
		s.params[p.Name] = p
	}
	d.value, _ = s.walk(d.value, nil, nil)
	d.values, d.keys, d.lost, d.moved, d.derived = s.placed, s.keyed, s.lost, s.moved, s.derived
	return s.used
}

// walk copies v from the path old to path. It returns false if v is left out, because it has no value or nothing
// remains in it.
func (s *substitution) walk(v any, old, path []string) (any, bool) {
	if text, ok := v.(string); ok && len(path) > 1 && path[0] == "spec" && path[1] != "parameters" {
		replaced, keep := s.text(text, old, path)
		if !keep {
			return nil, false
		}
		v = replaced
	}
	if at, ok := s.from.values[key(old)]; ok {
		s.placed[key(path)] = at
	}
	if at, ok := s.from.keys[key(old)]; ok {
		s.keyed[key(path)] = at
	}
	if s.from.derived[key(old)] {
		s.derived[key(path)] = true
	}
	if !slices.Equal(old, path) {
		s.moved[key(path)] = old
	}
	if slices.ContainsFunc(s.from.lost, func(l []string) bool { return slices.Equal(l, old) }) {
		s.lost = append(s.lost, path)
	}
	switch t := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range t {
			if w, keep := s.walk(member, append(slices.Clip(old), name), append(slices.Clip(path), name)); keep {
				out[name] = w
			}
		}
		return out, len(out) > 0 || len(t) == 0
	case []any:
		out := []any{}
		for i, member := range t {
			if w, keep := s.walk(member, append(slices.Clip(old), strconv.Itoa(i)),
				append(slices.Clip(path), strconv.Itoa(len(out)))); keep {
				out = append(out, w)
			}
		}
		return out, len(out) > 0 || len(t) == 0
	}
	return v, true
}

// text returns a string with its references replaced. A string that is exactly one reference becomes the typed value.
// False means that the parameter has no value. What the item's kind replaces itself stays as it is.
func (s *substitution) text(in string, old, path []string) (any, bool) {
	own := s.placeholders(old)
	if m := kinds.Placeholder.FindStringSubmatch(in); m != nil && m[0] == in && !strings.HasPrefix(in, "$$") &&
		!slices.Contains(own, m[1]) {
		v, err := s.value(m[1], old, own)
		if err != nil {
			s.lost = append(s.lost, path)
			return nil, true
		}
		return v, v != nil
	}
	failed := false
	out := kinds.Placeholder.ReplaceAllStringFunc(in, func(match string) string {
		name := kinds.Placeholder.FindStringSubmatch(match)[1]
		switch escaped := strings.HasPrefix(match, "$$"); {
		case slices.Contains(own, name):
			if _, taken := s.params[name]; taken && !escaped {
				s.from.add(
					s.from.positionOfComplaint(old, complaint{}),
					s.from.written(old),
					"$(%s) stands for what the "+
						"kind replaces here, and for a parameter (want another name for the parameter)",
					name,
				)
				failed = true
			}
			return match
		case escaped:
			return match[1:]
		}
		if _, err := s.value(name, old, own); err != nil {
			failed = true
		}
		return s.values[name]
	})
	if failed {
		s.lost = append(s.lost, path)
		return nil, true
	}
	return out, true
}

// placeholders returns the names that the kind of a load or fault replaces itself at a path.
func (s *substitution) placeholders(path []string) []string {
	const item = 3 // steps to an item: spec, loads, 0
	if len(path) <= item+1 || path[item] != "spec" {
		return nil
	}
	category := map[string]string{"loads": kinds.Load, "faults": kinds.Fault}[path[1]]
	kind, _ := lookup(s.from.value, append(slices.Clone(path[:item]), "kind")).(string)
	e, ok := kinds.Lookup(category, kind)
	if !ok {
		return nil
	}
	return e.Placeholders(path[item+1:])
}

// value returns a parameter's typed value. An error needs no further report: it is already a violation, here or at the
// parameter. It names the parameters, and own, the placeholders that stand beside them.
func (s *substitution) value(name string, at, own []string) (any, error) {
	p, ok := s.params[name]
	if !ok {
		known := slices.Clone(own)
		for n := range s.params {
			known = append(known, n)
		}
		slices.Sort(known)
		err := fmt.Errorf("$(%s) names no parameter %s", name, oneOf(name, known))
		s.from.add(
			s.from.positionOfComplaint(at, complaint{}),
			s.from.written(at),
			"%s; $$(%s) is the text itself",
			err,
			name,
		)
		return nil, err
	}
	s.used[name] = true
	if p.Type == "" {
		return nil, fmt.Errorf("%s is not declared well", name)
	}
	return p.value(s.values[name])
}

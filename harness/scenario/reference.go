package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// reference matches $(name), and $$(name), which stands for the literal text $(name).
var reference = regexp.MustCompile(`\$?\$\(([^()]*)\)`)

// substitution replaces references by values. It tracks positions, because leaving out list members moves later ones.
type substitution struct {
	from   *document
	params map[string]Parameter
	values map[string]string
	used   map[string]bool

	placed, keyed map[string]position
	lost          [][]string
	moved         map[string][]string
}

// substitute replaces the references in spec by their values and returns the names that were used. A reference to an
// unknown parameter is a violation. A reference to an invalid parameter is dropped silently, because the parameter
// itself is already reported.
func (d *document) substitute(ps []Parameter, values map[string]string) map[string]bool {
	s := &substitution{
		from: d, params: map[string]Parameter{}, values: values, used: map[string]bool{},
		placed: map[string]position{}, keyed: map[string]position{}, moved: map[string][]string{},
	}
	for _, p := range ps {
		s.params[p.Name] = p
	}
	d.value, _ = s.walk(d.value, nil, nil)
	d.values, d.keys, d.lost, d.moved = s.placed, s.keyed, s.lost, s.moved
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
// False means that the parameter has no value.
func (s *substitution) text(in string, old, path []string) (any, bool) {
	if m := reference.FindStringSubmatch(in); m != nil && m[0] == in && !strings.HasPrefix(in, "$$") {
		v, err := s.value(m[1], old)
		if err != nil {
			s.lost = append(s.lost, path)
			return nil, true
		}
		return v, v != nil
	}
	failed := false
	out := reference.ReplaceAllStringFunc(in, func(match string) string {
		if strings.HasPrefix(match, "$$") {
			return match[1:]
		}
		name := match[2 : len(match)-1]
		if _, err := s.value(name, old); err != nil {
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

// value returns a parameter's typed value. An error needs no further report: it is already a violation, here or at the
// parameter.
func (s *substitution) value(name string, at []string) (any, error) {
	p, ok := s.params[name]
	if !ok {
		known := make([]string, 0, len(s.params))
		for n := range s.params {
			known = append(known, n)
		}
		slices.Sort(known)
		err := fmt.Errorf("$(%s) names no parameter %s", name, oneOf(name, known))
		s.from.add(s.from.positionOfComplaint(at, complaint{}), at, "%s; $$(%s) is the text itself", err, name)
		return nil, err
	}
	s.used[name] = true
	if p.Type == "" {
		return nil, fmt.Errorf("%s is not declared well", name)
	}
	return p.value(s.values[name])
}

package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Override returns a copy of s with settings applied. A setting's name is a path below spec in which the members of lists go by
// their names (faults.slow-runtime.spec.latency, phases.recovery.deadline), its value is a YAML scalar or flow value. The result is
// validated like a file; the error is Violations without lines where it isn't valid.
func Override(s *Scenario, settings map[string]string) (*Scenario, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding scenario %s: %w", s.Metadata.Name, err)
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("decoding scenario %s: %w", s.Metadata.Name, err)
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		v, err := flowValue(settings[name])
		if err != nil {
			return nil, fmt.Errorf("setting %s: %w", name, err)
		}
		if err := set(tree["spec"], strings.Split(name, "."), v); err != nil {
			return nil, fmt.Errorf("setting %s: %w", name, err)
		}
	}
	d := &document{file: s.Metadata.Name + " with settings", value: tree}
	out, err := d.decode("")
	if err != nil {
		return nil, err
	}
	if len(d.found) > 0 {
		return nil, d.found.sorted()
	}
	out.Origin = s.Origin
	return out, nil
}

func flowValue(text string) (v any, err error) {
	d := read("value", []byte(text))
	if len(d.found) > 0 {
		return nil, fmt.Errorf("the value %q %s", text, d.found[0].Message)
	}
	return d.value, nil
}

// set puts v at path under tree. Every step but the last must exist; the last may be new, the schema decides.
func set(tree any, path []string, v any) error {
	for i, step := range path {
		last := i == len(path)-1
		switch t := tree.(type) {
		case map[string]any:
			if last {
				t[step] = v
				return nil
			}
			next, ok := t[step]
			if !ok && step == "spec" {
				next = map[string]any{}
				t[step] = next
			} else if !ok {
				return fmt.Errorf("there is no %q %s", step, oneOf(step, slices.Sorted(maps.Keys(t))))
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
			return fmt.Errorf("%s is %s, which has nothing under it", strings.Join(path[:i], "."), show(tree))
		}
	}
	return nil
}

// member finds an element of a list by its name, or by its index; -1 and all names if there is none.
func member(list []any, step string) (int, []string) {
	var names []string
	for i, e := range list {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		if name == step || strconv.Itoa(i) == step {
			return i, nil
		}
		names = append(names, name)
	}
	return -1, names
}

package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// difference is one place in which a plan isn't as its scenario has it. The values are those of JSON; nil is none.
type difference struct {
	path     string // faults.slow.spec.latency
	is, want any
}

// mostTold and longestTold limit what is said of a plan's differences: how many have a sentence of their own, and how
// many bytes of a value are shown.
const (
	mostTold    = 8
	longestTold = 60
)

// reordered stands for the value of a list that has the right items in another order.
type reordered struct{}

// told describes differences in one sentence each, and the last sentence counts what it leaves out.
func told(all []difference) (out []string) {
	for i, d := range all {
		if i == mostTold && len(all) > mostTold+1 {
			return append(
				out,
				fmt.Sprintf(
					"%d more fields of its plan are not as the scenario has them",
					len(all)-mostTold,
				),
			)
		}
		is, want := shown(d.is), shown(d.want)
		switch {
		case d.is == reordered{}:
			out = append(out, fmt.Sprintf("%s are in another order than the scenario's", d.path))
		case d.want == nil && (compound(d.is) || len(is) > longestTold):
			out = append(out, fmt.Sprintf("%s is none of the scenario's", d.path))
		case d.is == nil && (compound(d.want) || len(want) > longestTold):
			out = append(out, fmt.Sprintf("its plan lacks the scenario's %s", d.path))
		case max(len(is), len(want)) > longestTold:
			out = append(out, fmt.Sprintf("%s is not as the scenario has it", d.path))
		default:
			out = append(out, fmt.Sprintf("%s is %s, and the scenario has %s", d.path, is, want))
		}
	}
	return out
}

// shown returns a value for people: a text as it is, and everything else as JSON.
func shown(v any) string {
	if v == nil {
		return "nothing"
	}
	if s, ok := v.(string); ok && s != "" {
		return s
	}
	raw, _ := json.Marshal(v) // of JSON
	return string(raw)
}

// compound reports whether a JSON value is a list or an object.
func compound(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// compare returns where two JSON values differ. Items of lists are matched by their names where they have any. An empty
// list or object is none, but not below a spec: an object of the API may mean something by it.
func compare(path string, is, want any) []difference { return compareIn(path, is, want, false) }

func compareIn(path string, is, want any, strict bool) []difference {
	if reflect.DeepEqual(is, want) || !strict && empty(is) && empty(want) {
		return nil
	}
	have, wanted, ok := fieldsOf(is, want)
	if !ok {
		return []difference{{path, is, want}}
	}
	keys := map[string]bool{}
	for key := range have {
		keys[key] = true
	}
	for key := range wanted {
		keys[key] = true
	}
	var out []difference
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		// What progress calls a check decides nothing, and what is published for an arm's version is compared by the run.
		if !strict && (key == "await" || key == "release") {
			continue
		}
		at := key
		if path != "" {
			at = path + "." + key
		}
		out = append(out, compareIn(at, have[key], wanted[key], strict || key == "spec")...)
	}
	if moved(is, want) {
		out = append(out, difference{path, reordered{}, want})
	}
	return out
}

// moved reports whether the items that two lists have in common, by their names, are in another order.
func moved(is, want any) bool {
	a, b := itemNames(is), itemNames(want)
	common := func(of, other []string) []string {
		return slices.DeleteFunc(
			slices.Clone(of),
			func(name string) bool { return !slices.Contains(other, name) },
		)
	}
	return !slices.Equal(common(a, b), common(b, a))
}

// empty reports whether a JSON value is an absent or empty list or object.
func empty(v any) bool {
	list, isList := v.([]any)
	object, isObject := v.(map[string]any)
	return v == nil || isList && len(list) == 0 || isObject && len(object) == 0
}

// fieldsOf returns the fields of two objects, or the items of two lists by their names. It returns false for other
// values.
func fieldsOf(is, want any) (a, b map[string]any, ok bool) {
	a, isObject := is.(map[string]any)
	b, wantObject := want.(map[string]any)
	if isObject && wantObject {
		return a, b, true
	}
	a, isNamed := byName(is)
	b, wantNamed := byName(want)
	return a, b, isNamed && wantNamed && len(a)+len(b) > 0
}

// byName returns the items of a list by their names. Absent lists are empty ones. It returns false for anything but a
// list of objects that differ in their names.
func byName(v any) (map[string]any, bool) {
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, false
	}
	all, out := itemNames(v), map[string]any{}
	for i, item := range list {
		if _, object := item.(map[string]any); !object {
			return nil, false
		}
		if _, twice := out[all[i]]; twice {
			return nil, false
		}
		out[all[i]] = item
	}
	return out, true
}

// itemNames returns the names of a list's items: by file and arm those of manifests, and by their indexes those that have
// none.
func itemNames(v any) []string {
	list, _ := v.([]any)
	var out []string
	for i, item := range list {
		fields, _ := item.(map[string]any)
		key := strconv.Itoa(i)
		if name, _ := fields["name"].(string); name != "" {
			key = name
		} else if file, _ := fields["file"].(string); file != "" {
			key = file
			if arm, _ := fields["arm"].(string); arm != "" {
				key += " of " + arm
			}
		}
		out = append(out, key)
	}
	return out
}

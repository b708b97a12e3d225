package scenario

import (
	"slices"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// takes remembers that what is at path was taken over from elsewhere in the document, but for what the file has there.
func (e *expansion) takes(path, from []string) {
	if e.d.follows == nil {
		e.d.follows = map[string][]string{}
	}
	e.d.follows[key(path)] = from
}

// mistake is something that is wrong at a path of the expanded document.
type mistake struct {
	path    []string
	message string
}

// repeats reports whether a mistake only follows from another one of all: what is wrong was taken over from where that
// one is, and it is mended there.
func (d *document) repeats(m mistake, all []mistake) bool {
	for i := len(m.path); i > 0; i-- {
		from, taken := d.follows[key(m.path[:i])]
		if _, own := d.places[key(m.path[:i])]; own && !taken {
			return false // the file has it there
		}
		if !taken {
			continue
		}
		rest := m.path[i:]
		// Of a whole spec several things may be wrong.
		whole := len(rest) == 0 && from[len(from)-1] == "spec"
		return slices.ContainsFunc(all, func(o mistake) bool {
			return slices.Equal(o.path, steps(from, rest...)) && (!whole || o.message == m.message) ||
				len(rest) > 0 && slices.Equal(o.path, from)
		})
	}
	return false
}

// fieldsOf returns the fields of a kind's spec, sorted.
func fieldsOf(category, kind string) []string {
	entry, ok := kinds.Lookup(category, kind)
	if !ok {
		return nil
	}
	s, err := SpecSchema(entry)
	if err != nil {
		return nil
	}
	var out []string
	for name := range s.Properties {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// unknownFields complains about fields of an item, which the file has at in, that are neither its kind's nor its own, and
// takes them away.
func (e *expansion) unknownFields(category, kind string, given map[string]any, in []string) {
	known := fieldsOf(category, kind)
	if known == nil && kind == "" {
		return
	}
	all := slices.Concat(known, slices.DeleteFunc(slices.Clone(envelopes[category]), func(name string) bool {
		return slices.Contains([]string{"kind", "name", "spec", "check", "anyOf"}, name)
	}))
	slices.Sort(all)
	for name := range given {
		if slices.Contains(known, name) {
			continue
		}
		at := steps(in, name)
		if _, is := kinds.Lookup(category, name); is {
			e.complain(at, "is a kind of its own, and this is one already: %s (want one of them)", kind)
		} else {
			e.complain(at, "unknown field %s", oneOf(name, slices.Compact(all)))
		}
		delete(given, name)
	}
}

package scenario

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// named makes lists of the mappings in which a file may have things with names. A list and a mapping say the same: each
// thing stands under its name, or has it in the field name.
func (e *expansion) named() {
	spec := []string{"spec"}
	for _, list := range []string{"parameters", "constants", "pairs", "collectors", "loads", "faults"} {
		e.listed(e.spec, spec, list)
	}
	for _, l := range (&Spec{}).CheckLists() {
		e.listedChecks(e.spec, spec, l.Name)
	}
	match, _ := e.spec["match"].(map[string]any)
	signs := e.listed(match, steps(spec, "match"), "signs")
	for i, sign := range signs {
		if s, ok := sign.(map[string]any); ok {
			e.listedChecks(s, steps(spec, "match", "signs", strconv.Itoa(i)), "checks")
		}
	}
}

// listedChecks makes lists of the checks in a field of m, which is at path, and of their alternatives.
func (e *expansion) listedChecks(m map[string]any, path []string, field string) {
	for i, v := range e.listed(m, path, field) {
		if c, ok := v.(map[string]any); ok {
			e.listedChecks(c, steps(path, field, strconv.Itoa(i)), "anyOf")
		}
	}
}

// listed returns the list in a field of m, which is at path. It makes one of a mapping, in the order of the file.
func (e *expansion) listed(m map[string]any, path []string, field string) []any {
	things, ok := m[field].(map[string]any)
	if !ok {
		list, _ := m[field].([]any)
		return list
	}
	at := steps(path, field)
	in := e.place(at)
	names := slices.SortedFunc(maps.Keys(things), func(a, b string) int {
		p, q := e.d.keys[key(steps(in, a))], e.d.keys[key(steps(in, b))]
		return cmp.Or(cmp.Compare(p.line, q.line), cmp.Compare(p.column, q.column), cmp.Compare(a, b))
	})
	list := make([]any, 0, len(names))
	for i, name := range names {
		to, from := steps(at, strconv.Itoa(i)), steps(in, name)
		e.from[key(to)] = from
		if _, fields := things[name].(map[string]any); !fields && things[name] != nil && field == "collectors" {
			if only := onlyField(kinds.Collector, e.kindOf(name)); only != "" { // the spec is that field alone
				m := map[string]any{}
				e.put(m, to, only, things[name], from)
				things[name] = m
			}
		}
		item, ok := things[name].(map[string]any)
		if !ok {
			e.complain(from, "%s is no mapping (want what a list has below %s, without the name)", show(things[name]), field)
			e.d.lost = append(e.d.lost, to)
			things[name] = map[string]any{"name": name}
		} else {
			if _, twice := item["name"]; twice {
				e.complain(steps(from, "name"), "stands below the name %s (want one of them)", name)
			}
			e.put(item, to, "name", name, from)
		}
		list = append(list, things[name])
	}
	m[field] = list
	return list
}

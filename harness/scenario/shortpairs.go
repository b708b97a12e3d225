package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// pairFields are the fields of a pair in a file.
var pairFields = fieldNames[Pair](Vulnerable, Fixed, "like", "source")

// versions matches what the schema takes for a version.
var versions = regexp.MustCompile(VersionPattern)

// pairs turns each pair of the file into one with two arms, each with its whole source.
func (e *expansion) pairs() {
	list, before := e.list("pairs"), map[string]pairForm{}
	for i, v := range list {
		p, ok := v.(map[string]any)
		if !ok {
			continue
		}
		path := []string{"spec", "pairs", strconv.Itoa(i)}
		in := e.place(path)
		for _, name := range slices.Sorted(maps.Keys(p)) {
			if !slices.Contains(pairFields, name) {
				e.complain(steps(in, name), "unknown field %s", oneOf(name, pairFields))
				delete(p, name)
			}
		}
		if old, ok := p["arms"].([]any); ok {
			e.complain(
				steps(in, "arms"),
				"is a list, an old form (want %s)",
				e.pairInstead(old),
			)
			continue
		}
		e.arms(p, path, before)
	}
	// The first pair is the default unless another one is.
	isDefault := func(v any) bool { return lookup(v, []string{"default"}) != nil }
	if len(list) > 1 && !slices.ContainsFunc(list, isDefault) {
		if first, ok := list[0].(map[string]any); ok {
			e.put(first, []string{"spec", "pairs", "0"}, "default", true, nil)
		}
	}
}

// armForm is what the file says of one arm, or of both arms of a pair, with the path of it.
type armForm struct {
	fields map[string]any
	in     []string
	// version says that in is the path of the version alone, which fields has as its only field.
	version bool
}

// pairForm is what the file says of a pair's arms: of each by its role, and of both.
type pairForm struct {
	arms map[string]armForm
	both []armForm
}

// arms fills in the arms of the pair at path, and adds the pair to those that a later one can be like.
func (e *expansion) arms(p map[string]any, path []string, before map[string]pairForm) {
	form, ok := e.form(p, e.place(path), before)
	if !ok {
		p["arms"] = []any{}
		e.d.lost = append(e.d.lost, steps(path, "arms"))
		return
	}
	if name, ok := p["name"].(string); ok {
		before[name] = form
	}
	var arms []any
	for i, role := range []string{Vulnerable, Fixed} {
		at := steps(path, "arms", strconv.Itoa(i))
		in := form.arms[role].in
		e.from[key(at)] = in
		arm := map[string]any{}
		e.put(arm, at, "name", role, nil)
		e.put(arm, at, "role", role, nil)
		src := e.source(form.arms[role], form.both, steps(at, "source"))
		e.before(src, steps(at, "source"))
		e.put(arm, at, "source", src, in)
		arms = append(arms, arm)
	}
	p["arms"] = arms
}

// form returns what a pair says of its arms, and removes that from the pair. It returns false if that can't be told;
// then it has complained.
func (e *expansion) form(
	p map[string]any,
	path []string,
	before map[string]pairForm,
) (pairForm, bool) {
	var own pairForm
	if shared, ok := p["source"].(map[string]any); ok {
		own.both = []armForm{{fields: shared, in: steps(path, "source")}}
		delete(p, "source")
	}
	like, ok := p["like"]
	if !ok {
		own.arms, ok = e.forms(p, path)
		return own, ok
	}
	delete(p, "like")
	var beside []string
	for _, other := range []string{Vulnerable, Fixed, "arms"} {
		if p[other] != nil {
			beside = append(beside, other)
		}
		delete(p, other)
	}
	if len(beside) > 0 {
		e.complain(
			steps(path, "like"),
			"stands beside %s (want one of them)",
			strings.Join(beside, " and "),
		)
		return own, false
	}
	name := fmt.Sprint(like)
	model, ok := before[name]
	if !ok {
		e.complain(steps(path, "like"), "%q names no pair above this one %s", name,
			oneOf(name, slices.Sorted(maps.Keys(before))))
		return own, false
	}
	return pairForm{model.arms, slices.Concat(model.both, own.both)}, true
}

// forms returns what a pair says of its two arms, by role, and removes the short forms from the pair. It returns false
// if that can't be told; then it has complained.
func (e *expansion) forms(p map[string]any, path []string) (map[string]armForm, bool) {
	out, given := map[string]armForm{}, map[string]any{}
	for _, role := range []string{Vulnerable, Fixed} {
		if v, ok := p[role]; ok {
			given[role] = v
			delete(p, role)
		}
	}
	for _, role := range []string{Vulnerable, Fixed} {
		if _, ok := given[role]; !ok {
			continue
		}
		if p["arms"] != nil {
			e.complain(steps(path, role), "stands beside arms (want one of them)")
			return nil, false
		}
		if fields, ok := given[role].(map[string]any); ok {
			out[role] = armForm{fields: fields, in: steps(path, role)}
			continue
		}
		if e.misnamed() {
			return nil, false
		}
		if _, ok := e.subject(); !ok {
			e.complain(
				steps(path, role),
				"is a version, and the subject is no component whose source is known by its "+
					"version (want %s: {…} with what is changed)",
				role,
			)
			return nil, false
		}
		// The version itself is checked as the version of the source.
		out[role] = armForm{map[string]any{"version": given[role]}, steps(path, role), true}
	}
	arms, listed := p["arms"].(map[string]any)
	for _, role := range slices.Sorted(maps.Keys(arms)) {
		in := steps(path, "arms", role)
		if role != Vulnerable && role != Fixed {
			e.complain(in, "unknown arm %q %s", role, oneOf(role, []string{Vulnerable, Fixed}))
			return nil, false
		}
		fields, ok := arms[role].(map[string]any)
		if !ok {
			e.complain(
				in,
				"%s is no mapping (want {} for the subject as it was published, or what is changed: "+
					"{mutations: […]})",
				show(arms[role]),
			)
			return nil, false
		}
		out[role] = armForm{fields: fields, in: in}
	}
	if v, ok := out[Vulnerable]; ok && !v.version {
		if _, ok := out[Fixed]; !ok { // then it is the subject as it was published
			out[Fixed] = armForm{in: v.in}
		}
	}
	for _, role := range []string{Vulnerable, Fixed} {
		if _, ok := out[role]; ok {
			continue
		}
		if listed {
			e.complain(
				steps(path, "arms"),
				"has no arm %s (want %s: {} for the subject as it was published)",
				role,
				role,
			)
		} else {
			e.complain(
				path,
				"has no %s arm (want %s: v1.36.1, a version of the subject; or vulnerable: {mutations: […]}, "+
					"what is changed)",
				role,
				role,
			)
		}
		return nil, false
	}
	return out, true
}

// source returns the source of an arm at path: the arm's own fields, those of both arms, and what is derived from the
// subject and the scenario's version.
func (e *expansion) source(f armForm, both []armForm, path []string) map[string]any {
	src := map[string]any{}
	for name, v := range f.fields {
		in := steps(f.in, name)
		if f.version {
			in = f.in
		}
		e.put(src, path, name, clone(v), in)
	}
	for _, shared := range both {
		for name, v := range shared.fields {
			own, _ := src[name].([]any)
			more, list := v.([]any)
			switch _, given := src[name]; {
			case !given:
				e.put(src, path, name, clone(v), steps(shared.in, name))
			case list && name == "mutations": // an arm's own come first
				for i := range more {
					e.from[key(steps(path, name, strconv.Itoa(len(own)+i)))] = steps(
						shared.in,
						name,
						strconv.Itoa(i),
					)
				}
				src[name] = slices.Concat(own, clone(v).([]any))
			}
		}
	}
	mutations, _ := src["mutations"].([]any)
	e.mutations(mutations, steps(path, "mutations"))
	derive := func(name string, v any) {
		if _, given := src[name]; !given && v != nil && v != "" {
			e.put(src, path, name, v, nil)
		}
	}
	_, fixture := src["fixture"]
	_, binary := src["binary"]
	_, module := src["module"]
	_, dir := src["dir"]
	row, known := e.subject()
	switch {
	case fixture || binary:
		return src
	case !known && !module && !dir:
		derive("fixture", e.spec["subject"])
		return src
	case known && row.Module() != "" && !module:
		derive("module", row.Module())
		derive("package", row.Package())
	}
	// Of a wrong version its own place tells.
	v, _ := e.spec["version"].(string)
	if v = row.Version(v); dir || src["version"] != nil {
	} else if versions.MatchString(v) || strings.Contains(v, "$(") {
		derive("version", v)
	} else {
		e.d.lost = append(e.d.lost, path)
	}
	return src
}

// before fills in the builds that an arm runs before src, its source at path: what a build leaves out is as in src, but
// for mutations. A build of a fixture or binary of its own has nothing else.
func (e *expansion) before(src map[string]any, path []string) {
	list, _ := src["before"].([]any)
	for i, v := range list {
		b, ok := v.(map[string]any)
		if !ok {
			continue
		}
		at := steps(path, "before", strconv.Itoa(i))
		mutations, _ := b["mutations"].([]any)
		e.mutations(mutations, steps(at, "mutations"))
		_, fixture := b["fixture"]
		_, binary := b["binary"]
		if fixture || binary {
			continue
		}
		for _, name := range []string{"fixture", "module", "package", "version", "dir", "replace", "unoptimized", "race"} {
			_, own := b[name]
			_, version := b["version"]
			_, dir := b["dir"]
			if v, given := src[name]; given && !own && !(name == "version" && dir) && !(name == "dir" && version) {
				e.put(b, at, name, clone(v), nil)
			}
		}
	}
}

// mutations expands the mutations in the list at path. A mutation changes one place, unless it says how many.
func (e *expansion) mutations(list []any, path []string) {
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			continue
		}
		at := steps(path, strconv.Itoa(i))
		e.kind(kinds.Mutation, m, at)
		if _, given := m["sites"]; !given {
			e.put(m, at, "sites", 1, nil)
		}
	}
}

// clone copies a value, so that no two places of a document share a mapping or list.
func clone(v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range t {
			out[name] = clone(member)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, member := range t {
			out[i] = clone(member)
		}
		return out
	}
	return v
}

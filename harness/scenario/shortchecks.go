package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// checkForm is a check as the file has it, with the path of it.
type checkForm struct {
	item   map[string]any
	path   []string
	refers bool   // to another check
	unsaid bool   // it says neither what it asks nor to which check it refers: it is the one of its name
	phase  string // of the group that it is an alternative in; "" for none

	listPhase string // of its list; "" for a sign's
}

// ofSign reports whether the check is one of a sign.
func (c checkForm) ofSign() bool { return c.path[1] == "match" }

// allChecks expands the scenario's lists of checks and those of the signs, which may refer to checks of the lists.
func (e *expansion) allChecks() {
	known := map[string][]checkForm{}
	var refer []checkForm
	for _, l := range (&Spec{}).CheckLists() {
		e.listPhase = l.Phase
		e.checks([]string{"spec", l.Name}, l.Name, "", known, &refer)
	}
	e.listPhase = ""
	signs, _ := lookup(e.spec, []string{"match", "signs"}).([]any)
	for i, sign := range signs {
		name, _ := lookup(sign, []string{"name"}).(string)
		path := []string{"spec", "match", "signs", strconv.Itoa(i)}
		e.onlyCheck(sign, name, path, known)
		e.checks(steps(path, "checks"), name, "", known, &refer)
	}
	for _, c := range refer {
		if c.unsaid {
			e.sameName(c, known)
		}
	}
	for _, c := range refer {
		e.refer(c, known, nil)
	}
}

// sameName makes a check that doesn't say what it asks refer to the one of its name, which it is awaited like. If there
// is none, it is of a kind that doesn't exist.
func (e *expansion) sameName(c checkForm, known map[string][]checkForm) {
	name, _ := c.item["name"].(string)
	i := slices.IndexFunc(known[name], func(o checkForm) bool { return !o.unsaid && !slices.Equal(o.path, c.path) })
	if name == "" || i < 0 {
		e.kind(kinds.Check, c.item, c.path)
		if _, is := c.item["kind"]; !is {
			e.unsaid(c, name, known)
		}
		return
	}
	e.put(c.item, c.path, "check", name, e.place(c.path))
	if await := known[name][i].item["await"]; await != nil && !c.ofSign() {
		e.derive(c.item, c.path, "await", await)
	}
}

// unsaid complains about a check that doesn't say what it asks, where no other check has its name.
func (e *expansion) unsaid(c checkForm, name string, known map[string][]checkForm) {
	others := slices.DeleteFunc(plain(known), func(other string) bool { return other == name })
	meant := nearest(name, others)
	for field := range c.item {
		if meant == "" && !slices.Contains(envelopes[kinds.Check], field) {
			return // it may be a kind that is misspelt: the schema says which fields there are
		}
	}
	if meant != "" {
		meant = "; did you mean " + meant + "?"
	}
	e.complain(e.place(c.path), "says neither what it asks nor which other check it is like, and no other check is called "+
		"%q (want a kind, check: NAME or anyOf%s)", name, meant)
	e.d.lost = append(e.d.lost, c.path)
}

// signFields are the fields of a sign that are no check's.
var signFields = fieldNames[Sign]()

// onlyCheck makes a list of the check that a sign has in its own fields. It has the sign's name, unless it refers to
// another check.
func (e *expansion) onlyCheck(sign any, name string, path []string, known map[string][]checkForm) {
	s, _ := sign.(map[string]any)
	if _, listed := s["checks"]; s == nil || listed {
		for _, field := range slices.Sorted(maps.Keys(s)) {
			_, kind := kinds.Lookup(kinds.Check, field)
			if kind || slices.Contains(envelopes[kinds.Check], field) && !slices.Contains(signFields, field) {
				e.complain(steps(e.place(path), field), "stands beside checks (want it in one of them)")
				delete(s, field)
			}
		}
		return
	}
	c := map[string]any{}
	for _, field := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains(signFields, field) {
			c[field] = s[field]
			delete(s, field)
		}
	}
	if len(c) == 0 && len(known[name]) == 0 {
		return // the schema says what is missing
	}
	in := e.place(path)
	e.put(s, path, "checks", []any{c}, in)
	at := steps(path, "checks", "0")
	e.from[key(at)] = in
	if _, refers := c["check"]; !refers {
		e.put(c, at, "name", name, nil)
	}
}

// checks expands the checks of the list at path and their alternatives. It adds each to known, by its name, and by the
// name of its list or group before that; a sign's only by the sign's name before its own. It adds those that refer to
// another check to refer. phase is that of the group whose alternatives they are.
func (e *expansion) checks(
	path []string,
	in, phase string,
	known map[string][]checkForm,
	refer *[]checkForm,
) {
	list, _ := lookup(e.d.value, path).([]any)
	for i, v := range list {
		c, ok := v.(map[string]any)
		if !ok {
			continue
		}
		other, refers := c["check"]
		form := checkForm{c, steps(path, strconv.Itoa(i)), refers, !says(kinds.Check, c), phase, e.listPhase}
		if refers || form.unsaid {
			form.refers = true
			*refer = append(*refer, form)
			if _, named := c["name"]; !named && refers {
				text := fmt.Sprint(other)
				e.put(c, form.path, "name", text[strings.LastIndex(text, "/")+1:], nil)
			}
		} else {
			e.kind(kinds.Check, c, form.path)
			e.probePhase(form)
		}
		name, _ := c["name"].(string)
		known[in+"/"+name] = append(known[in+"/"+name], form)
		group := in
		if !form.ofSign() {
			known[name], group = append(known[name], form), name
		}
		within, _ := c["phase"].(string)
		e.checks(steps(form.path, "anyOf"), group, cmp.Or(within, phase), known, refer)
	}
}

// referent returns the check that c refers to by name. If there is none, or c leads to itself, it complains and returns
// false.
func (e *expansion) referent(
	c checkForm,
	name string,
	known map[string][]checkForm,
	after [][]string,
) (checkForm, bool) {
	refuse := func(format string, args ...any) (checkForm, bool) {
		e.complain(e.place(steps(c.path, "check")), format, args...)
		e.d.lost = append(e.d.lost, c.path)
		return checkForm{}, false
	}
	var others []checkForm
	for _, o := range known[name] {
		if !slices.Equal(o.path, c.path) {
			others = append(others, o)
		}
	}
	// A check that refers to another often has its name, and so do several of them.
	own := slices.DeleteFunc(slices.Clone(others), func(o checkForm) bool { return o.refers })
	if len(own) > 0 {
		others = own
	}
	switch {
	case len(others) == 0 && len(known[name]) > 0:
		return refuse("%q is the check itself", name)
	case len(others) == 0:
		return refuse("%q is no check of the scenario (want one of %s%s)", name, strings.Join(plain(known), ", "),
			Meant(name, slices.Sorted(maps.Keys(known))))
	case len(others) > 1:
		var places []string
		for _, o := range others {
			places = append(places, dotted(e.place(o.path)))
		}
		return refuse(
			"%q names %d checks: %s (want the name of the list or group before it: LIST/%s)",
			name,
			len(others),
			strings.Join(places, ", "),
			name,
		)
	case slices.ContainsFunc(after, func(p []string) bool { return slices.Equal(p, others[0].path) }):
		return refuse("%q refers back to this check", name)
	}
	other := others[0]
	e.refer(other, known, append(slices.Clip(after), c.path))
	if _, is := other.item["kind"].(string); is {
		return other, true
	}
	if e.d.echoes(other.path) {
		e.d.lost = append(e.d.lost, c.path)
		return other, false
	}
	return refuse("%q is a group of checks (want one of its alternatives)", name)
}

// plain returns the names of checks, without those of their lists.
func plain(known map[string][]checkForm) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(name string) bool {
		return name == "" || strings.Contains(name, "/")
	})
}

// refer turns a check that refers to another one into a check of that kind. Its spec is the other's, with the fields
// that the reference gives. A check of a list is also about the same time as the other, unless it or the group that it is
// an alternative in says another. after has the checks that lead to this one.
func (e *expansion) refer(c checkForm, known map[string][]checkForm, after [][]string) {
	name, ok := c.item["check"].(string)
	if !ok {
		return // it refers to nothing, or has been expanded
	}
	delete(c.item, "check")
	other, ok := e.referent(c, name, known, after)
	if !ok {
		return
	}
	if !c.ofSign() {
		e.sameTime(c, other)
	} else if phase := other.item["phase"]; phase != nil { // relapse's own evidence has phases, too
		e.derive(c.item, c.path, "phase", phase)
	}
	given := map[string]any{}
	for _, field := range slices.Sorted(maps.Keys(c.item)) {
		if !slices.Contains(envelopes[kinds.Check], field) {
			given[field] = c.item[field]
			delete(c.item, field)
		}
	}
	spec, _ := clone(other.item["spec"]).(map[string]any)
	if spec == nil {
		spec = map[string]any{}
	}
	for field := range spec {
		if e.follows[key(steps(other.path, "spec", field))] {
			delete(spec, field)
		}
	}
	if c.ofSign() && !other.ofSign() {
		for _, field := range ofTrials(other.item["kind"].(string)) {
			delete(spec, field)
		}
	}
	e.from[key(steps(c.path, "spec"))] = nil
	e.takes(steps(c.path, "spec"), steps(other.path, "spec"))
	e.unknownFields(kinds.Check, other.item["kind"].(string), given, e.place(c.path))
	e.merge(spec, given, steps(c.path, "spec"), e.place(c.path))
	if own, ok := c.item["spec"].(map[string]any); ok { // for fields that the check itself has, too
		e.merge(spec, own, steps(c.path, "spec"), steps(e.place(c.path), "spec"))
	}
	c.item["spec"] = spec
	e.put(c.item, c.path, "kind", other.item["kind"], nil)
	e.complete(kinds.Check, other.item["kind"].(string), c.item, c.path)
	e.probePhase(c)
}

// sameTime makes a check that refers to another one be about the same time, unless it says another. The phase of a group
// is that of its alternatives. In another phase, the other's time after the beginning says nothing.
func (e *expansion) sameTime(c, other checkForm) {
	phase := other.item["phase"]
	if e.follows[key(steps(other.path, "phase"))] {
		phase = nil
	}
	if phase == nil && other.phase != "" {
		phase = other.phase
	}
	_, own := c.item["phase"]
	switch {
	case own:
	case c.phase != "": // the plan gives it the group's
		if phase != c.phase {
			return
		}
	case phase != nil:
		e.put(c.item, c.path, "phase", phase, nil)
	}
	_, own = c.item["after"]
	if v, has := other.item["after"]; has && !own {
		e.put(c.item, c.path, "after", clone(v), nil)
	}
}

// merge puts fields, which the file has at in, over those of spec at path. Mappings are merged, and null takes a field
// away.
func (e *expansion) merge(spec, fields map[string]any, path, in []string) {
	for name, v := range fields {
		over, both := v.(map[string]any)
		under, is := spec[name].(map[string]any)
		switch {
		case v == nil:
			delete(spec, name)
		case both && is:
			e.merge(under, over, steps(path, name), steps(in, name))
		default:
			e.put(spec, path, name, v, steps(in, name))
		}
	}
}

// ofTrials returns the fields of a check's spec that say how the course of a trial shows it. Evidence from elsewhere has
// another course, so a sign doesn't take them over.
func ofTrials(kind string) []string {
	e, ok := kinds.Lookup(kinds.Check, kind)
	if !ok {
		return nil
	}
	if t, ok := e.New().(interface{ OfTrials() []string }); ok {
		return t.OfTrials()
	}
	return nil
}

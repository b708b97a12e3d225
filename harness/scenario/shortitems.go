package scenario

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// envelopes has the fields of an item of each category that aren't its kind's.
var envelopes = map[string][]string{
	kinds.Load:      fieldNames[Item](),
	kinds.Fault:     fieldNames[Item](),
	kinds.Collector: fieldNames[Collector](),
	kinds.Check:     fieldNames[Check]("check"),
	kinds.Mutation:  fieldNames[Mutation](),
}

// fieldNames returns the names of the fields of T, and of what it embeds, as a file has them. others are fields that only
// a file has.
func fieldNames[T any](others ...string) []string {
	out := others
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// kindAsName matches the kinds whose name can be an item's, too.
var kindAsName = regexp.MustCompile(NamePattern)

// kind turns the field that is named after the item's kind, and has its spec, into kind and spec. An item without a
// name gets its kind's.
func (e *expansion) kind(category string, item map[string]any, path []string) {
	if _, old := item["kind"]; !old {
		var others []string
		for _, name := range slices.Sorted(maps.Keys(item)) {
			if !slices.Contains(envelopes[category], name) {
				others = append(others, name)
			}
		}
		i := slices.IndexFunc(
			others,
			func(name string) bool { _, ok := kinds.Lookup(category, name); return ok },
		)
		if i < 0 && len(others) == 1 { // a kind that doesn't exist is best called that
			if _, is := item[others[0]].(map[string]any); is {
				i = 0
			}
		}
		if i < 0 {
			return
		}
		kind := others[i]
		for _, other := range others {
			if _, is := kinds.Lookup(category, other); is && other != kind {
				e.complain(steps(e.place(path), other), "is a second kind beside %s (want one %s for each)", kind, category)
				delete(item, other)
			}
		}
		spec, in := item[kind], steps(e.place(path), kind)
		delete(item, kind)
		e.put(item, path, "kind", kind, in)
		m, ok := spec.(map[string]any)
		if only := onlyField(category, kind); !ok && spec != nil && only != "" {
			m, ok = map[string]any{}, true
			e.put(m, steps(path, "spec"), only, spec, in)
			spec = m
		}
		if !ok || len(m) > 0 {
			e.put(item, path, "spec", spec, in)
		}
	}
	kind, _ := item["kind"].(string)
	e.complete(category, kind, item, path)
	if _, named := item["name"]; !named && category != kinds.Mutation && kindAsName.MatchString(kind) {
		e.put(item, path, "name", kind, nil)
	}
}

// says reports whether an item of a category says of which kind it is, or, if it is a check, which alternatives or which
// other check it stands for.
func says(category string, item map[string]any) bool {
	for name := range item {
		_, kind := kinds.Lookup(category, name)
		if kind || name == "kind" || category == kinds.Check && (name == "anyOf" || name == "check") {
			return true
		}
	}
	return false
}

// items expands loads or faults. Without a target an item acts on every instance of the subject.
func (e *expansion) items(category, list string) {
	for i, v := range e.list(list) {
		item, ok := v.(map[string]any)
		if _, foreign := item["apiVersion"]; !ok || foreign {
			continue
		}
		path := []string{"spec", list, strconv.Itoa(i)}
		e.kind(category, item, path)
		switch _, given := item["target"]; {
		case given:
		case e.misnamed():
			e.put(item, path, "target", nil, nil)
			e.d.lost = append(e.d.lost, steps(path, "target"))
		default:
			e.put(item, path, "target", e.target(list), nil)
		}
	}
}

// collectors expands the collectors. One that is given by its name alone is the one that the component table has for
// the subject, or a kind with its defaults. Without a list, all of the subject's are derived.
func (e *expansion) collectors() {
	row, known := e.subject()
	if name, _ := e.spec["subject"].(string); !known {
		row = component.Component{Name: name}
	}
	usual := map[string]component.Collector{}
	path := []string{"spec", "collectors"}
	for _, c := range row.Collectors() {
		usual[c.Name] = c
	}
	if _, given := e.spec["collectors"]; !given && known {
		var list []any
		for _, c := range row.Collectors() {
			list = append(list, map[string]any{"name": c.Name})
		}
		e.put(e.spec, []string{"spec"}, "collectors", list, nil)
	}
	for i, v := range e.list("collectors") {
		at := steps(path, strconv.Itoa(i))
		if name, ok := v.(string); ok {
			v = map[string]any{}
			e.list("collectors")[i] = v
			e.put(v.(map[string]any), at, "name", name, at)
		}
		item, ok := v.(map[string]any)
		if !ok {
			continue
		}
		name, _ := item["name"].(string)
		c, ofSubject := usual[name]
		_, isKind := kinds.Lookup(kinds.Collector, name)
		if (ofSubject || isKind) && !says(kinds.Collector, item) {
			e.known(name, c, item, at)
			continue
		}
		e.kind(kinds.Collector, item, at)
		if _, given := item["kind"]; !given && name != "" {
			e.unknownCollector(name, usual, item, at)
		}
	}
}

// kindOf returns the kind of the collector that has this name and says no kind.
func (e *expansion) kindOf(name string) string {
	row, _ := e.subject()
	for _, c := range row.Collectors() {
		if c.Name == name {
			return c.Kind
		}
	}
	return name
}

// known fills in a collector that says no kind, and has the name of one of the subject's or of a kind. Fields that are
// not a collector's are those of its spec.
func (e *expansion) known(name string, c component.Collector, item map[string]any, at []string) {
	in := e.place(at)
	given := map[string]any{}
	for _, field := range slices.Sorted(maps.Keys(item)) {
		if !slices.Contains(envelopes[kinds.Collector], field) {
			given[field] = item[field]
			delete(item, field)
		}
	}
	if c.Kind != "" {
		e.usual(item, at, c)
	} else {
		e.put(item, at, "kind", name, nil)
	}
	kind, _ := item["kind"].(string)
	e.unknownFields(kinds.Collector, kind, given, in)
	if len(given) == 0 {
		return
	}
	spec, _ := item["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
		e.put(item, at, "spec", spec, nil)
	}
	e.merge(spec, given, steps(at, "spec"), in)
}

// unknownCollector complains about a collector without a kind, whose name is neither one of the subject's nor a kind's.
func (e *expansion) unknownCollector(
	name string,
	usual map[string]component.Collector,
	item map[string]any,
	at []string,
) {
	e.d.lost = append(e.d.lost, at)
	e.put(item, at, "kind", "", nil)
	if e.misnamed() {
		return
	}
	known := slices.Collect(maps.Keys(usual))
	for _, k := range kinds.Of(kinds.Collector) {
		known = append(known, k.Name)
	}
	slices.Sort(known)
	in := steps(at, "name")
	if from, ok := e.from[key(in)]; ok { // the name alone
		in = from
	}
	e.complain(
		in,
		"%q is no collector of the subject, and no kind of collector %s",
		name,
		oneOf(name, slices.Compact(known)),
	)
}

// usual fills in what the component table says of a collector of the subject.
func (e *expansion) usual(item map[string]any, at []string, c component.Collector) {
	e.put(item, at, "kind", c.Kind, nil)
	if _, given := item["every"]; !given && c.Every != "" {
		e.put(item, at, "every", c.Every, nil)
	}
	if _, given := item["spec"]; !given && len(c.Spec) > 0 {
		e.put(item, at, "spec", clone(c.Spec), nil)
		e.takes(steps(at, "spec"), []string{"spec", "subject"})
	}
	if _, given := item["providers"]; given || !c.Kubelets {
		return
	}
	if on, _ := e.spec["providers"].([]any); len(on) > 1 {
		e.put(item, at, "providers", []any{"kind"}, nil)
	}
}

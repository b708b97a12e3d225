package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// expansion turns the short forms of a scenario's file into the fields of a Scenario, and adds what is derived from the
// subject. It changes the document in place, and remembers where each new value stands in the file.
type expansion struct {
	d    *document
	spec map[string]any
	// from maps the path of a value to where the file has it. Below that path, the steps are the same. The path of a
	// derived value maps to nil: the file doesn't have it.
	from map[string][]string
	// listPhase is the phase of the checks in the list that is being expanded; "" for those of signs.
	listPhase string
	// follows has the paths of values that follow from what stands beside them. Whoever refers to a check may say
	// something else beside, so these are not taken over.
	follows map[string]bool
}

// expand rewrites a scenario's document from the short forms. Old forms become violations, which say what to write.
func (d *document) expand() {
	spec, ok := lookup(d.value, []string{"spec"}).(map[string]any)
	if !ok {
		return
	}
	e := &expansion{d: d, spec: spec, from: map[string][]string{}, follows: map[string]bool{}}
	e.named()
	e.top()
	e.parameters()
	e.pairs()
	e.oracle()
	e.manifests()
	e.phases()
	e.collectors()
	e.items(kinds.Load, "loads")
	e.items(kinds.Fault, "faults")
	e.manifestFiles("loads")
	e.manifestFiles("faults")
	e.allChecks()
	e.signs()
	e.relocate()
}

// expandCandidate rewrites a candidate's document, of which only the mutations have a short form.
func (d *document) expandCandidate() {
	spec, _ := lookup(d.value, []string{"spec"}).(map[string]any)
	e := &expansion{d: d, spec: spec, from: map[string][]string{}, follows: map[string]bool{}}
	e.mutations(e.list("mutations"), []string{"spec", "mutations"})
	e.relocate()
}

// misnamed reports whether the subject is none that arms can have, so that nothing can be derived from it. That is
// complained about, and nothing that only follows from it.
func (e *expansion) misnamed() bool {
	_, known := e.subject()
	return !known && e.spec["placement"] != "workload"
}

// list returns a list of spec, without the elements' types being checked. The schema complains about anything else.
func (e *expansion) list(name string) []any {
	l, _ := e.spec[name].([]any)
	return l
}

// put sets a field of the mapping at path. in is the file's path of the value; nil means that the value is derived.
func (e *expansion) put(m map[string]any, path []string, field string, v any, in []string) {
	m[field] = v
	e.from[key(steps(path, field))] = in
}

// place returns where the file has what is at path by now.
func (e *expansion) place(path []string) []string {
	for i := len(path); i > 0; i-- {
		if in := e.from[key(path[:i])]; in != nil {
			return steps(in, path[i:]...)
		}
	}
	return path
}

// complain adds a violation about a path in the file. What stands there gets no further complaint.
func (e *expansion) complain(in []string, format string, args ...any) {
	e.d.add(e.d.positionOfComplaint(in, complaint{about: in}), in, format, args...)
}

// relocate gives every value of the expanded document the position of the text that it comes from, and remembers which
// values are derived.
func (e *expansion) relocate() {
	r := &relocation{
		d:      e.d,
		from:   e.from,
		values: map[string]position{},
		keys:   map[string]position{},
	}
	e.d.places, e.d.derived = map[string][]string{}, map[string]bool{}
	r.walk(e.d.value, nil, nil, true)
	for _, l := range e.d.lost { // a value that was left out of the document can still be what a complaint is about
		if !slices.ContainsFunc(r.lost, func(o []string) bool { return slices.Equal(l, o) }) {
			r.lost = append(r.lost, l)
		}
	}
	e.d.values, e.d.keys, e.d.lost = r.values, r.keys, r.lost
}

type relocation struct {
	d            *document
	from         map[string][]string
	values, keys map[string]position
	lost         [][]string
}

// walk places the value v at path, which the file has at in. A value that is derived is placed nowhere, and so is
// everything below it that isn't in the file itself.
func (r *relocation) walk(v any, path, in []string, placed bool) {
	if at, ok := r.from[key(path)]; ok && len(path) > 0 {
		in, placed = at, at != nil
		if !placed {
			r.d.derived[key(path)] = true
		}
	}
	if placed {
		// A kind or a name that is a field's name stands where that does.
		_, field := r.d.keys[key(in)]
		named := field && len(path) > 0 && !slices.Equal(path, in) &&
			(path[len(path)-1] == "kind" || path[len(path)-1] == "name")
		if at, ok := r.d.values[key(in)]; ok && !named {
			r.values[key(path)] = at
		}
		if at, ok := r.d.keys[key(in)]; ok {
			r.keys[key(path)] = at
		}
		if !slices.Equal(path, in) {
			r.d.places[key(path)] = in
		}
		if slices.ContainsFunc(r.d.lost, func(l []string) bool { return slices.Equal(l, in) }) {
			r.lost = append(r.lost, path)
		}
	}
	switch t := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(t)) {
			r.walk(t[name], steps(path, name), steps(in, name), placed)
		}
	case []any:
		for i, member := range t {
			r.walk(member, steps(path, strconv.Itoa(i)), steps(in, strconv.Itoa(i)), placed)
		}
	}
}

// steps returns a path with further steps, in memory of its own.
func steps(path []string, more ...string) []string { return slices.Concat(path, more) }

// usualPhases is how long a phase lasts that nothing else is said of.
var usualPhases = map[string]map[string]any{
	"steady":   {"deadline": "3m"},
	"baseline": {"atLeast": "20s"},
	"fault":    {"deadline": "6m"},
	"recovery": {"atLeast": "20s", "deadline": "5m"},
}

// phases turns the length of a phase, where it stands alone, into the one limit that the phase can't do without. A limit
// that is missing is the usual one.
func (e *expansion) phases() {
	e.derive(e.spec, []string{"spec"}, "phases", map[string]any{})
	phases, ok := e.spec["phases"].(map[string]any)
	if !ok {
		return
	}
	for name, limits := range usualPhases {
		path := []string{"spec", "phases", name}
		v, given := phases[name]
		if !given {
			e.put(phases, path[:2], name, clone(limits), nil)
			continue
		}
		limit := "deadline"
		if name == "baseline" {
			limit = "atLeast"
		}
		if v != nil && scalar(v) {
			phases[name] = map[string]any{limit: v}
			e.from[key(steps(path, limit))] = path
		} else if m, ok := v.(map[string]any); ok && !longer(m["atLeast"], limits[limit]) {
			e.derive(m, path, limit, limits[limit])
		}
	}
}

// longer reports whether both are durations, and a is the longer one.
func longer(a, b any) bool {
	x, noX := time.ParseDuration(fmt.Sprint(a))
	y, noY := time.ParseDuration(fmt.Sprint(b))
	return noX == nil && noY == nil && x > y
}

// parameters gives a parameter without a type that of its default.
func (e *expansion) parameters() {
	for i, v := range e.list("parameters") {
		p, ok := v.(map[string]any)
		if _, given := p["type"]; !ok || given {
			continue
		}
		if t := typeOf(p["default"]); t != "" {
			e.put(p, []string{"spec", "parameters", strconv.Itoa(i)}, "type", t, nil)
		}
	}
}

// typeOf returns the type of a parameter whose default is v, or "" if the default leaves it open.
func typeOf(v any) string {
	switch v := v.(type) {
	case bool:
		return TypeBoolean
	case float64:
		return TypeNumber
	case int64, uint64:
		return TypeInteger
	case string:
		if v == "" {
			return ""
		}
		if durations.MatchString(v) {
			return TypeDuration
		}
		if _, err := resource.ParseQuantity(v); err == nil {
			return TypeQuantity
		}
		return TypeString
	}
	return ""
}

// Package kinds is the registry of everything that a scenario can use: faults, loads, collectors, checks, seams and
// mutations.
//
// A kind registers itself in an init function in its own file, so that adding a kind touches one file. `relapse list`,
// `relapse explain`, the JSON Schema, the documentation and the conformance tests read this registry.
package kinds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// The categories a kind can belong to.
const (
	Fault     = "fault"
	Load      = "load"
	Collector = "collector"
	Check     = "check"
	Seam      = "seam"
	Mutation  = "mutation"
)

// Categories lists all categories in the order in which documentation shows them.
var Categories = []string{Fault, Load, Collector, Check, Seam, Mutation}

// Kind describes one kind of category T (for example fault.Fault).
//
// New returns a pointer to the kind's spec struct, filled with defaults. A scenario's `spec` node is decoded over it.
type Kind[T any] struct {
	Name      string // lowerCamel, unique within its category
	Doc       string // one sentence, then a blank line and details; shown by explain
	ChaosMesh string // the corresponding Chaos Mesh kind, or ""
	Example   string // YAML of a whole item ({name, kind, target, spec}); schema, docs and conformance run it
	// Meets and Differs are specs of a check, as JSON. For the evidence of the conformance suite's scripted cluster, a
	// check with the spec Meets is met and one with Differs is not. A check of something that this cluster doesn't do
	// lacks one or both.
	Meets, Differs string
	// Tested is a spec of a fault or a probe, as JSON, for the conformance suite. With this spec the suite knows what
	// to look for and finishes within seconds. Empty means the defaults.
	Tested string
	New    func() T
}

// Chooser is a spec with fields that are limited to some values. Choices maps the JSON names of these fields to the
// values. The schema for editors and `relapse explain` list them; the kind itself refuses others.
type Chooser interface{ Choices() map[string][]string }

// Implier is a spec with fields that follow from what a scenario's file gives. Implied returns their values by their JSON
// names; given has what the file says, by the same names. A value that the file gives stays.
type Implier interface {
	Implied(given map[string]any) map[string]any
}

// Entry is a registered kind without its type parameter.
type Entry struct {
	Category, Name, Doc, ChaosMesh, Example, Meets, Differs, Tested string
	New                                                             func() any
}

var (
	mu       sync.RWMutex
	registry = map[string]map[string]Entry{}
)

// Register adds k to category. It panics on an empty or duplicate name, an unknown category or a missing constructor:
// mistakes that every binary shows at start.
func Register[T any](category string, k Kind[T]) {
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(Categories, category) {
		panic(fmt.Sprintf("kinds: unknown category %q", category))
	}
	if k.Name == "" || k.New == nil || k.Doc == "" {
		panic(fmt.Sprintf("kinds: %s %q needs a name, a doc and a constructor", category, k.Name))
	}
	if registry[category] == nil {
		registry[category] = map[string]Entry{}
	}
	if _, dup := registry[category][k.Name]; dup {
		panic(fmt.Sprintf("kinds: %s %q registered twice", category, k.Name))
	}
	registry[category][k.Name] = Entry{
		Category: category, Name: k.Name, Doc: k.Doc, ChaosMesh: k.ChaosMesh, Example: k.Example,
		Meets: k.Meets, Differs: k.Differs, Tested: k.Tested, New: func() any { return k.New() },
	}
}

// Lookup returns the kind with a category and name.
func Lookup(category, name string) (Entry, bool) {
	mu.RLock()
	defer mu.RUnlock()
	e, ok := registry[category][name]
	return e, ok
}

// Of returns the kinds of a category, sorted by name.
func Of(category string) []Entry {
	mu.RLock()
	defer mu.RUnlock()
	var out []Entry
	for _, e := range registry[category] {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Linked returns an error if a category has no kinds at all: they are in no package that the program imports.
func Linked(category string) error {
	mu.RLock()
	defer mu.RUnlock()
	if len(registry[category]) > 0 {
		return nil
	}
	return fmt.Errorf(
		"no kind of category %s is registered: import github.com/kube-relapse/relapse/scenarios",
		category,
	)
}

// Make returns a new value of a kind with its defaults. The error names the category and the registered kinds.
func Make[T any](category, name string) (T, error) {
	var zero T
	if err := Linked(category); err != nil {
		return zero, err
	}
	e, ok := Lookup(category, name)
	if !ok {
		var known []string
		for _, e := range Of(category) {
			known = append(known, e.Name)
		}
		return zero, fmt.Errorf("unknown %s kind %q: want one of %q", category, name, known)
	}
	v, ok := e.New().(T)
	if !ok {
		return zero, fmt.Errorf("%s kind %q is a %T, not a %T", category, name, e.New(), zero)
	}
	return v, nil
}

// Decode makes a value of a kind and decodes spec over its defaults. A nil spec leaves the defaults. A field that the
// kind doesn't have is an error.
func Decode[T any](category, name string, spec json.RawMessage) (T, error) {
	v, err := Make[T](category, name)
	if err != nil || len(spec) == 0 {
		return v, err
	}
	if err := DecodeStrictly(spec, v); err != nil {
		return v, fmt.Errorf("decoding the spec of %s kind %q: %w", category, name, err)
	}
	return v, nil
}

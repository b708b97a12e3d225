package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// SpecSchema returns the JSON Schema of one kind's spec: its fields in the order of the struct, with descriptions and
// defaults. A field is required if its JSON tag has neither omitempty nor omitzero and New leaves it zero.
func SpecSchema(e kinds.Entry) (*jsonschema.Schema, error) {
	v := e.New()
	t := reflect.TypeOf(v)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf(
			"%s kind %q: its spec is a %s, not a struct",
			e.Category,
			e.Name,
			t,
		)
	}
	if hasBareDuration(t, map[reflect.Type]bool{}) {
		return nil, fmt.Errorf(
			"%s kind %q: %s has a time.Duration, which JSON takes for nanoseconds: want "+
				"metav1.Duration",
			e.Category,
			e.Name,
			t,
		)
	}
	s, err := jsonschema.ForType(t, options())
	if err != nil {
		return nil, fmt.Errorf("making the schema of %s kind %q: %w", e.Category, e.Name, err)
	}
	markDurations(s, t)
	s.Title = e.Name
	s.Description = e.Doc
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding the defaults of %s kind %q: %w", e.Category, e.Name, err)
	}
	setDefaults(s, raw)
	withoutDerived(s, t)
	withoutNull(s)
	return s, nil
}

// hasBareDuration reports whether an exported field of t, at any depth, is a time.Duration.
func hasBareDuration(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || t == reflect.TypeFor[metav1.Duration]() {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return hasBareDuration(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() && f.Tag.Get("json") != "-" && hasBareDuration(f.Type, seen) {
				return true
			}
		}
	}
	return t == reflect.TypeFor[time.Duration]()
}

// markDurations adds the pattern of durations to strings that Chaos Mesh's struct tags mark as durations.
func markDurations(s *jsonschema.Schema, t reflect.Type) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if p := s.Properties[name]; p != nil && p.Type == "string" && f.Tag.Get("webhook") == "Duration" {
			p.Pattern = DurationPattern
		}
	}
}

// setDefaults adds the values that New set as defaults, to s and the objects below it. A field with a default isn't
// required.
func setDefaults(s *jsonschema.Schema, raw json.RawMessage) {
	var given map[string]json.RawMessage
	if json.Unmarshal(raw, &given) != nil {
		return
	}
	for name, v := range given {
		p := s.Properties[name]
		if p == nil || zero(v) {
			continue
		}
		if p.Properties != nil {
			setDefaults(p, v)
		}
		p.Default = v
		s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
	}
}

// zero reports whether a JSON value is empty: null, false, 0, "", "0s", an empty list, or an object of only empty
// values.
func zero(raw json.RawMessage) bool {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return true
	}
	var empty func(any) bool
	empty = func(v any) bool {
		switch v := v.(type) {
		case map[string]any:
			return !slices.ContainsFunc(
				slices.Collect(maps.Values(v)),
				func(v any) bool { return !empty(v) },
			)
		case []any:
			return len(v) == 0
		}
		return v == nil || v == false || v == 0.0 || v == "" || v == "0s"
	}
	return empty(v)
}

// IsDuration reports whether s, a part of a schema made here, is a duration.
func IsDuration(s *jsonschema.Schema) bool { return s.Pattern == DurationPattern }

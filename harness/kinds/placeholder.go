package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// Placeholder matches $(name), and $$(name), which stands for the text $(name). The name is its first group.
var Placeholder = regexp.MustCompile(`\$?\$\(([^()]*)\)`)

// Placeholders returns the names that the kind itself replaces in a field of its spec. The path has the names of fields
// and the indexes of lists. Where a scenario is read, $(name) stays in such a field, so that the kind can call Expand
// with what only a trial knows, such as n, the number of a call. A struct tag lists the names, for the field and all
// that is below it:
//
//	Body json.RawMessage `json:"body" placeholders:"n,arm"`
func (e Entry) Placeholders(path []string) []string {
	t := reflect.TypeOf(e.New())
	for _, step := range path {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch t.Kind() {
		case reflect.Struct:
			f, ok := fieldOf(t, step)
			if !ok {
				return nil
			}
			if names, tagged := f.Tag.Lookup("placeholders"); tagged {
				return strings.Split(names, ",")
			}
			t = f.Type
		case reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
		default:
			return nil
		}
	}
	return nil
}

// fieldOf returns the field that has a name in JSON.
func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if in, _, _ := strings.Cut(f.Tag.Get("json"), ","); in == name && f.IsExported() {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// ExpandText replaces the placeholders that have a value: $(n) by the value of n. $$(n) becomes the text $(n), and a
// placeholder without a value stays.
func ExpandText(text string, values map[string]any) string {
	return Placeholder.ReplaceAllStringFunc(text, func(match string) string {
		v, ok := values[Placeholder.FindStringSubmatch(match)[1]]
		switch {
		case !ok:
			return match
		case strings.HasPrefix(match, "$$"):
			return match[1:]
		}
		return fmt.Sprint(v)
	})
}

// Expand replaces the placeholders in all texts of a JSON value, as ExpandText does, those of keys included. A text that
// is nothing but a placeholder stays a text, also if the value is a number: an API server that finds a number among
// labels, annotations or data refuses the object, and can't read it if it is in etcd.
func Expand(raw json.RawMessage, values map[string]any) (json.RawMessage, error) {
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber() // a float64 has fewer digits
	var v any
	if err := in.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(expand(v, values))
}

func expand(v any, values map[string]any) any {
	switch v := v.(type) {
	case string:
		return ExpandText(v, values)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			out[ExpandText(key, values)] = expand(member, values)
		}
		return out
	case []any:
		for i := range v {
			v[i] = expand(v[i], values)
		}
	}
	return v
}

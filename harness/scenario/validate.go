package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	model "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// complaint is a mistake at path. If about is set, the complaint is shown at the position of about instead.
type complaint struct {
	path, about []string
	message     string
	means       []string // of an unknown field: the path of the known one that was probably meant
	missing     bool     // there is nothing at path
}

// validator is the compiled schema, together with its JSON, from which messages say what was wanted.
type validator struct {
	compiled *jsonschema.Schema
	schema   any
}

// compiled makes the validator of scenarios once. Kinds register in init functions, so all of them are known before any
// file is read.
var compiled = sync.OnceValues(func() (*validator, error) { return newValidator(Schema) })

func newValidator(from func() (*model.Schema, error)) (*validator, error) {
	s, err := from()
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding the schema: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("decoding the schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(s.ID, doc); err != nil {
		return nil, fmt.Errorf("adding the schema: %w", err)
	}
	compiled, err := c.Compile(s.ID)
	if err != nil {
		return nil, fmt.Errorf("compiling the schema: %w", err)
	}
	return &validator{compiled: compiled, schema: doc}, nil
}

// check returns all complaints of the schema about value, a tree of JSON values.
func (v *validator) check(value any) []complaint {
	err := v.compiled.Validate(value)
	if err == nil {
		return nil
	}
	failed, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return []complaint{{message: err.Error()}}
	}
	var out []complaint
	var leaves func(*jsonschema.ValidationError)
	leaves = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			out = append(out, v.translate(e, value)...)
		}
		for _, c := range e.Causes {
			leaves(c)
		}
	}
	leaves(failed)
	// A field that is misspelt isn't missing as well.
	return slices.DeleteFunc(out, func(c complaint) bool {
		return c.missing && slices.ContainsFunc(out, func(o complaint) bool { return slices.Equal(o.means, c.path) })
	})
}

// translate turns one finding of the schema into complaints.
func (v *validator) translate(e *jsonschema.ValidationError, value any) []complaint {
	path := slices.Clone(e.InstanceLocation)
	sub := v.subschema(e.SchemaURL)
	got := show(lookup(value, path))
	one := func(format string, args ...any) []complaint {
		return []complaint{{path: path, message: fmt.Sprintf(format, args...)}}
	}
	var out []complaint
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			member := append(slices.Clip(path), name)
			c := complaint{
				path:    member,
				about:   member,
				message: "unknown field " + oneOf(name, fields(sub)),
			}
			if meant := nearest(name, fields(sub)); meant != "" {
				c.means = append(slices.Clip(path), meant)
			}
			out = append(out, c)
		}
		return out
	case *kind.Required:
		for _, name := range k.Missing {
			out = append(
				out,
				complaint{path: append(slices.Clip(path), name), about: path, missing: true,
					message: "is missing " + v.want(v.property(sub, name))},
			)
		}
		return out
	case *kind.Type:
		if sub["pattern"] == DurationPattern {
			return one("%s is no duration %s", got, v.want(sub))
		}
		return one("%s is no %s %s", got, strings.Join(k.Want, " or "), v.want(sub))
	case *kind.Pattern:
		return one("%s is not valid %s", got, v.want(sub))
	case *kind.Enum:
		if len(path) > 1 && path[len(path)-1] == "kind" {
			if err := kinds.Linked(noun(path[:len(path)-1])); err != nil {
				return one("%v", err)
			}
		}
		return one("unknown %s %s %s", noun(path), got, oneOf(fmt.Sprint(k.Got), strs(k.Want)))
	case *kind.Const:
		return one("%s is not valid (want %v)", got, k.Want)
	case *kind.MinItems:
		return one("is an empty list (want at least %d)", k.Want)
	case *kind.MinLength:
		return one("is empty %s", v.want(sub))
	case *kind.Minimum:
		return one("%s is too small (want at least %s)", got, k.Want.RatString())
	case *kind.Maximum:
		return one("%s is too large (want at most %s)", got, k.Want.RatString())
	}
	return one("%s", e.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
}

// noun returns what to call the value at path: its field's name, or for a list member the singular of the list's name.
func noun(path []string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if _, err := strconv.Atoi(path[i]); err != nil {
			if i < len(path)-1 {
				if slices.Contains([]string{"steady", "exposure", "signature", "healed", "information", "anyOf",
					"checks"},
					path[i]) {
					return "check"
				}
				return strings.TrimSuffix(path[i], "s")
			}
			if path[i] == "kind" && i >= 2 {
				return noun(path[:i]) + " kind"
			}
			return path[i]
		}
	}
	return "value"
}

func (v *validator) subschema(location string) map[string]any {
	_, fragment, _ := strings.Cut(location, "#")
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	if fragment == "" {
		m, _ := v.schema.(map[string]any)
		return m
	}
	return pointer(v.schema, fragment)
}

// pointer returns the part of a JSON Schema that a fragment such as "/properties/spec" points at.
func pointer(schema any, fragment string) map[string]any {
	var path []string
	for _, step := range strings.Split(strings.TrimPrefix(fragment, "/"), "/") {
		path = append(path, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
	}
	m, _ := lookup(schema, path).(map[string]any)
	return m
}

func (v *validator) property(sub map[string]any, name string) map[string]any {
	m, _ := lookup(sub, []string{"properties", name}).(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return v.subschema(ref)
	}
	return m
}

// want returns, in parentheses, what a part of the schema asks for.
func (v *validator) want(sub map[string]any) string {
	doc, _ := sub["description"].(string)
	doc, _, _ = strings.Cut(doc, "\n")
	if sub["pattern"] == DurationPattern {
		if doc != "" && !strings.HasPrefix(doc, "a duration") {
			doc += "; "
		} else {
			doc = ""
		}
		return "(want " + doc + "a duration with its unit: 250ms, 40s, 1m30s)"
	}
	var what string
	switch {
	case sub["const"] != nil:
		return fmt.Sprintf("(want %v)", sub["const"])
	case sub["enum"] != nil:
		return "(want one of " + strings.Join(strs(sub["enum"].([]any)), ", ") + ")"
	case sub["pattern"] == NamePattern, sub["pattern"] == fixturePattern:
		what = "a name of lower-case letters, digits and dashes"
	case sub["pattern"] == urlPattern:
		what = "a URL such as https://github.com/kubernetes/kubernetes/issues/115178"
	case sub["pattern"] == VersionPattern:
		what = "a version such as v1.34.4"
	default:
		what = map[string]string{
			"string": "a text", "array": "a list", "object": "a mapping", "boolean": "true or false",
			"integer": "a whole number", "number": "a number",
		}[fmt.Sprint(sub["type"])]
	}
	switch {
	case what == "" && doc == "":
		return "(want a value)"
	case what == "":
		return "(want " + doc + ")"
	case doc == "":
		return "(want " + what + ")"
	}
	return "(want " + what + ": " + doc + ")"
}

func fields(sub map[string]any) []string {
	props, _ := sub["properties"].(map[string]any)
	var out []string
	for name := range props {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func strs(vs []any) []string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = fmt.Sprint(v)
	}
	return out
}

// show describes a value for a message.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "an empty value"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		if len(v) > 60 {
			v = v[:60] + "…"
		}
		return strconv.Quote(v)
	}
	return fmt.Sprint(v)
}

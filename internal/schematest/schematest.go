// Package schematest tries values on JSON schemas, for tests.
package schematest

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Compile returns a schema, which is anything that encodes to JSON, so that values can be tried on it.
func Compile(t testing.TB, schema any) *jsonschema.Schema {
	t.Helper()
	const name = "schema.json"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, JSON(t, schema)); err != nil {
		t.Fatal(err)
	}
	out, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// JSON returns a value as a program reads it that was given its JSON.
func JSON(t testing.TB, v any) any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// YAML returns what a YAML text says, as JSON has it.
func YAML(t testing.TB, text []byte) any {
	t.Helper()
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return JSON(t, json.RawMessage(raw))
}

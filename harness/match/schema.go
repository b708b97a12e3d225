package match

import (
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaID identifies the schema. Nothing is fetched from this address.
const schemaID = "https://relapse.dev/schema/v1alpha1/match.json"

// Schema returns the JSON Schema (draft 2020-12) of a Result, made from its Go types. It allows fields that it doesn't
// have, because a later version may add some.
func Schema() (*jsonschema.Schema, error) {
	root, err := jsonschema.For[Result](
		&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
			reflect.TypeFor[Answer](): {
				Type: "string",
				Enum: []any{string(Met), string(Suspected), string(Unknown), string(NotMet)},
			},
		}},
	)
	if err != nil {
		return nil, fmt.Errorf("making the schema of match's JSON: %w", err)
	}
	open(root)
	root.Schema, root.ID, root.Title = "https://json-schema.org/draft/2020-12/schema", schemaID, "relapse match -o json"
	root.Properties["schema"].Const = jsonschema.Ptr[any](schema)
	return root, nil
}

// open allows more fields in every object, and takes out null: a list without elements is written as [].
func open(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	s.AdditionalProperties = nil
	for _, p := range s.Properties {
		open(p)
	}
	if s.Items != nil {
		open(s.Items)
	}
}

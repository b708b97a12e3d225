package scenario

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// EditorSchema returns Schema adapted to files as people write them: a $(name) reference may replace a value, faults
// may be manifests of other tools, and the values of closed sets are listed.
func EditorSchema() (*jsonschema.Schema, error) {
	root, err := Schema()
	if err != nil {
		return nil, err
	}
	if err := addChoices(root); err != nil {
		return nil, err
	}
	spec := root.Properties["spec"]
	for name, p := range spec.Properties {
		if name != "parameters" {
			spec.Properties[name] = referable(p)
		}
	}
	for name, p := range root.Defs {
		root.Defs[name] = referable(p)
	}
	var versions []any
	for _, v := range kinds.Convertible() {
		versions = append(versions, v)
	}
	text := &jsonschema.Schema{Type: "string"}
	spec.Properties["faults"].Items = &jsonschema.Schema{
		If: &jsonschema.Schema{Required: []string{"apiVersion"}},
		Then: &jsonschema.Schema{
			Properties: map[string]*jsonschema.Schema{"apiVersion": {Enum: versions}, "kind": text,
				"metadata": {Type: "object"}, "spec": {Type: "object"}},
			Required: []string{"apiVersion", "kind", "metadata", "spec"},
		},
		Else: spec.Properties["faults"].Items,
	}
	return root, nil
}

// referable returns s changed so that a reference may replace s or any scalar below it. Plain strings stay as they are,
// because they already allow a reference.
func referable(s *jsonschema.Schema) *jsonschema.Schema {
	if s == nil {
		return nil
	}
	for name, p := range s.Properties {
		s.Properties[name] = referable(p)
	}
	s.Items = referable(s.Items)
	if s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil {
		s.AdditionalProperties = referable(s.AdditionalProperties)
	}
	switch {
	case s.Type == "integer", s.Type == "number", s.Type == "boolean":
	case s.Type == "string" && (s.Pattern != "" || s.Enum != nil || s.Const != nil):
	default:
		return s
	}
	value := *s
	value.Description, value.Default = "", nil
	return &jsonschema.Schema{
		Description: s.Description, Default: s.Default,
		AnyOf: []*jsonschema.Schema{&value, {Type: "string", Pattern: `^\$\([^()]+\)$`}},
	}
}

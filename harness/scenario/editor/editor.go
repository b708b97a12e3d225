// Package editor has the schemas of scenarios and candidates for editors and people: of files as they are written, while
// package scenario has those of what a file means.
package editor

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Schema returns the schema of a scenario's file, with the short forms, with a $(name) reference in place of a value, with
// manifests of other tools among the faults, and with the values of closed sets.
func Schema() (*jsonschema.Schema, error) {
	root, err := scenario.Schema()
	if err != nil {
		return nil, err
	}
	if err := scenario.AddChoices(root); err != nil {
		return nil, err
	}
	inShort(root)
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
			Properties: map[string]*jsonschema.Schema{
				"apiVersion": {Enum: versions},
				"kind":       text,
				"metadata":   {Type: "object"},
				"spec":       {Type: "object"},
			},
			Required: []string{"apiVersion", "kind", "metadata", "spec"},
		},
		Else: spec.Properties["faults"].Items,
	}
	inMappings(root)
	return root, nil
}

// inMappings lets all things with names stand in mappings.
func inMappings(root *jsonschema.Schema) {
	spec := root.Properties["spec"].Properties
	for _, name := range []string{"parameters", "constants", "pairs", "loads", "faults"} {
		spec[name] = byName(spec[name])
	}
	for _, l := range (&scenario.Spec{}).CheckLists() {
		spec[l.Name] = byName(spec[l.Name])
	}
	check := root.Defs[kinds.Check]
	signs := spec["match"].Properties["signs"]
	sign := signs.Items.Then
	for _, s := range []*jsonschema.Schema{check.Then, check.Else, sign} {
		for _, name := range []string{"anyOf", "checks"} {
			if list := s.Properties[name]; list != nil {
				s.Properties[name] = byName(list)
			}
		}
	}
	spec["match"].Properties["signs"] = byName(signs)
	// A collector in a mapping may have the fields of its kind beside its own, or the only field of that alone.
	collector := *root.Defs[kinds.Collector]
	collector.AdditionalProperties = nil
	spec["collectors"] = byName(spec["collectors"])
	spec["collectors"].Then.AdditionalProperties = &jsonschema.Schema{
		If: &jsonschema.Schema{Type: "object"}, Then: &collector, Else: &jsonschema.Schema{},
	}
}

// CandidateSchema returns the schema of a candidate's file, with the short form of mutations.
func CandidateSchema() (*jsonschema.Schema, error) {
	root, err := scenario.KnownSchema()
	if err == nil {
		shortItem(root.Defs, kinds.Mutation)
	}
	return root, err
}

// referencePattern matches a value that is a reference.
const referencePattern = `^\$\([^()]+\)$`

// referable returns s changed so that a reference may replace s or any scalar below it. Plain strings stay as they are,
// because they already allow a reference.
func referable(s *jsonschema.Schema) *jsonschema.Schema {
	if s == nil {
		return nil
	}
	for name, p := range s.Properties {
		s.Properties[name] = referable(p)
	}
	s.Items, s.Then, s.Else = referable(s.Items), referable(s.Then), referable(s.Else)
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
		AnyOf: []*jsonschema.Schema{&value, {Type: "string", Pattern: referencePattern}},
	}
}

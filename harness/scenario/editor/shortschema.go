package editor

import (
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// inShort adapts the schema of a Scenario to files, which have the short forms of it.
func inShort(root *jsonschema.Schema) {
	spec := root.Properties["spec"]
	shortPair(spec.Properties["pairs"].Items)
	spec.Required = slices.DeleteFunc(
		spec.Required,
		func(name string) bool { return name == "collectors" },
	)
	parameter := spec.Properties["parameters"].Items
	parameter.Required = slices.DeleteFunc(
		parameter.Required,
		func(name string) bool { return name == "type" },
	)
	collectors := spec.Properties["collectors"]
	collectors.Items = &jsonschema.Schema{
		If: &jsonschema.Schema{Type: "string"}, Then: &jsonschema.Schema{},
		Else: collectors.Items,
	}
	for name, p := range spec.Properties["phases"].Properties {
		doc := "the longest time that the phase lasts; with atLeast, a mapping of both"
		if name == "baseline" {
			doc = "the time that the phase lasts"
		}
		whole := *p
		spec.Properties["phases"].Properties[name] = &jsonschema.Schema{
			If: &jsonschema.Schema{Type: "string"},
			Then: &jsonschema.Schema{Description: doc, AnyOf: []*jsonschema.Schema{
				{Type: "string", Pattern: scenario.DurationPattern}, {Type: "string", Pattern: referencePattern}}},
			Else: &whole,
		}
	}
	for _, category := range []string{kinds.Fault, kinds.Load, kinds.Collector, kinds.Check, kinds.Mutation} {
		shortItem(root.Defs, category)
	}
	shortSign(spec.Properties["match"].Properties["signs"].Items, root.Defs[kinds.Check])
}

// shortItem lets an item have its spec as the field that is named after its kind, and go without what is derived.
func shortItem(defs map[string]*jsonschema.Schema, category string) {
	item := defs[category]
	item.Required = slices.DeleteFunc(item.Required, func(name string) bool {
		return slices.Contains([]string{"name", "kind", "target", "sites", "spec"}, name)
	})
	for _, e := range kinds.Of(category) {
		item.Properties[e.Name] = &jsonschema.Schema{Ref: "#/$defs/" + category + "." + e.Name}
	}
	if category != kinds.Check {
		return
	}
	refers := &jsonschema.Schema{
		Type:        "object",
		Description: "a check that asks what another one asks, with the fields of its spec that are given here",
		Properties:  maps.Clone(item.Properties),
	}
	for _, e := range kinds.Of(category) {
		delete(refers.Properties, e.Name)
	}
	refers.Properties["spec"] = &jsonschema.Schema{Type: "object"}
	refers.Properties["check"] = &jsonschema.Schema{
		Type:        "string",
		Description: "the name of the other check",
	}
	defs[category] = &jsonschema.Schema{
		If: &jsonschema.Schema{Required: []string{"check"}}, Then: refers, Else: item,
	}
}

// shortSign lets a sign have its only check in its own fields.
func shortSign(sign, check *jsonschema.Schema) {
	sign.Required = slices.DeleteFunc(
		sign.Required,
		func(name string) bool { return name == "checks" },
	)
	whole := *sign
	fields := maps.Clone(sign.Properties)
	delete(fields, "checks")
	maps.Copy(fields, check.Else.Properties)
	maps.Copy(fields, sign.Properties)
	only := whole
	only.Properties = fields
	refers := only
	refers.Properties = maps.Clone(fields)
	refers.Properties["check"] = check.Then.Properties["check"]
	refers.AdditionalProperties = nil
	*sign = jsonschema.Schema{
		If:   &jsonschema.Schema{Required: []string{"check"}},
		Then: &refers,
		Else: &only,
	}
}

// shortPair describes a pair as files have it.
func shortPair(pair *jsonschema.Schema) {
	source := pair.Properties["arms"].Items.Properties["source"]
	arm := func(doc string) *jsonschema.Schema {
		s := *source
		s.Description = doc
		return &s
	}
	version := func(doc string) *jsonschema.Schema {
		return &jsonschema.Schema{
			Type:        "string",
			Pattern:     scenario.VersionPattern,
			Description: doc,
		}
	}
	pair.Required = []string{"name"}
	maps.Copy(pair.Properties, map[string]*jsonschema.Schema{
		scenario.Vulnerable: version("the version of the subject that has the bug; module and package come from the subject"),
		scenario.Fixed:      version("the version of the subject that has the fix"),
		"like": {Type: "string", Description: "the name of a pair above, whose arms this pair has; " +
			"source says what is changed in both"},
		"source": arm("fields of both arms' sources; mutations come after an arm's own"),
		"arms": {
			Type:                 "object",
			AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
			Description: "in place of vulnerable and fixed, what the arms are built from. What an arm leaves out is derived: " +
				"the subject's module and package, and the scenario's version",
			Properties: map[string]*jsonschema.Schema{
				scenario.Vulnerable: arm("the arm that has the bug"), scenario.Fixed: arm("the arm that has the fix; {} is the subject as it was published"),
			},
			Required: []string{scenario.Vulnerable, scenario.Fixed},
		},
	})
	pair.PropertyOrder = nil
}

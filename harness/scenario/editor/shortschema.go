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
	scenario.LeaveOut(root)
	manifests := spec.Properties["manifests"]
	manifests.Items = &jsonschema.Schema{
		If:   &jsonschema.Schema{Type: "string"},
		Then: &jsonschema.Schema{Description: manifests.Items.Properties["file"].Description},
		Else: manifests.Items,
	}
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

// byName lets the things of a list stand below their names in a mapping instead.
func byName(list *jsonschema.Schema) *jsonschema.Schema {
	thing := list.Items
	if thing.Properties != nil {
		scenario.Optional(thing, "name")
	}
	named := &jsonschema.Schema{
		Type:                 "object",
		Description:          list.Description,
		AdditionalProperties: thing,
		MinProperties:        list.MinItems,
	}
	return &jsonschema.Schema{
		Description: list.Description,
		If:          &jsonschema.Schema{Type: "object"}, Then: named, Else: list,
	}
}

// shortItem lets an item have its spec as the field that is named after its kind, and go without what is derived. Where
// a spec has one field that it can't do without, that may stand for it.
func shortItem(defs map[string]*jsonschema.Schema, category string) {
	item := defs[category]
	scenario.Optional(item, "name", "kind", "target", "sites", "spec")
	for _, e := range kinds.Of(category) {
		spec := defs[category+"."+e.Name]
		item.Properties[e.Name] = &jsonschema.Schema{Ref: "#/$defs/" + category + "." + e.Name}
		if only := scenario.OnlyField(spec); only != "" {
			item.Properties[e.Name] = &jsonschema.Schema{
				If:   &jsonschema.Schema{Type: "object"},
				Then: item.Properties[e.Name],
				Else: spec.Properties[only],
			}
		}
	}
	if category != kinds.Check {
		return
	}
	refers := &jsonschema.Schema{
		Type: "object",
		Description: "a check that asks what another one asks, which has the same name or which check names, with the " +
			"fields of its spec that are given here",
		Properties: maps.Clone(item.Properties),
	}
	for _, e := range kinds.Of(category) {
		delete(refers.Properties, e.Name)
	}
	refers.Properties["spec"] = &jsonschema.Schema{Type: "object"}
	refers.Properties["check"] = &jsonschema.Schema{
		Type:        "string",
		Description: "the name of the other check",
	}
	fields := maps.Clone(refers.Properties) // of whichever check it refers to: an editor marks a kind that is misspelt
	for _, e := range kinds.Of(category) {
		maps.Copy(fields, defs[category+"."+e.Name].Properties)
	}
	refers.PropertyNames = &jsonschema.Schema{Enum: names(fields)}
	defs[category] = &jsonschema.Schema{If: says("anyOf"), Then: item, Else: refers}
}

// names lists the names of fields.
func names(fields map[string]*jsonschema.Schema) (out []any) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		out = append(out, name)
	}
	return out
}

// says matches a check that says what it asks: by a kind, or by one of other fields.
func says(others ...string) *jsonschema.Schema {
	out := &jsonschema.Schema{}
	for _, e := range kinds.Of(kinds.Check) {
		others = append(others, e.Name)
	}
	for _, name := range append(others, "kind") {
		out.AnyOf = append(out.AnyOf, &jsonschema.Schema{Required: []string{name}})
	}
	return out
}

// shortSign lets a sign have its only check in its own fields.
func shortSign(sign, check *jsonschema.Schema) {
	scenario.Optional(sign, "checks", "settle", "is", "name")
	only, refers := *sign, *sign
	only.Properties = maps.Clone(sign.Properties)
	maps.Copy(only.Properties, check.Then.Properties)
	maps.Copy(only.Properties, sign.Properties)
	refers.Properties = maps.Clone(sign.Properties)
	delete(refers.Properties, "checks")
	refers.Properties["check"] = check.Else.Properties["check"]
	refers.AdditionalProperties = nil
	refers.PropertyNames = &jsonschema.Schema{Enum: slices.Concat(check.Else.PropertyNames.Enum, names(sign.Properties))}
	*sign = jsonschema.Schema{If: says("checks"), Then: &only, Else: &refers}
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
		text := &jsonschema.Schema{
			Type:        "string",
			Pattern:     scenario.VersionPattern,
			Description: doc,
		}
		changed := arm(doc)
		return &jsonschema.Schema{
			Description: doc,
			If:          &jsonschema.Schema{Type: "string"}, Then: text, Else: changed,
		}
	}
	pair.Required = []string{"name"}
	maps.Copy(pair.Properties, map[string]*jsonschema.Schema{
		scenario.Vulnerable: version("the version of the subject that has the bug, or what is changed in the subject to have it; " +
			"module and package come from the subject"),
		scenario.Fixed: version("the version of the subject that has the fix; without one it is the subject as it was published"),
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
			Required: []string{scenario.Vulnerable},
		},
	})
	pair.PropertyOrder = nil
}

package scenario

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// schemaID identifies the schema. Nothing is fetched from this address.
const schemaID = "https://relapse.dev/schema/v1alpha1/scenario.json"

// DurationPattern matches what time.ParseDuration accepts, without a sign and without a bare 0.
const DurationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`

// Patterns of names and versions. A name ends up in labels, file names and node names.
const (
	NamePattern    = `^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`
	fixturePattern = `^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?|\./[^\s].*)$`
	urlPattern     = `^https?://[^\s/]+(/\S*)?$`
	VersionPattern = `^v[0-9]+\.[0-9]+\.[0-9]+`
	// parameterPattern excludes characters that a shell or a path would split at.
	parameterPattern = `^[a-zA-Z][-a-zA-Z0-9]*(\.[a-zA-Z][-a-zA-Z0-9]*)*$`
)

// modes lists Chaos Mesh's ways to say how many of the selected targets are meant.
var modes = []any{"one", "all", "fixed", "fixed-percent", "random-max-percent"}

// Schema returns the JSON Schema (draft 2020-12) of a scenario file, made from the Go types of the envelope and of
// every registered kind. Parse validates with it; editors get that of package editor. The error names a kind whose spec type
// can't be expressed.
func Schema() (*jsonschema.Schema, error) {
	root, err := jsonschema.For[Scenario](options())
	if err != nil {
		return nil, fmt.Errorf("making the schema of a scenario: %w", err)
	}
	root.Schema = "https://json-schema.org/draft/2020-12/schema"
	root.ID = schemaID
	root.Title = "relapse scenario"
	root.Defs = map[string]*jsonschema.Schema{}
	for _, category := range []string{kinds.Fault, kinds.Load, kinds.Collector, kinds.Check, kinds.Mutation} {
		if err := addKinds(root.Defs, category); err != nil {
			return nil, err
		}
	}
	constrain(root)
	withoutNull(root)
	return root, nil
}

// options returns schemas for the types whose JSON differs from their Go form. Lists of items point at definitions,
// which also ends the recursion of checks within checks.
func options() *jsonschema.ForOptions {
	duration := &jsonschema.Schema{
		Type:        "string",
		Pattern:     DurationPattern,
		Description: "a duration with its unit: 250ms, 40s, 1m30s",
	}
	list := func(def string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Ref: "#/$defs/" + def}}
	}
	return &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[metav1.Duration](): duration,
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[Scalar]():          {Types: []string{"string", "number", "boolean"}},
		reflect.TypeFor[[]Check]():         list(kinds.Check),
		reflect.TypeFor[[]Collector]():     list(kinds.Collector),
		reflect.TypeFor[[]Mutation]():      list(kinds.Mutation),
		reflect.TypeFor[[]Item]():          list("item"), // constrain tells faults and loads apart
	}}
}

// addKinds defines a category's envelope and the spec of each of its kinds. The envelope chooses the spec by kind.
func addKinds(defs map[string]*jsonschema.Schema, category string) error {
	var envelope *jsonschema.Schema
	var err error
	switch category {
	case kinds.Fault, kinds.Load:
		envelope, err = jsonschema.For[Item](options())
	case kinds.Collector:
		envelope, err = jsonschema.For[Collector](options())
	case kinds.Check:
		envelope, err = jsonschema.For[Check](options())
	case kinds.Mutation:
		envelope, err = jsonschema.For[Mutation](options())
	}
	if err != nil {
		return fmt.Errorf("making the schema of a %s: %w", category, err)
	}
	entries := kinds.Of(category)
	envelope.Properties["kind"].Enum = []any{}
	if len(entries) == 0 { // an empty list isn't encoded, so that any name would be right
		envelope.Properties["kind"].Enum = []any{""}
	}
	for _, e := range entries {
		spec, err := SpecSchema(e)
		if err != nil {
			return err
		}
		name := category + "." + e.Name
		defs[name] = spec
		envelope.Properties["kind"].Enum = append(envelope.Properties["kind"].Enum, e.Name)
		var isKind any = e.Name
		then := &jsonschema.Schema{
			Properties: map[string]*jsonschema.Schema{"spec": {Ref: "#/$defs/" + name}},
		}
		if len(spec.Required) > 0 {
			then.Required = []string{"spec"}
		}
		envelope.AllOf = append(envelope.AllOf, &jsonschema.Schema{
			If: &jsonschema.Schema{
				Properties: map[string]*jsonschema.Schema{
					"kind": {Const: &isKind},
				},
				Required: []string{"kind"},
			},
			Then: then,
		})
	}
	defs[category] = envelope
	return nil
}

// constrain adds constraints that Go's types can't express.
func constrain(root *jsonschema.Schema) {
	constant := func(s *jsonschema.Schema, v any) { s.Const = &v }
	constant(root.Properties["apiVersion"], APIVersion)
	constant(root.Properties["kind"], KindName)
	root.Properties["metadata"].Properties["name"].Pattern = NamePattern
	for _, f := range Failures {
		failure := root.Properties["metadata"].Properties["failure"]
		failure.Enum = append(failure.Enum, f)
	}

	spec := root.Properties["spec"].Properties
	spec["placement"].Enum = []any{"node", "cluster", "workload"}
	spec["version"].Pattern = VersionPattern
	spec["relapse"].Pattern = VersionPattern
	spec["nodes"].Properties["controlPlanes"].Minimum = new(1.0)
	spec["nodes"].Properties["workers"].Minimum = new(1.0)
	spec["nodes"].Properties["idle"].Minimum = new(0.0)
	spec["nodes"].Properties["simulated"].Minimum = new(1.0)
	var workload any = "workload"
	root.Properties["spec"].AllOf = []*jsonschema.Schema{{
		If: &jsonschema.Schema{
			Properties: map[string]*jsonschema.Schema{"placement": {Const: &workload}},
			Required:   []string{"placement"},
		},
		Then: &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"nodes": {Required: []string{"workers"}}}},
	}}
	spec["manifests"].Items.Properties["each"].Enum = []any{"arm"}
	spec["manifests"].Items.Properties["file"].MinLength = new(1)
	for _, name := range []string{"title", "description", "subject"} {
		spec[name].MinLength = new(1)
	}
	for _, name := range []string{"pairs", "collectors", "steady", "exposure", "signature", "healed", "providers"} {
		spec[name].MinItems = new(1)
	}
	spec["references"].Items.Pattern = urlPattern
	spec["match"].Properties["packages"].Items.MinLength = new(1)
	spec["survey"].Properties["packages"].Items.MinLength = new(1)
	spec["faults"].Items = &jsonschema.Schema{Ref: "#/$defs/fault"}
	spec["loads"].Items = &jsonschema.Schema{Ref: "#/$defs/load"}
	spec["seams"].Items.Enum = names(kinds.Seam)
	parameter := spec["parameters"].Items.Properties
	parameter["name"].Pattern = parameterPattern
	for _, t := range types {
		parameter["type"].Enum = append(parameter["type"].Enum, t)
	}
	parameter["doc"].MinLength = new(1)
	// A default that looks like a number would lose its form: 1.10 is 1.1.
	var isString any = TypeString
	spec["parameters"].Items.If = &jsonschema.Schema{
		Properties: map[string]*jsonschema.Schema{
			"type": {Const: &isString},
		},
		Required: []string{"type"},
	}
	spec["parameters"].Items.Then = &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{
		"default": {Type: "string", Description: parameter["default"].Description},
	}}
	spec["args"].AdditionalProperties.AdditionalProperties.Types = []string{
		"string",
		"number",
		"boolean",
	}
	spec["args"].AdditionalProperties.AdditionalProperties.Type = ""
	sign := spec["match"].Properties["signs"]
	sign.MinItems, sign.Items.Properties["checks"].MinItems = new(1), new(1)
	sign.Items.Properties["is"].Enum = []any{Decisive, Suspicious}
	sign.Items.Properties["name"].Pattern = NamePattern
	for _, name := range []string{"ground", "settle"} {
		sign.Items.Properties[name].MinLength = new(1)
	}
	spec["restart"].Properties["roles"].Items.Enum = []any{Vulnerable, Fixed, Candidate}
	spec["restart"].Properties["roles"].MinItems = new(1)
	omission := spec["health"].Properties["without"].Items.Properties
	omission["part"].Enum, omission["why"].MinLength = []any{HealthStuck, HealthHeap, HealthCPU}, new(1)

	pair := spec["pairs"].Items.Properties
	pair["name"].Pattern = NamePattern
	pair["arms"].MinItems = new(1)
	pair["clusterVersion"].Pattern = VersionPattern
	arm := pair["arms"].Items.Properties
	arm["name"].Pattern = NamePattern
	arm["role"].Enum = []any{Vulnerable, Fixed}
	for _, source := range []*jsonschema.Schema{arm["source"], arm["source"].Properties["before"].Items} {
		source.Properties["version"].Pattern = VersionPattern
		source.Properties["fixture"].Pattern = fixturePattern
		source.Properties["replace"].AdditionalProperties.Pattern = VersionPattern
	}
	arm["source"].Properties["before"].MinItems = new(1)

	root.Defs[kinds.Mutation].Properties["sites"].Minimum = new(1.0)
	root.Defs[kinds.Check].Properties["phase"].Enum = []any{
		"steady",
		"baseline",
		"fault",
		"recovery",
	}
	// Of an empty list nobody could tell whether it means none or all.
	for _, field := range []string{"pairs", "providers", "anyOf"} {
		root.Defs[kinds.Check].Properties[field].MinItems = new(1)
	}
	root.Defs[kinds.Collector].Properties["providers"].MinItems = new(1)
	root.Defs[kinds.Load].Properties["phase"].Enum = []any{"baseline", "fault", "recovery"}
	for _, category := range []string{kinds.Fault, kinds.Load, kinds.Collector, kinds.Check} {
		root.Defs[category].Properties["name"].Pattern = NamePattern
	}
	for _, category := range []string{kinds.Fault, kinds.Load} {
		root.Defs[category].Properties["target"].Properties["mode"].Enum = modes
	}
}

func names(category string) []any {
	out := []any{}
	for _, e := range kinds.Of(category) {
		out = append(out, e.Name)
	}
	return out
}

// withoutNull removes null from the types of s and of everything below it: a key without a value is a mistake.
func withoutNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	s.Types = slices.DeleteFunc(s.Types, func(t string) bool { return t == "null" })
	if len(s.Types) == 1 {
		s.Type, s.Types = s.Types[0], nil
	}
	if len(s.Types) == 0 {
		s.Types = nil
	}
	for _, p := range s.Properties {
		withoutNull(p)
	}
	for _, p := range s.Defs {
		withoutNull(p)
	}
	withoutNull(s.Items)
	if s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil {
		withoutNull(s.AdditionalProperties)
	}
}

package scenario

import (
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// SpecWithChoices returns SpecSchema with the values that fields are limited to, for people and editors. Parse leaves
// such a field to its kind, whose complaint says more than a schema's.
func SpecWithChoices(e kinds.Entry) (*jsonschema.Schema, error) {
	s, err := SpecSchema(e)
	if err != nil {
		return nil, err
	}
	if c, ok := e.New().(kinds.Chooser); ok {
		for name, values := range c.Choices() {
			limit(s.Properties[name], values)
		}
	}
	return s, nil
}

// limit says that a field, or each member of a list, has one of some values.
func limit(s *jsonschema.Schema, values []string) {
	if s.Items != nil {
		s = s.Items
	}
	s.Enum = nil
	for _, v := range values {
		s.Enum = append(s.Enum, v)
	}
}

// limitKeys says that the keys of a mapping are some names.
func limitKeys(s *jsonschema.Schema, names []string) {
	s.PropertyNames = &jsonschema.Schema{}
	limit(s.PropertyNames, names)
}

// AddChoices adds to the schema of a scenario the closed sets that Schema leaves to rules: components, subjects,
// providers, and what kinds limit their fields to.
func AddChoices(root *jsonschema.Schema) error {
	for _, category := range []string{kinds.Fault, kinds.Load, kinds.Collector, kinds.Check, kinds.Mutation} {
		for _, e := range kinds.Of(category) {
			s, err := SpecWithChoices(e)
			if err != nil {
				return err
			}
			root.Defs[category+"."+e.Name] = s
		}
	}
	all := component.Names(nil)
	spec := root.Properties["spec"].Properties
	for _, category := range []string{kinds.Fault, kinds.Load} {
		limit(
			root.Defs[category].Properties["target"].Properties["selector"].Properties["component"],
			all,
		)
	}
	limit(root.Defs[kinds.Collector].Properties["component"], all)
	for _, s := range []*jsonschema.Schema{spec["providers"], root.Defs[kinds.Collector].Properties["providers"],
		root.Defs[kinds.Check].Properties["providers"]} {
		limit(s, providers.All)
	}
	limitKeys(spec["args"], component.Names(component.Flagged))
	limitKeys(spec["pairs"].Items.Properties["args"], component.Names(component.Flagged))
	limitKeys(spec["files"], component.Names(component.Limited))
	limitKeys(spec["memory"], component.Names(component.Limited))
	spec["subject"].Description += "; with placement node or cluster one of " + strings.Join(
		Subjects(),
		", ",
	) +
		"; with placement workload a Deployment of the scenario's manifests"
	root.Properties["spec"].AllOf = append(
		slices.Clone(root.Properties["spec"].AllOf),
		subjects(),
	)
	return nil
}

// subjects says which subjects an arm can be that has a node or a cluster to itself. With placement workload a subject
// is a Deployment of the scenario's own manifests, by any name.
func subjects() *jsonschema.Schema {
	own, subject := &jsonschema.Schema{}, &jsonschema.Schema{}
	limit(own, []string{"node", "cluster"})
	limit(subject, Subjects())
	return &jsonschema.Schema{
		If: &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"placement": own},
			Required: []string{"placement"}},
		Then: &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"subject": subject}},
	}
}

// Subjects returns the components that can be the subject of a scenario whose arms have a node or a cluster each.
func Subjects() []string { return component.Names(component.Replaceable) }

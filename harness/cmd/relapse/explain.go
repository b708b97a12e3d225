package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/printing"
)

func newExplainCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "explain KIND|SCENARIO",
		Short: "Explain a kind (what it does, its fields, an example) or a scenario (its pairs and parameters)",
		Example: `  relapse explain fault.criLatency
  relapse explain criLatency
  relapse explain pleg-deadlock`,
		Args: exactly(1, "kind or scenario"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := findKind(args[0])
			if err == nil {
				return explain(cmd.OutOrStdout(), e)
			}
			if !namesScenario(cmd, args[0]) {
				return err
			}
			s, err := loadScenario(cmd, args[0])
			if err != nil {
				return err
			}
			return explainScenario(cmd.OutOrStdout(), s)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			out, _ := completeScenarios(cmd, args, prefix) // on an error, kinds can still be completed
			for _, c := range kinds.Categories {
				for _, e := range kinds.Of(c) {
					out = append(out, c+"."+e.Name)
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// findKind finds a kind by "category.name", or by a name that only one category has.
func findKind(name string) (kinds.Entry, error) {
	if category, bare, ok := strings.Cut(name, "."); ok {
		if e, ok := kinds.Lookup(category, bare); ok {
			return e, nil
		}
		return kinds.Entry{}, usage(fmt.Errorf("there is no kind %q", name), "relapse list "+category+"s")
	}
	var found []kinds.Entry
	var full []string
	for _, c := range kinds.Categories {
		if e, ok := kinds.Lookup(c, name); ok {
			found = append(found, e)
			full = append(full, c+"."+name)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return kinds.Entry{}, usage(fmt.Errorf("there is no kind or scenario %q", name),
			"relapse list scenarios|"+strings.Join(plurals(), "|"))
	}
	return kinds.Entry{}, usage(fmt.Errorf("%q is ambiguous (want one of %s)", name, strings.Join(full, ", ")),
		"relapse explain "+full[0])
}

func explain(out io.Writer, e kinds.Entry) error {
	s, err := scenario.SpecSchema(e)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s.%s\n\n%s\n", e.Category, e.Name, strings.TrimSpace(e.Doc))
	if e.ChaosMesh != "" {
		fmt.Fprintf(&b, "\nCorresponds to Chaos Mesh's %s.\n", e.ChaosMesh)
	}
	b.WriteString("\nFields of spec:\n")
	if len(s.Properties) == 0 {
		b.WriteString("  (none)\n")
	}
	fields := printing.Table{Indent: "  "}
	addFields(&fields, "", s)
	b.WriteString(fields.Text())
	if example := strings.TrimSpace(e.Example); example != "" {
		b.WriteString("\nExample:\n")
		for l := range strings.Lines(example) {
			b.WriteString("  " + l)
		}
		b.WriteString("\n")
	}
	_, err = io.WriteString(out, b.String())
	return err
}

// addFields adds the name, type, state and description of each property. Nested properties have dotted names.
func addFields(t *printing.Table, prefix string, s *jsonschema.Schema) {
	for _, name := range s.PropertyOrder {
		p := s.Properties[name]
		state := ""
		switch {
		case p.Default != nil && p.Properties == nil:
			state = "default " + string(p.Default)
		case slices.Contains(s.Required, name):
			state = "required"
		}
		t.Add(prefix+name, typeName(p), state, p.Description)
		switch {
		case p.Properties != nil:
			addFields(t, prefix+name+".", p)
		case p.Items != nil && p.Items.Properties != nil:
			addFields(t, prefix+name+"[].", p.Items)
		}
	}
}

func typeName(s *jsonschema.Schema) string {
	switch {
	case scenario.IsDuration(s):
		return "duration"
	case s.Items != nil:
		return "list of " + typeName(s.Items)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil:
		return "map of " + typeName(s.AdditionalProperties)
	case s.Type == "" && len(s.Types) == 0:
		return "any"
	case s.Type == "":
		return strings.Join(s.Types, " or ")
	}
	return s.Type
}

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/internal/printing"
)

func newExplainCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "explain KIND|SCENARIO|FIELD|COMPONENT|" + whyInconclusive,
		Short: "Explain a kind, a scenario, a field of a scenario's file, a component that can be a subject, or Inconclusive",
		Long: `Explain shows what a kind does, its fields and an example; a scenario's pairs and parameters; what a field of a
scenario's or a candidate's file means, and the fields below it; how a component runs, and whether it can be a
scenario's subject. Of several meanings of a word it takes the first in this order, and a component as well.

A field goes by its path or the end of it, written as in a complaint of relapse validate or as in --set.

Explain inconclusive lists what can keep a run from having an answer: how to see it, and the next step.`,
		Example: `  relapse explain fault.criLatency
  relapse explain criLatency
  relapse explain pleg-deadlock
  relapse explain phases
  relapse explain pairs.arms.source
  relapse explain kube-scheduler
  relapse explain inconclusive`,
		Args:              exactly(1, "kind, scenario, field or component"),
		RunE:              func(cmd *cobra.Command, args []string) error { return explainWord(cmd, args[0]) },
		ValidArgsFunction: completeExplain,
	}
}

// whyInconclusive is the word for all causes of an Inconclusive verdict.
const whyInconclusive = "inconclusive"

// explainWord explains the first of a kind, a scenario, a component and a field that a word means.
func explainWord(cmd *cobra.Command, word string) error {
	if strings.EqualFold(word, whyInconclusive) {
		return verdict.WriteCauses(cmd.OutOrStdout())
	}
	e, notKind := findKind(word)
	if notKind == nil {
		if err := explain(cmd.OutOrStdout(), e); err != nil {
			return err
		}
		if _, known := component.Of(word); !known {
			return nil
		}
		fmt.Fprintln(cmd.OutOrStdout())
		_, err := explainSubject(cmd, word)
		return err
	}
	if namesScenario(cmd, word) {
		s, err := loadScenario(cmd, word)
		if err != nil {
			return err
		}
		return explainScenario(cmd, s)
	}
	fields, err := scenario.FindFields(word)
	if err != nil {
		return err
	}
	if _, known := component.Of(word); !known && len(fields) > 0 {
		return explainFields(cmd.OutOrStdout(), fields)
	}
	if done, err := explainSubject(cmd, word); done || err != nil {
		if all := kindsNamed(word); err == nil && len(all) > 0 {
			fmt.Fprintf(cmd.OutOrStdout(), "\nKinds of that name: %s\n", strings.Join(all, ", "))
		}
		return err
	}
	return unexplained(cmd, word, notKind)
}

// unexplained returns the error for a word that means nothing. notKind says why the word is no kind.
func unexplained(cmd *cobra.Command, word string, notKind error) error {
	if i := strings.LastIndex(word, ".spec."); i > 0 {
		fields, err := scenario.FindFields(word[:i+len(".spec")])
		if err == nil && len(fields) > 0 {
			return usage(fmt.Errorf("what is below %s depends on the kind", fields[0].Path),
				"relapse explain KIND, with the kind that stands beside spec")
		}
	}
	if category, _, _ := strings.Cut(word, "."); slices.Contains(kinds.Categories, category) {
		return notKind // which says what is near
	}
	names, _ := completeExplain(cmd, nil, "")
	near := nearest(word, names)
	for _, name := range names { // whatever the case, and without the category
		_, bare, ok := strings.Cut(name, ".")
		switch {
		case !ok:
		case word == bare: // of several categories, as notKind says
			return notKind
		case strings.EqualFold(word, bare), near == "" && nearest(word, []string{bare}) != "":
			near = name
		}
	}
	if near != "" {
		return usage(fmt.Errorf("%w; did you mean %s?", notKind, near), "relapse explain "+near)
	}
	return notKind
}

func completeExplain(
	cmd *cobra.Command,
	args []string,
	prefix string,
) ([]string, cobra.ShellCompDirective) {
	out, _ := completeScenarios(cmd, args, prefix) // on an error, the rest can still be completed
	for _, c := range kinds.Categories {
		for _, name := range kindsOf(c) {
			out = append(out, c+"."+name)
		}
	}
	out = append(append(out, component.Names(nil)...), whyInconclusive)
	if fields, err := scenario.Fields(); err == nil {
		for _, f := range fields {
			out = append(out, f.Path)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// kindsOf returns the names of the kinds of a category.
func kindsOf(category string) (out []string) {
	for _, e := range kinds.Of(category) {
		out = append(out, e.Name)
	}
	return out
}

// kindsNamed returns "category.name" of each kind that has a name.
func kindsNamed(name string) (out []string) {
	for _, c := range kinds.Categories {
		if _, ok := kinds.Lookup(c, name); ok {
			out = append(out, c+"."+name)
		}
	}
	return out
}

// findKind finds a kind by "category.name", or by a name that only one category has.
func findKind(name string) (kinds.Entry, error) {
	if category, bare, ok := strings.Cut(name, "."); ok {
		if e, ok := kinds.Lookup(category, bare); ok {
			return e, nil
		}
		if slices.Contains(kinds.Categories, category) {
			said, hint := fmt.Errorf("there is no kind %q", name), "relapse list "+category+"s"
			if near := nearest(bare, kindsOf(category)); near != "" {
				said, hint = fmt.Errorf(
					"%w; did you mean %s.%s?",
					said,
					category,
					near,
				), "relapse explain "+category+"."+near
			}
			return kinds.Entry{}, usage(said, hint)
		}
	}
	switch full := kindsNamed(name); len(full) {
	case 1:
		category, _, _ := strings.Cut(full[0], ".")
		e, _ := kinds.Lookup(category, name)
		return e, nil
	case 0:
		return kinds.Entry{}, usage(
			fmt.Errorf("there is no kind, scenario, field or component %q", name),
			"relapse list scenarios|"+strings.Join(plurals(), "|"),
		)
	default:
		return kinds.Entry{}, usage(
			fmt.Errorf("%q is ambiguous (want one of %s)", name, strings.Join(full, ", ")),
			"relapse explain "+full[0],
		)
	}
}

func explain(out io.Writer, e kinds.Entry) error {
	s, err := scenario.SpecWithChoices(e)
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
	b.WriteString(fields.Fit(width(out)))
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
		t.Add(prefix+name, typeName(p), state, withChoices(p))
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

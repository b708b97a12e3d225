package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/printing"
)

// aboutPaths ends the explanation of a field.
const aboutPaths = `
Complaints name a place in a file by numbers from 0: spec.collectors[0].every. --set names it by the members' names,
and without spec: pairs.modern.arms.fixed.source.version=v1.34.8.
`

// explainFields explains the fields of a path, those that mean the same together.
func explainFields(out io.Writer, fields []scenario.Field) error {
	var b strings.Builder
	for len(fields) > 0 {
		first, rest := fields[0], []scenario.Field(nil)
		fmt.Fprintf(&b, "field %s of a %s\n", first.Path, first.In)
		for _, f := range fields[1:] {
			if sameField(first, f) {
				fmt.Fprintf(&b, "field %s of a %s\n", f.Path, f.In)
			} else {
				rest = append(rest, f)
			}
		}
		fmt.Fprintf(&b, "\n%s\n", describeField(first))
		if len(first.Below) > 0 {
			b.WriteString("\nFields below:\n")
			t := printing.Table{Indent: "  "}
			for _, f := range first.Below {
				t.Add(
					strings.TrimLeft(strings.TrimPrefix(f.Path, first.Path), "[]."),
					typeName(f.Schema),
					required(f.Required),
					withChoices(f.Schema),
				)
			}
			b.WriteString(t.Fit(width(out)))
		}
		if fields = rest; len(fields) > 0 {
			b.WriteString("\n")
		}
	}
	b.WriteString(aboutPaths)
	_, err := io.WriteString(out, b.String())
	return err
}

// sameField reports whether two fields are explained by the same words.
func sameField(a, b scenario.Field) bool {
	return a.In == b.In && describeField(a) == describeField(b) && len(a.Below) == len(b.Below)
}

// describeField says what a field takes, and whether it has to be there.
func describeField(f scenario.Field) string {
	said := typeName(f.Schema)
	if f.Required {
		said += ", required"
	}
	if doc := withChoices(f.Schema); doc != "" {
		said += ": " + doc
	}
	if strings.HasSuffix(f.Path, "[].spec") {
		said += "\nIts fields depend on the kind: relapse explain KIND lists them."
	}
	return said
}

func required(yes bool) string {
	if yes {
		return "required"
	}
	return ""
}

// withChoices returns a field's description with the values or keys that the field is limited to.
func withChoices(s *jsonschema.Schema) string {
	parts := []string{s.Description}
	in := s
	if s.Items != nil {
		in = s.Items
	}
	if len(in.Enum) > 0 {
		parts = append(parts, "one of "+choices(in.Enum))
	}
	if s.PropertyNames != nil {
		parts = append(parts, "its keys are one of "+choices(s.PropertyNames.Enum))
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}

func choices(values []any) string {
	var out []string
	for _, v := range values {
		out = append(out, fmt.Sprint(v))
	}
	return strings.Join(out, ", ")
}

package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Defaults writes the scenario as YAML with everything filled in that its file leaves open. What was filled in is marked by the
// comment "# default". The comments of the file itself are not repeated.
func Defaults(w io.Writer, s *scenario.Scenario) error {
	given, err := ordered(s)
	if err != nil {
		return err
	}
	filled, err := fillAll(s)
	if err != nil {
		return err
	}
	all, err := ordered(filled)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := emit(&b, all, given, true, ""); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// fillAll returns a copy of s in which defaults are values.
func fillAll(s *scenario.Scenario) (*scenario.Scenario, error) {
	out := *s
	out.Spec.Pairs = slices.Clone(s.Spec.Pairs)
	if len(out.Spec.Pairs) == 1 {
		out.Spec.Pairs[0].Default = true
	}
	var err error
	fill := func(category, kind, name string, spec json.RawMessage) json.RawMessage {
		var filled []byte
		v, e := decode[any](category, kind, name, spec)
		if e == nil {
			filled, e = json.Marshal(v)
		}
		err = cmp.Or(err, e)
		return filled
	}
	out.Spec.Collectors = slices.Clone(s.Spec.Collectors)
	for i, c := range out.Spec.Collectors {
		out.Spec.Collectors[i].Spec = fill(kinds.Collector, c.Kind, c.Name, c.Spec)
	}
	out.Spec.Loads, out.Spec.Faults = slices.Clone(s.Spec.Loads), slices.Clone(s.Spec.Faults)
	for i, it := range out.Spec.Loads {
		out.Spec.Loads[i].Spec = fill(kinds.Load, it.Kind, it.Name, it.Spec)
	}
	for i, it := range out.Spec.Faults {
		out.Spec.Faults[i].Spec = fill(kinds.Fault, it.Kind, it.Name, it.Spec)
	}
	var group func([]scenario.Check, string) []scenario.Check
	group = func(in []scenario.Check, phase string) []scenario.Check {
		list := slices.Clone(in)
		for i, c := range list {
			if c.Phase == "" {
				list[i].Phase = phase
			}
			if len(c.AnyOf) > 0 {
				list[i].AnyOf = group(c.AnyOf, list[i].Phase)
			} else {
				list[i].Spec = fill(kinds.Check, c.Kind, c.Name, c.Spec)
			}
		}
		return list
	}
	out.Spec.Steady = group(s.Spec.Steady, check.Steady)
	out.Spec.Exposure = group(s.Spec.Exposure, check.Fault)
	out.Spec.Signature = group(s.Spec.Signature, check.Recovery)
	out.Spec.Healed = group(s.Spec.Healed, check.Recovery)
	out.Spec.Information = group(s.Spec.Information, check.Recovery)
	return &out, err
}

// field is a member of an object whose order is kept.
type field struct {
	name  string
	value any // []field, []any or a scalar
}

// ordered is v's JSON with objects in the order in which encoding/json writes them: that of the structs.
func ordered(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding a scenario: %w", err)
	}
	return orderedJSON(raw)
}

// orderedJSON reads JSON and keeps the order of members.
func orderedJSON(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var next func() (any, error)
	next = func() (any, error) {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		switch t {
		case json.Delim('{'):
			out := []field{}
			for dec.More() {
				name, err := dec.Token()
				if err != nil {
					return nil, err
				}
				value, err := next()
				if err != nil {
					return nil, err
				}
				out = append(out, field{name.(string), value})
			}
			_, err = dec.Token()
			return out, err
		case json.Delim('['):
			out := []any{}
			for dec.More() {
				value, err := next()
				if err != nil {
					return nil, err
				}
				out = append(out, value)
			}
			_, err = dec.Token()
			return out, err
		}
		return t, nil
	}
	return next()
}

// emit writes v below indent. Given is the same place of the file, and was says whether the file has it at all.
func emit(b *bytes.Buffer, v, given any, was bool, indent string) error {
	switch v := v.(type) {
	case []field:
		before, _ := given.([]field)
		for _, f := range v {
			i := slices.IndexFunc(before, func(g field) bool { return g.name == f.name })
			var old any
			if i >= 0 {
				old = before[i].value
			}
			if err := emitMember(b, f, old, was && i >= 0, was, indent); err != nil {
				return err
			}
		}
	case []any:
		before, _ := given.([]any)
		for i, e := range v {
			var old any
			if i < len(before) {
				old = before[i]
			}
			var inner bytes.Buffer
			if err := emitElement(&inner, e, old, was && i < len(before), indent+"  "); err != nil {
				return err
			}
			b.WriteString(indent + "- " + strings.TrimPrefix(inner.String(), indent+"  "))
		}
	}
	return nil
}

func emitElement(b *bytes.Buffer, e, old any, was bool, indent string) error {
	switch e := e.(type) {
	case []field:
		if len(e) > 0 {
			return emit(b, e, old, was, indent)
		}
	case []any:
		if len(e) > 0 {
			return emit(b, e, old, was, indent)
		}
	}
	text, err := plain(e)
	b.WriteString(indent + text + "\n")
	return err
}

// emitMember writes one member of an object. Only the outermost thing that the file lacks is marked.
func emitMember(b *bytes.Buffer, f field, old any, was, parentWas bool, indent string) error {
	mark := ""
	if parentWas && !was {
		mark = "  # default"
	}
	nested := false
	switch v := f.value.(type) {
	case []field:
		nested = len(v) > 0
	case []any:
		nested = len(v) > 0
	case string:
		if strings.Contains(strings.TrimRight(v, "\n"), "\n") {
			b.WriteString(indent + f.name + ": |" + chomp(v) + mark + "\n")
			for l := range strings.Lines(strings.TrimRight(v, "\n")) {
				b.WriteString(strings.TrimRight(indent+"  "+strings.TrimSuffix(l, "\n"), " ") + "\n")
			}
			return nil
		}
	}
	name, err := plain(f.name)
	if err != nil {
		return err
	}
	if nested {
		b.WriteString(indent + name + ":" + mark + "\n")
		return emit(b, f.value, old, was, indent+"  ")
	}
	text, err := plain(f.value)
	b.WriteString(indent + name + ": " + text + mark + "\n")
	return err
}

// chomp is what a block scalar's header needs so that its end stays as it was.
func chomp(s string) string {
	if strings.HasSuffix(s, "\n") {
		return ""
	}
	return "-"
}

// plain writes a scalar or an empty collection on one line.
func plain(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "null", nil
	case []field:
		return "{}", nil
	case []any:
		return "[]", nil
	case json.Number:
		return v.String(), nil
	case string:
		if strings.Contains(v, "\n") {
			return strconv.Quote(v), nil
		}
	}
	raw, err := yaml.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("writing %v as YAML: %w", v, err)
	}
	return strings.TrimSuffix(string(raw), "\n"), nil
}

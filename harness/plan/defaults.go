package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Defaults writes the scenario as YAML, with a default for everything that its file leaves open. Each default has the
// comment "default", behind or above it. The comments of the file itself are not repeated.
func Defaults(w io.Writer, s *scenario.Scenario) error {
	filled, err := fillAll(s)
	if err != nil {
		return err
	}
	given, err := ordered(s)
	if err != nil {
		return err
	}
	all, err := ordered(filled)
	if err != nil {
		return err
	}
	marks := yaml.CommentMap{}
	mark(marks, "$", all, given)
	enc := yaml.NewEncoder(w, yaml.IndentSequence(true), yaml.UseLiteralStyleIfMultiline(true), yaml.WithComment(marks))
	if err := enc.Encode(all); err != nil {
		return fmt.Errorf("writing scenario %s as YAML: %w", s.Metadata.Name, err)
	}
	return nil
}

// ordered converts v to plain values. Objects become a yaml.MapSlice with the fields in the order of the structs.
func ordered(v any) (out any, err error) {
	raw, err := json.Marshal(v)
	if err == nil {
		err = yaml.UnmarshalWithOptions(raw, &out, yaml.UseOrderedMap())
	}
	if err != nil {
		return nil, fmt.Errorf("encoding a scenario: %w", err)
	}
	return out, nil
}

// mark adds a comment for each value that given doesn't have, by its YAML path. Values inside such a value get none.
func mark(marks yaml.CommentMap, path string, v, given any) {
	switch v := v.(type) {
	case yaml.MapSlice:
		before, _ := given.(yaml.MapSlice)
		for _, f := range v {
			at := fmt.Sprintf("%s.'%s'", path, f.Key)
			i := slices.IndexFunc(before, func(g yaml.MapItem) bool { return g.Key == f.Key })
			if i < 0 {
				marks[at] = []*yaml.Comment{comment(f.Value)}
				continue
			}
			mark(marks, at, f.Value, before[i].Value)
		}
	case []any:
		before, _ := given.([]any)
		for i, e := range v[:min(len(v), len(before))] {
			mark(marks, fmt.Sprintf("%s[%d]", path, i), e, before[i])
		}
	}
}

// comment returns the comment "default" for a value. It goes above an empty list or a text of several lines, where the
// encoder can't put it behind.
func comment(v any) *yaml.Comment {
	text, _ := v.(string)
	if list, ok := v.([]any); ok && len(list) == 0 || strings.Contains(text, "\n") {
		return yaml.HeadComment(" default")
	}
	return yaml.LineComment(" default")
}

// fillAll returns a copy of s with the defaults filled in.
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
			list[i].Phase = cmp.Or(c.Phase, phase)
			if len(c.AnyOf) > 0 {
				list[i].AnyOf = group(c.AnyOf, list[i].Phase)
			} else {
				list[i].Spec = fill(kinds.Check, c.Kind, c.Name, c.Spec)
			}
		}
		return list
	}
	for _, l := range out.Spec.CheckLists() {
		*l.Checks = group(*l.Checks, l.Phase)
	}
	return &out, err
}

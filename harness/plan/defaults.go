package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Defaults writes the scenario as YAML, with everything that its file leaves open. What comes from the subject, the
// scenario's version or another check has the comment "derived", and what is a kind's default the comment "default",
// behind or above it. The comments of the file itself are not repeated.
func Defaults(w io.Writer, s *scenario.Scenario) error {
	filled, err := fillAll(s)
	if err != nil {
		return err
	}
	all, err := ordered(filled)
	if err != nil {
		return err
	}
	given, err := ordered(s)
	if err != nil {
		return err
	}
	derived := map[string]bool{}
	for _, path := range s.Derived() {
		given = without(given, path)
		derived[yamlPath(path)] = true
	}
	all, given = inFile(all), inFile(given)
	marks := yaml.CommentMap{}
	mark(marks, derived, nil, all, given)
	enc := yaml.NewEncoder(
		w,
		yaml.IndentSequence(true),
		yaml.UseLiteralStyleIfMultiline(true),
		yaml.WithComment(marks),
	)
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

// without returns v without the value at path, whose steps are keys and indexes. In a list an empty value stays in its
// place.
func without(v any, path []string) any {
	switch v := v.(type) {
	case yaml.MapSlice:
		i := slices.IndexFunc(v, func(m yaml.MapItem) bool { return m.Key == path[0] })
		if i >= 0 && len(path) == 1 {
			return slices.Delete(v, i, i+1)
		} else if i >= 0 {
			v[i].Value = without(v[i].Value, path[1:])
		}
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(v) {
			if len(path) == 1 {
				v[i] = nil
			} else {
				v[i] = without(v[i], path[1:])
			}
		}
	}
	return v
}

// inFile gives the pairs of an ordered scenario the form that they have in a file: each arm's source under its role.
func inFile(scenario any) any {
	pairs, _ := field(field(scenario, "spec"), "pairs").([]any)
	for _, p := range pairs {
		p, _ := p.(yaml.MapSlice)
		for i := range p {
			arms, ok := p[i].Value.([]any)
			if p[i].Key != "arms" || !ok {
				continue
			}
			short := yaml.MapSlice{}
			for j, role := range roles(len(arms)) {
				if source, ok := field(arms[j], "source").(yaml.MapSlice); ok {
					short = append(short, yaml.MapItem{Key: role, Value: source})
				}
			}
			p[i].Value = short
		}
	}
	return scenario
}

// roles returns the roles of a pair's arms, in the order in which a scenario from a file has them.
func roles(n int) []string { return []string{scenario.Vulnerable, scenario.Fixed}[:min(n, 2)] }

// field returns a field of a mapping, or nil if there is none.
func field(v any, name string) any {
	m, _ := v.(yaml.MapSlice)
	for _, f := range m {
		if f.Key == name {
			return f.Value
		}
	}
	return nil
}

// yamlPath returns the path of a value as a comment map has it. The path of an arm's source is that of the file.
func yamlPath(path []string) string {
	if len(path) > 5 && path[1] == "pairs" && path[3] == "arms" && path[5] == "source" {
		if i, err := strconv.Atoi(path[4]); err == nil && i < 2 {
			path = slices.Concat(path[:4], []string{roles(2)[i]}, path[6:])
		}
	}
	out := "$"
	for _, step := range path {
		if _, err := strconv.Atoi(step); err == nil {
			out += "[" + step + "]"
		} else {
			out += ".'" + step + "'"
		}
	}
	return out
}

// mark adds a comment for each value that given doesn't have. Values inside such a value get none.
func mark(marks yaml.CommentMap, derived map[string]bool, path []string, v, given any) {
	switch v := v.(type) {
	case yaml.MapSlice:
		before, _ := given.(yaml.MapSlice)
		for _, f := range v {
			at := slices.Concat(path, []string{fmt.Sprint(f.Key)})
			i := slices.IndexFunc(before, func(g yaml.MapItem) bool { return g.Key == f.Key })
			if i >= 0 {
				mark(marks, derived, at, f.Value, before[i].Value)
				continue
			}
			text := " default"
			if derived[yamlPath(at)] {
				text = " derived"
			}
			marks[yamlPath(at)] = []*yaml.Comment{comment(f.Value, text)}
		}
	case []any:
		before, _ := given.([]any)
		for i, e := range v[:min(len(v), len(before))] {
			mark(marks, derived, slices.Concat(path, []string{strconv.Itoa(i)}), e, before[i])
		}
	}
}

// comment returns a comment with text for a value. It goes above an empty list or a text of several lines, where the
// encoder can't put it behind.
func comment(v any, text string) *yaml.Comment {
	value, _ := v.(string)
	if list, ok := v.([]any); ok && len(list) == 0 || strings.Contains(value, "\n") {
		return yaml.HeadComment(text)
	}
	return yaml.LineComment(text)
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

package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// words returns the description that a spec gives of itself, or else its kind with its fields.
func words(kind string, spec any) string {
	if d, ok := spec.(Describer); ok {
		return d.Describe()
	}
	tree, err := ordered(spec)
	if members, ok := tree.(yaml.MapSlice); err == nil && ok {
		if len(members) == 0 {
			return kind
		}
		return kind + " (" + strings.TrimSuffix(strings.TrimPrefix(flow(members), "{"), "}") + ")"
	}
	return fmt.Sprintf("%s %v", kind, spec)
}

// rewrite returns a mutation as a Describer if its kind is one, else its spec as it was given.
func rewrite(m scenario.Mutation) any {
	if v, err := kinds.Decode[any](kinds.Mutation, m.Kind, m.Spec); err == nil {
		if d, ok := v.(Describer); ok {
			return d
		}
	}
	return m.Spec
}

// flow writes a tree on one line, like YAML's flow style but with bare strings. It is for people, not for parsing.
func flow(v any) string {
	var parts []string
	switch v := v.(type) {
	case yaml.MapSlice:
		for _, f := range v {
			parts = append(parts, fmt.Sprint(f.Key)+": "+flow(f.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, e := range v {
			parts = append(parts, flow(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(v)
}

func source(s scenario.Source) string {
	switch {
	case s.Binary != "":
		return "the executable " + s.Binary + statedVersion(s.Version)
	case s.Image != "":
		return "the executable in image " + s.Image + statedVersion(s.Version)
	case s.NodeImage != "":
		return "the kubelet of node image " + s.NodeImage + statedVersion(s.Version)
	case s.Fixture != "":
		return "the fixture " + s.Fixture + withModules(s.Replace)
	case s.Patch != "":
		return s.Package + " of " + s.Module + "@" + s.Version + " with " + s.Change()
	case s.Commit != "":
		return s.Package + " from " + s.Change()
	case s.Dir != "":
		return s.Package + " from " + s.Dir
	case s.Fork != "":
		return s.Package + " of " + s.Fork + " in place of " + s.Module + "@" + s.Version
	case s.Release != nil:
		return s.Package + " of " + s.Module + "@" + s.Version + ", as published"
	}
	return s.Package + " of " + s.Module + "@" + s.Version + withModules(s.Replace)
}

// withModules names modules and their versions, " with k8s.io/api v0.29.3"; "" without any.
func withModules(replaced map[string]string) (out string) {
	for _, module := range slices.Sorted(maps.Keys(replaced)) {
		out += " with " + module + " " + replaced[module]
	}
	return out
}

// statedVersion describes the version that an executable reports.
func statedVersion(version string) string {
	if version == "" {
		return ", of a version that it doesn't say"
	}
	return ", which says it is " + version
}

func when(it scenario.ItemHeader) string {
	if it.After != nil {
		if plus := scenario.Length(it.After.Plus); plus > 0 {
			return short(plus) + " after " + it.After.Name
		}
		return "after " + it.After.Name
	}
	if at := scenario.Length(it.At); at > 0 {
		return "at " + short(at)
	}
	return "at once"
}

func where(t scenario.Target) string {
	arm := "every arm"
	if t.Arm != "" {
		arm = "arm " + t.Arm
	}
	of := []string{}
	s := t.Selector
	if s.Component != "" {
		of = append(of, s.Component)
	}
	if len(s.Nodes) > 0 {
		of = append(of, "nodes "+strings.Join(s.Nodes, ", "))
	}
	if len(s.Namespaces) > 0 {
		of = append(of, "namespaces "+strings.Join(s.Namespaces, ", "))
	}
	for _, labels := range []map[string]string{s.NodeSelectors, s.LabelSelectors} {
		for _, k := range slices.Sorted(maps.Keys(labels)) {
			of = append(of, k+"="+labels[k])
		}
	}
	mode := t.Mode
	if t.Value != "" {
		mode += " " + t.Value
	}
	return mode + " " + strings.Join(of, " and ") + " of " + arm
}

// lasting describes the duration after which an item is lifted, "" if it has none.
func lasting(it scenario.ItemHeader) string {
	if d := scenario.Length(it.Duration); d > 0 {
		return " for " + short(d)
	}
	return ""
}

func times(w scenario.DurationRange) string {
	out := ""
	if w.AtLeast.Duration > 0 {
		out += ", at least " + short(w.AtLeast.Duration)
	}
	if w.Deadline.Duration > 0 {
		out += ", at most " + short(w.Deadline.Duration)
	}
	return out
}

// GiveUp is how long after an arm's last load and fault its exposure is still waited for.
const GiveUp = 15 * time.Second

// givesUp says when the fault phase gives up on an arm whose exposure isn't met, "" without faults. A fault without a
// duration holds until the phase ends.
func (t *Trial) givesUp() string {
	if t.NoFaults {
		return ""
	}
	var holding []string
	everywhere := false // one holds in every arm
	for _, f := range t.Faults {
		if scenario.Length(f.Duration) > 0 {
			continue
		}
		if f.Target.Arm == "" {
			everywhere = true
			holding = append(holding, f.Name)
		} else {
			holding = append(holding, f.Name+" in arm "+f.Target.Arm)
		}
	}
	const line = "    exposure that isn't met is given up "
	atEnd := "at the deadline: a fault without a duration holds until then (" + strings.Join(
		holding,
		", ",
	) + ")"
	early := short(GiveUp) + " after an arm's last load and fault are over"
	switch {
	case everywhere:
		return line + atEnd + "\n"
	case len(holding) > 0:
		return line + early + ", or " + atEnd + "\n"
	case len(t.Faults)+len(t.LoadsOf(check.Fault)) > 0:
		return line + early + "\n"
	}
	return ""
}

// short formats a duration without the zeros at its end: 2m, not 2m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// AtLeast returns how long the phases of all trials last at least, with so many trials at once. Building and creating
// clusters come on top.
func (p *Plan) AtLeast(parallel int) time.Duration {
	var all, longest time.Duration
	for i := range p.Trials {
		one := p.Trials[i].atLeast()
		all, longest = all+one, max(longest, one)
	}
	return max(longest, all/time.Duration(max(parallel, 1)))
}

// atLeast returns how long the phases of a trial last at least.
func (t *Trial) atLeast() time.Duration {
	ph, turns := t.Phases, 1
	if t.Sequential {
		turns = len(t.Arms)
	}
	return ph.Steady.AtLeast.Duration + ph.Baseline.AtLeast.Duration +
		time.Duration(turns)*(ph.Fault.AtLeast.Duration+ph.Recovery.AtLeast.Duration)
}

// Lengths says how long each phase of a trial lasts.
func (t *Trial) Lengths() string {
	var out []string
	for _, ph := range []struct {
		name string
		scenario.DurationRange
	}{{check.Steady, t.Phases.Steady}, {check.Baseline, t.Phases.Baseline}, {check.Fault, t.Phases.Fault},
		{check.Recovery, t.Phases.Recovery}} {
		out = append(out, ph.name+times(ph.DurationRange))
	}
	return strings.Join(out, "; ")
}

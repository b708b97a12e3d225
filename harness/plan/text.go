package plan

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/printing"
)

// Describer is a check, fault, load, collector or mutation that describes its fields in words. For others the fields
// are shown.
type Describer interface{ Describe() string }

// Text writes for people what the plan will do: its arms, mutations and faults, and the checks of each phase.
func (p *Plan) Text(w io.Writer) error {
	b := &bytes.Buffer{}
	fmt.Fprintf(b, "%s: %s\n", p.Scenario, p.Title)
	if p.Source != "" {
		fmt.Fprintf(b, "read from %s\n", p.Source)
	}
	fmt.Fprintf(
		b,
		"Kubernetes %s, node image %s, seed %d, %s\n",
		strings.Join(p.Versions(), " and "),
		p.NodeImage,
		p.Seed,
		p.howMany(),
	)
	fmt.Fprintln(b, p.programs())
	if p.Provider != "" {
		fmt.Fprintf(b, "clusters of the provider %s\n", p.Provider)
	}
	if budget := scenario.Length(p.Budget); budget > 0 {
		fmt.Fprintf(b, "a nightly gives it at most %s\n", short(budget))
	}
	if len(p.Values) > 0 {
		b.WriteString("\nparameters, to be changed with --set\n")
		t := indented()
		for _, name := range slices.Sorted(maps.Keys(p.Values)) {
			t.Add(name, cmp.Or(p.Values[name], "not set"))
		}
		b.WriteString(t.Text())
	}
	for i := range p.Trials {
		p.Trials[i].text(b)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (t *Trial) text(b *bytes.Buffer) {
	fmt.Fprintf(
		b,
		"\ntrial %s: pair %s of %s, a %s for each arm",
		t.ID,
		t.Pair,
		t.Subject,
		t.Placement,
	)
	if len(t.Seams) > 0 {
		fmt.Fprintf(b, ", seams %s in every arm", strings.Join(t.Seams, ", "))
	}
	b.WriteString("\n")
	if t.Why != "" {
		fmt.Fprintf(b, "  %s\n", t.Why)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Set)) {
		fmt.Fprintf(b, "  the pair sets %s to %s\n", name, t.Set[name])
	}
	for _, d := range t.Deviates.Texts() {
		fmt.Fprintf(b, "  DEVIATES: %s\n", d)
	}
	for _, m := range t.Modelled {
		fmt.Fprintf(b, "  modelled: %s\n", m)
	}
	b.WriteString("\n  arms\n")
	arms := indented()
	for _, c := range t.Arms {
		for i, s := range c.Source.Builds() {
			line := []any{c.Name, t.home(c), "expected " + c.Expected, source(s)}
			if i > 0 {
				line = []any{"", "", "", "then " + source(s)}
			}
			arms.Add(line...)
			for _, m := range s.Mutations {
				does := strings.TrimPrefix(words(m.Kind, rewrite(m)), m.Kind+" ")
				arms.Add(
					"",
					"",
					"",
					fmt.Sprintf("mutation %s at %s %s", m.Kind, count(m.Sites, "site"), does),
				)
			}
		}
		if c.Role == scenario.Candidate && len(c.Source.Before) > 0 {
			arms.Add(
				"",
				"",
				"",
				"the candidate stands for the last build; what runs before it is the scenario's",
			)
		}
	}
	b.WriteString(arms.Text())
	if len(t.Constants) > 0 {
		b.WriteString("\n  constants, read from each arm's own source\n")
		constants := indented()
		for _, c := range t.Constants {
			constants.Add(c.Name, c.Package+"."+c.Ident)
		}
		b.WriteString(constants.Text())
	}
	b.WriteString("\n  collectors, from before the steady state to the end\n")
	collectors := indented()
	for _, c := range t.Collectors {
		collectors.Add(c.Name, schedule(c), words(c.Kind, c.Spec))
	}
	b.WriteString(collectors.Text())
	t.phases(b)
}

// home says where an arm lives.
func (t *Trial) home(c Arm) string {
	if c.Namespace != "" {
		return "in namespace " + c.Namespace
	}
	if in := t.ClusterOf(c.Name); in != nil && in.Name != "" {
		return "in a cluster of " + in.Topology.Version
	}
	return "on " + c.Node
}

// schedule says when a collector records.
func schedule(c Collector) string {
	var out []string
	if _, ok := c.Spec.(capture.Streamer); ok {
		out = append(out, "all the time")
	}
	if _, ok := c.Spec.(capture.Snapshotter); ok {
		if each := scenario.Length(c.Every); each > 0 {
			every := "every " + short(each)
			if c.During != "" {
				every += " of the " + c.During
			}
			out = append(out, every)
		}
		out = append(out, "at phase marks and onset")
	}
	return strings.Join(out, ", ")
}

func (t *Trial) phases(b *bytes.Buffer) {
	b.WriteString("\n  phases\n")
	p := t.Phases
	for _, ph := range []struct {
		name string
		wait scenario.DurationRange
		hold string
	}{
		{check.Steady, p.Steady, "waits for the steady state"},
		{check.Baseline, p.Baseline, "watches, nothing is injected"},
		{check.Fault, p.Fault, "holds each arm until its exposure is met"},
		{check.Recovery, p.Recovery, "ends when each arm's signature or healed checks are met"},
	} {
		fmt.Fprintf(b, "  %s: %s%s\n", ph.name, ph.hold, times(ph.wait))
		switch ph.name {
		case check.Fault:
			t.writeInjections(b)
			b.WriteString(t.givesUp())
		case check.Baseline, check.Recovery:
			b.WriteString(t.loads(ph.name).Text())
		}
		for _, l := range t.checkLists() {
			in := slices.DeleteFunc(
				slices.Clone(*l.checks),
				func(c Check) bool { return c.Phase != ph.name },
			)
			if len(in) > 0 {
				name := l.name
				if name == scenario.InformationList {
					name += ", which decides nothing"
				}
				fmt.Fprintf(b, "    %s, all of\n", name)
				writeChecks(b, "      ", in)
			}
		}
	}
	if r := t.Restart; r != nil {
		fmt.Fprintf(b, "  afterwards: restarts the subject of %s; it must be ready within %s\n",
			strings.Join(r.Roles, ", "), short(r.ReadyWithin.Duration))
	}
}

func (t *Trial) writeInjections(b *bytes.Buffer) {
	if t.Sequential {
		b.WriteString("    one arm after the other\n")
	}
	injected := t.loads(check.Fault)
	for _, f := range t.Faults {
		if t.NoFaults {
			injected.Add("fault "+f.Name, "not injected", "", f.Kind)
			continue
		}
		injected.Add(
			"fault "+f.Name,
			when(f.ItemHeader)+lasting(f.ItemHeader),
			where(f.Target),
			words(f.Kind, f.Spec),
		)
	}
	b.WriteString(injected.Text())
}

// loads returns a table of a phase's loads.
func (t *Trial) loads(phase string) printing.Table {
	out := indented()
	for _, l := range t.LoadsOf(phase) {
		if l.Trigger && t.NoFaults {
			out.Add("load "+l.Name, "not made", "", l.Kind)
			continue
		}
		out.Add("load "+l.Name, when(l.ItemHeader), where(l.Target), words(l.Kind, l.Spec))
	}
	return out
}

// indented returns an empty table, for what belongs to the line above it.
func indented() printing.Table { return printing.Table{Indent: "    "} }

func writeChecks(b *bytes.Buffer, indent string, list []Check) {
	for _, c := range list {
		from := ""
		if after := scenario.Length(c.After); after > 0 {
			from = " (from " + short(after) + " into the phase)"
		}
		if len(c.AnyOf) > 0 {
			fmt.Fprintf(b, "%s%s: any of\n", indent, c.Name)
			writeChecks(b, indent+"  ", c.AnyOf)
			continue
		}
		fmt.Fprintf(b, "%s%s: %s%s\n", indent, c.Name, words(c.Kind, c.Spec), from)
	}
}

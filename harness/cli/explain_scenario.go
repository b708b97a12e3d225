package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/match/measure"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/printing"
)

// namesScenario reports whether a word is a scenario's name or path.
func namesScenario(cmd *cobra.Command, word string) bool {
	if isPath(word) {
		return true
	}
	files, err := scenarioFiles(cmd)
	return err == nil &&
		slices.ContainsFunc(files, func(f string) bool { return scenarioName(f) == word })
}

// explainScenario describes what a scenario reproduces, on which pairs, and which parameters it has.
func explainScenario(cmd *cobra.Command, s *scenario.Scenario) error {
	out := cmd.OutOrStdout()
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"scenario %s\n\n%s\n\n%s\n",
		s.Metadata.Name,
		s.Spec.Title,
		strings.TrimSpace(s.Spec.Description),
	)
	if t := s.Spec.Tried; t != nil {
		fmt.Fprintf(
			&b,
			"\nA run tries this way to the bug: %s.\nIt doesn't try: %s.\n",
			t.Ways,
			t.Not,
		)
	}
	if more := others(cmd, s.Spec.Subject, s.Metadata.Name); len(more) > 0 {
		fmt.Fprintf(
			&b,
			"\nOther scenarios of %s: %s.\n",
			s.Spec.Subject,
			strings.Join(more, ", "),
		)
	}
	b.WriteString("\nPairs, chosen by --pair:\n")
	pairs := printing.Table{Indent: "  "}
	for _, p := range s.Spec.Pairs {
		state := ""
		if p.Default || len(s.Spec.Pairs) == 1 {
			state = "default"
		}
		pairs.Add(p.Name, state, "arms "+strings.Join(armsOf(p), ", "), p.Doc)
	}
	b.WriteString(pairs.Fit(width(out)))
	fmt.Fprintf(&b, "\nFaults, left out by --without: %s\n", strings.Join(faultsOf(s), ", "))
	if len(s.Spec.Parameters) == 0 {
		b.WriteString("\nIt declares no parameters; --set changes any field of spec by its path.\n")
	} else {
		b.WriteString("\nParameters, set by --set NAME=VALUE:\n")
		params := printing.Table{Indent: "  "}
		for _, p := range s.Spec.Parameters {
			doc := append([]string{strings.TrimSuffix(printing.OneLine(p.Doc), ".")}, limits(p)...)
			params.Add(p.Name, p.Type, defaultOf(p), strings.Join(doc, "; "))
		}
		b.WriteString(params.Fit(width(out)))
	}
	if err := explainCandidates(&b, s, width(out)); err != nil {
		return err
	}
	if err := explainRates(&b, s); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// armsOf returns the names of a pair's arms.
func armsOf(p scenario.Pair) (out []string) {
	for _, a := range p.Arms {
		out = append(out, a.Name)
	}
	return out
}

// faultsOf returns the names of a scenario's faults.
func faultsOf(s *scenario.Scenario) (out []string) {
	for _, f := range s.Spec.Faults {
		out = append(out, f.Name)
	}
	return out
}

// explainRates describes how often relapse match was right about the scenario.
func explainRates(b *strings.Builder, s *scenario.Scenario) error {
	if s.Spec.Match == nil || s.Origin == nil {
		return nil
	}
	t, ok, err := measure.Load(s.Origin.File)
	if err != nil {
		return err
	}
	if !ok {
		b.WriteString("\nThe error rates of its match section were not measured; relapse match --measure RUNS does.\n")
		return nil
	}
	b.WriteString("\n" + t.Text())
	return nil
}

// explainCandidates lists the candidates that relapse oracle runs, each with its right outcome and what it changes. The
// table has so many columns at most, 0 for no limit.
func explainCandidates(b *strings.Builder, s *scenario.Scenario, columns int) error {
	all, err := s.Candidates()
	if err != nil || len(all) == 0 {
		return asInput(err)
	}
	fmt.Fprintf(
		b,
		"\nCandidates with a known answer, run by relapse oracle %s:\n",
		s.Metadata.Name,
	)
	t := printing.Table{Indent: "  "}
	for _, k := range all {
		t.Add(k.Metadata.Name, k.Spec.Right, k.Spec.Doc)
	}
	b.WriteString(t.Fit(columns))
	return nil
}

func defaultOf(p scenario.Parameter) string {
	if p.Default == "" {
		return "not set"
	}
	return "default " + string(p.Default)
}

// limits describes which values a parameter takes, and which other parameters it sets.
func limits(p scenario.Parameter) []string {
	var out []string
	if len(p.OneOf) > 0 {
		var values []string
		for _, v := range p.OneOf {
			values = append(values, string(v))
		}
		out = append(out, "one of "+strings.Join(values, ", "))
	}
	if p.Min != nil {
		out = append(out, "at least "+string(*p.Min))
	}
	if p.Max != nil {
		out = append(out, "at most "+string(*p.Max))
	}
	if len(p.Implies) > 0 {
		var implied []string
		for _, name := range slices.Sorted(maps.Keys(p.Implies)) {
			implied = append(implied, name+"="+string(p.Implies[name]))
		}
		out = append(out, "implies "+strings.Join(implied, ", "))
	}
	return out
}

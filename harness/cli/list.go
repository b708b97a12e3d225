package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/printing"
)

func newListCmd() *cobra.Command {
	var output printing.Format
	cmd := &cobra.Command{
		Use:       "list [scenarios|candidates|faults|loads|collectors|checks|seams|mutations]",
		Short:     "List the scenarios, their candidates, or the kinds that a scenario can use",
		ValidArgs: append([]string{"scenarios", "candidates"}, plurals()...),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(fmt.Errorf("relapse list takes one word, not %d", len(args)), "relapse list "+args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "scenarios" {
				return listScenarios(cmd, output)
			}
			if output == printing.JSON {
				return usage(fmt.Errorf("%s are listed as text only", args[0]),
					"relapse schema has all kinds with their fields")
			}
			if args[0] == "candidates" {
				return listCandidates(cmd)
			}
			for i, plural := range plurals() {
				if args[0] == plural || args[0] == kinds.Categories[i] {
					return listKinds(cmd.OutOrStdout(), kinds.Categories[i])
				}
			}
			return usage(fmt.Errorf("there are no %q to list %s", args[0], oneOf(args[0], cmd.ValidArgs)), "relapse list --help")
		},
	}
	registerOutput(cmd, &output, printing.Text, printing.JSON)
	cmd.Flag("output").Usage += "; json is for scenarios only"
	return cmd
}

func plurals() []string {
	out := make([]string, len(kinds.Categories))
	for i, c := range kinds.Categories {
		out[i] = c + "s"
	}
	return out
}

// listedScenario is a scenario in `relapse list -o json`.
type listedScenario struct {
	Name   string       `json:"name"`
	Title  string       `json:"title"`
	File   string       `json:"file"`
	Budget string       `json:"budget,omitempty"` // 1h30m0s
	Pairs  []listedPair `json:"pairs"`
}

type listedPair struct {
	Name    string `json:"name"`
	Default bool   `json:"default"`
}

func newListed(s *scenario.Scenario, file string) listedScenario {
	l := listedScenario{Name: s.Metadata.Name, Title: s.Spec.Title, File: file, Pairs: []listedPair{}}
	if b := s.Spec.Budget; b != nil {
		l.Budget = b.Duration.String()
	}
	for _, p := range s.Spec.Pairs {
		l.Pairs = append(l.Pairs, listedPair{Name: p.Name, Default: p.Default})
	}
	return l
}

// listScenarios prints the title of each scenario. An invalid scenario is listed as such, or left out of the JSON, and
// the command fails.
func listScenarios(cmd *cobra.Command, output printing.Format) error {
	files, err := scenarioFiles(cmd)
	if err != nil {
		return err
	}
	var titles printing.Table
	listed := []listedScenario{}
	var broken []string
	for _, f := range files {
		name, title := scenarioName(f), ""
		if s, err := scenario.Load(f); err != nil {
			title = "(not valid)"
			broken = append(broken, f)
		} else {
			title = s.Spec.Title
			listed = append(listed, newListed(s, f))
		}
		titles.Add(name, title)
	}
	if output == printing.JSON {
		err = printing.WriteJSONLine(cmd.OutOrStdout(), listed)
	} else {
		_, err = io.WriteString(cmd.OutOrStdout(), titles.Fit(width(cmd.OutOrStdout())))
	}
	if err != nil {
		return fmt.Errorf("printing the scenarios: %w", err)
	}
	if len(broken) > 0 {
		return usage(fmt.Errorf("not valid: %s", strings.Join(broken, ", ")),
			"relapse validate "+strings.Join(broken, " "))
	}
	return nil
}

// listCandidates prints the candidates of every scenario.
func listCandidates(cmd *cobra.Command) error {
	files, err := scenarioFiles(cmd)
	if err != nil {
		return err
	}
	t := printing.Table{Header: []string{"scenario", "candidate", "right", "what it is"}}
	for _, f := range files {
		s, err := scenario.Load(f)
		if err != nil {
			return asInput(err)
		}
		all, err := s.Candidates()
		if err != nil {
			return asInput(err)
		}
		for _, k := range all {
			t.Add(s.Metadata.Name, k.Metadata.Name, k.Spec.Right, k.Spec.Doc)
		}
	}
	_, err = io.WriteString(cmd.OutOrStdout(), t.Fit(width(cmd.OutOrStdout())))
	return err
}

func listKinds(out io.Writer, category string) error {
	entries := kinds.Of(category)
	if len(entries) == 0 {
		return fmt.Errorf("this binary has no kinds of %s", category)
	}
	var t printing.Table
	for _, e := range entries {
		first, _, _ := strings.Cut(e.Doc, "\n")
		switch {
		case e.ChaosMesh != "":
			first += " (Chaos Mesh: " + e.ChaosMesh + ")"
		case category == kinds.Fault:
			first += " (Chaos Mesh: none)"
		}
		t.Add(e.Name, first)
	}
	_, err := io.WriteString(out, t.Fit(width(out)))
	return err
}

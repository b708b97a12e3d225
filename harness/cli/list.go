package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/campaign/track"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/printing"
)

func newListCmd() *cobra.Command {
	var output printing.Format
	var choose chooseFlags
	cmd := &cobra.Command{
		Use:   "list [scenarios|candidates|faults|loads|collectors|checks|seams|mutations]",
		Short: "List the scenarios, their candidates, or the kinds that a scenario can use",
		Long: fmt.Sprintf(
			`List shows each scenario with the component that it is about, its kind of failure, how long a trial of its default
pair takes, the providers that it can run on, and the versions of that pair's arms: the vulnerable and the fixed one, or
the one that both have. The time is from the trials that %s has; "not measured" stands where it has none.

-o json has that of every pair, with what else a catalogue needs, on one line. With another word than scenarios, list
shows the candidates of all scenarios, or the kinds that a scenario can use.`,
			track.File,
		),
		Example:   "  relapse list --component kube-apiserver\n  relapse list --failure leak,stuck -o json\n  relapse list checks",
		ValidArgs: append([]string{"scenarios", "candidates"}, plurals()...),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(
					fmt.Errorf("relapse list takes one word, not %d", len(args)),
					"relapse list "+args[0],
				)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "scenarios" {
				return listScenarios(cmd, choose, output)
			}
			if choose.given() {
				return usage(
					fmt.Errorf("--component and --failure choose scenarios, not %s", args[0]),
					"relapse list "+args[0],
				)
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
			return usage(
				fmt.Errorf("there are no %q to list %s", args[0], oneOf(args[0], cmd.ValidArgs)),
				"relapse list --help",
			)
		},
	}
	registerOutput(cmd, &output, printing.Text, printing.JSON)
	choose.register(cmd, "only scenarios")
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

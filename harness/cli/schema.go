package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/scenario/editor"
	"github.com/kube-relapse/relapse/internal/printing"
)

func newSchemaCmd() *cobra.Command {
	return &cobra.Command{
		Use:       "schema [scenario|candidate]",
		Short:     "Print the JSON Schema of a scenario's file, or of a candidate's, for editors",
		ValidArgs: []string{"scenario", "candidate"},
		Long: `Schema prints the JSON Schema of scenarios, or of candidates. In the schema of scenarios, a parameter $(name)
may replace a value. Save the schema, and name its file on a scenario's first line:

  # yaml-language-server: $schema=../../relapse.schema.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !slices.Contains(cmd.ValidArgs, args[0]) {
				return fmt.Errorf("there is no schema of %q %s", args[0], oneOf(args[0], cmd.ValidArgs))
			}
			return cobra.MaximumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			from := editor.Schema
			if len(args) > 0 && args[0] == "candidate" {
				from = editor.CandidateSchema
			}
			s, err := from()
			if err != nil {
				return err
			}
			return printing.WriteJSON(cmd.OutOrStdout(), s)
		},
	}
}

package cli

import (
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
		Args: cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
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

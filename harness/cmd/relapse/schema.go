package main

import (
	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/scenario"
)

func newSchemaCmd() *cobra.Command {
	return &cobra.Command{
		Use:       "schema [scenario|candidate]",
		Short:     "Print the JSON Schema of a scenario, or of a candidate beside one, for editors",
		ValidArgs: []string{"scenario", "candidate"},
		Long: `Schema prints the JSON Schema of scenarios. Where a value may stand it also takes a parameter, $(name).
Save it and name it on a scenario's first line:

  # yaml-language-server: $schema=../../relapse.schema.json`,
		Args: cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			from := scenario.EditorSchema
			if len(args) > 0 && args[0] == "candidate" {
				from = scenario.KnownSchema
			}
			s, err := from()
			if err != nil {
				return err
			}
			return printJSON(cmd.OutOrStdout(), s)
		},
	}
}

package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/scenario"
)

func newSchemaCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a scenario, for editors",
		Long: `schema prints the JSON Schema that scenarios are validated with; where a value may stand, it also takes $(name) of a parameter.
Save it and name it on a scenario's first line:

  # yaml-language-server: $schema=../../relapse.schema.json`,
		Args: exactly(0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := scenario.EditorSchema()
			if err != nil {
				return err
			}
			enc := json.NewEncoder(cmd.OutOrStdout())
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			return enc.Encode(s)
		},
	}
}

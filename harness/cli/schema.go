package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/scenario/editor"
	"github.com/kube-relapse/relapse/internal/printing"
)

// schemas makes each schema that relapse schema prints.
var schemas = map[string]func() (*jsonschema.Schema, error){
	"scenario": editor.Schema, "candidate": editor.CandidateSchema, "match": match.Schema,
}

func newSchemaCmd() *cobra.Command {
	return &cobra.Command{
		Use:       "schema [scenario|candidate|match]",
		Short:     "Print the JSON Schema of a scenario's or a candidate's file, or of the JSON of relapse match",
		ValidArgs: slices.Sorted(maps.Keys(schemas)),
		Long: `Schema prints the JSON Schema of scenarios, or of candidates, for editors. In the schema of scenarios, a
parameter $(name) may replace a value. Save the schema, and name its file on a scenario's first line:

  # yaml-language-server: $schema=../../relapse.schema.json

The schema of match is that of the output of relapse match -o json, for programs that read it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && schemas[args[0]] == nil {
				return fmt.Errorf(
					"there is no schema of %q %s",
					args[0],
					oneOf(args[0], cmd.ValidArgs),
				)
			}
			return cobra.MaximumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := schemas[append(args, "scenario")[0]]()
			if err != nil {
				return err
			}
			return printing.WriteJSON(cmd.OutOrStdout(), s)
		},
	}
}

package cli

import (
	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/internal/printing"
)

// registerOutput adds the flag -o to cmd, for the formats that the command has. The first one is the default.
func registerOutput(cmd *cobra.Command, output *printing.Format, formats ...printing.Format) {
	c := printing.NewChoice(output, formats...)
	cmd.Flags().VarP(c, "output", "o", c.Usage())
	names := cobra.FixedCompletions(c.Names(), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", names); err != nil {
		panic(err) // the flag is there already
	}
}

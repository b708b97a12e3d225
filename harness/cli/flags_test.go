package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A command line of run shows its plan, or builds what it needs, once the command's name is changed.
func TestFlagsOfRun(t *testing.T) {
	usages := func(all string) (out []string) {
		for line := range strings.Lines(all) {
			out = append(out, strings.Join(strings.Fields(line), " "))
		}
		return out
	}
	for _, cmd := range []*cobra.Command{newPlanCmd(), newBuildCmd()} {
		have := usages(cmd.Flags().FlagUsages())
		for _, u := range usages(newRunCmd().Flags().FlagUsages()) {
			if !slices.Contains(have, u) {
				t.Errorf("relapse %s lacks a flag of relapse run: %s", cmd.Name(), u)
			}
		}
	}
}

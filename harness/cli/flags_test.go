package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A command line of run shows its plan, or builds what it needs, once the command's name is changed. A run of all scenarios
// has many plans, and builds for all of them itself. Where trials are made changes neither the plan nor the builds.
func TestFlagsOfRun(t *testing.T) {
	usages := func(all string) (out []string) {
		for line := range strings.Lines(all) {
			out = append(out, strings.Join(strings.Fields(line), " "))
		}
		return out
	}
	ofAll, elsewhere := &cobra.Command{}, &cobra.Command{}
	(&allFlags{}).register(ofAll)
	far := &kubeFlags{}
	far.register(elsewhere)
	far.registerSole(elsewhere.Flags())
	alone, where := usages(ofAll.Flags().FlagUsages()), usages(elsewhere.Flags().FlagUsages())
	if len(alone) != 4 {
		t.Errorf("flags of a run of all scenarios: %q, want 4", alone)
	}
	if len(where) != len(onOnly)+1 {
		t.Errorf("flags of a run on a cluster: %q, want --on and %q", where, onOnly)
	}
	alone = append(alone, where...)
	for _, cmd := range []*cobra.Command{newPlanCmd(), newBuildCmd()} {
		have := usages(cmd.Flags().FlagUsages())
		for _, u := range usages(newRunCmd().Flags().FlagUsages()) {
			if !slices.Contains(have, u) && !slices.Contains(alone, u) {
				t.Errorf("relapse %s lacks a flag of relapse run: %s", cmd.Name(), u)
			}
		}
	}
}

package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

func newCacheKeyCmd() *cobra.Command {
	var flags planFlags
	cmd := &cobra.Command{
		Use:   "key NAME",
		Short: "Print a key for a CI's copy of the cache: it changes with what a scenario builds",
		Long: `Key hashes what the arms of all pairs are built from: sources, mutations, constants, Kubernetes
versions and the Go version. Let your CI save the cache folder under this key. A copy under an older key does no
harm: each cache entry has the hash of everything that went into it, so relapse builds what the copy lacks.`,
		Example:           "  relapse cache key pleg-deadlock",
		Args:              exactly(1, "scenario"),
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := loadScenario(cmd, args[0])
			if err != nil {
				return err
			}
			flags.options.Pair, flags.options.Repeat = plan.AllPairs, 1
			p, err := flags.resolve(cmd, args[0])
			if err != nil {
				return err
			}
			key, err := cacheKey(p, s.Spec.Constants)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
			return err
		},
	}
	return cmd
}

// cacheKey returns the scenario's name and a hash of what is built for it.
func cacheKey(p *plan.Plan, constants []scenario.Constant) (string, error) {
	var sources []scenario.Source
	for _, t := range p.Trials {
		for _, c := range t.Arms {
			sources = append(sources, c.Source)
		}
	}
	raw, err := json.Marshal(struct {
		Go, Arch  string
		Versions  []string
		Sources   []scenario.Source
		Constants []scenario.Constant
	}{runtime.Version(), runtime.GOARCH, p.Versions(), sources, constants})
	if err != nil {
		return "", fmt.Errorf("hashing what %s builds: %w", p.Scenario, err)
	}
	sum := sha256.Sum256(raw)
	return p.Scenario + "-" + hex.EncodeToString(sum[:8]), nil
}

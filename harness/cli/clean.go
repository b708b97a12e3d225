package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/ledger"
)

func newCleanCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "clean [RUN...]",
		Short: "Undo what killed runs left, and remove retained clusters by name",
		Long: `Clean removes what killed runs left: clusters with the faults in them, networks, private files,
and unfinished bundles, node images and builds. Runs that are alive are never touched. A cluster that was kept
with --retain is removed only if its name is given, or with --all, and so are the Job of a run on Kubernetes and what
the run has in its registry. A name of which nothing is left is wrong usage (exit
64), and then nothing is removed.`,
		ValidArgsFunction: completeRuns,
		Example:           "  relapse clean\n  relapse clean relapse-1a2b3c4d\n  relapse clean --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := areRuns(args); err != nil {
				return err
			}
			return withArtifacts(func(made *artifacts.Artifacts, keepers []cluster.Keeper) error {
				say := func(s string) { fmt.Fprintln(cmd.OutOrStdout(), s) }
				provider := func(name string) (cluster.Provider, error) { return newProvider(name, nil, false) }
				errs := []error{
					ledger.Clean(
						cmd.Context(),
						provider,
						ledger.CleanOptions{Runs: args, All: all, Job: removeJob},
						say,
					),
					made.Clean(cmd.Context(), say),
				}
				for _, k := range keepers {
					errs = append(errs, k.Clean(cmd.Context(), say))
				}
				return errors.Join(errs...)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also remove all retained clusters")
	return cmd
}

// areRuns refuses a name that no run has of which something may be left.
func areRuns(names []string) error {
	if len(names) == 0 {
		return nil
	}
	known, err := runsLeft()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return usage(
				fmt.Errorf("nothing is left of a run called %q %s", name, oneOf(name, known)),
				"relapse clean, without a name, removes what killed runs left",
			)
		}
	}
	return nil
}

// runsLeft returns the names of the runs of which something may be left.
func runsLeft() (out []string, err error) {
	all, err := ledger.List()
	for _, l := range all {
		out = append(out, l.Run)
	}
	return out, err
}

// withArtifacts opens the cache for one command, together with the providers that keep their own things on this host.
func withArtifacts(f func(*artifacts.Artifacts, []cluster.Keeper) error) (err error) {
	if err := new(diskFlags).fits(); err != nil {
		return err
	}
	made, err := artifacts.Open(artifacts.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	keepers, err := keepers()
	if err != nil {
		return err
	}
	if err := f(made, keepers); err != nil {
		return hinted(err, "relapse doctor checks the host")
	}
	return nil
}

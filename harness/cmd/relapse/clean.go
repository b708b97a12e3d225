package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/ledger"
)

func newCleanCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "clean [RUN...]",
		Short: "Undo what killed runs left, and remove retained clusters by name",
		Long: `Clean removes what runs left whose process is gone: their clusters with the faults in them, networks, private files, half-written
bundles, node images in the making and abandoned builds. Runs that are alive are never touched. A cluster that was kept with --retain
is removed only when its name is given, or with --all.`,
		Example: "  relapse clean\n  relapse clean relapse-1a2b3c4d\n  relapse clean --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withArtifacts(cmd, func(made *artifacts.Artifacts) error {
				say := func(s string) { fmt.Fprintln(cmd.OutOrStdout(), s) }
				provider := func(name string) (cluster.Provider, error) { return newProvider(name, nil, false) }
				return errors.Join(ledger.Clean(cmd.Context(), provider, ledger.CleanOptions{Runs: args, All: all}, say), made.Clean(cmd.Context(), say))
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove every retained cluster, too")
	return cmd
}

// withArtifacts opens the engine and the cache for one command.
func withArtifacts(cmd *cobra.Command, f func(*artifacts.Artifacts) error) (err error) {
	made, err := artifacts.Open(cmd.Context(), "", "", event.NewStream())
	if err != nil {
		return hinted(err, "relapse doctor checks the host")
	}
	defer func() {
		if e := made.Close(); err == nil {
			err = e
		}
	}()
	return f(made)
}

func newCacheCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "List or prune cached builds and node images",
		Args:  exactly(0, "arguments"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newCacheKeyCmd(),
		&cobra.Command{
			Use: "ls", Short: "List cached builds and node images", Args: exactly(0, "arguments"),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return withArtifacts(cmd, func(made *artifacts.Artifacts) error { return made.List(cmd.Context(), cmd.OutOrStdout()) })
			},
		},
		&cobra.Command{
			Use: "prune", Short: "Remove cached builds and node images that no run is using", Args: exactly(0, "arguments"),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return withArtifacts(cmd, func(made *artifacts.Artifacts) error { return made.Prune(cmd.Context(), cmd.OutOrStdout()) })
			},
		},
	)
	return cmd
}

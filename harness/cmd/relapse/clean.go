package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/event"
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
			return withLab(cmd, func(lab *harness.Lab) error {
				return harness.Clean(cmd.Context(), lab, harness.CleanOptions{Runs: args, All: all}, func(s string) {
					fmt.Fprintln(cmd.OutOrStdout(), s)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove every retained cluster, too")
	return cmd
}

// withLab opens the engine and the cache for one command.
func withLab(cmd *cobra.Command, f func(*harness.Lab) error) (err error) {
	lab, err := harness.OpenLab(cmd.Context(), "", "", event.NewStream())
	if err != nil {
		return hinted(err, "relapse doctor checks the host")
	}
	defer func() {
		if e := lab.Close(); err == nil {
			err = e
		}
	}()
	return f(lab)
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
				return withLab(cmd, func(lab *harness.Lab) error { return lab.ListCache(cmd.Context(), cmd.OutOrStdout()) })
			},
		},
		&cobra.Command{
			Use: "prune", Short: "Remove cached builds and node images that no run is using", Args: exactly(0, "arguments"),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return withLab(cmd, func(lab *harness.Lab) error { return lab.PruneCache(cmd.Context(), cmd.OutOrStdout()) })
			},
		},
	)
	return cmd
}

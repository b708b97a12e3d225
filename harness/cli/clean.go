package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/ledger"
	"github.com/kube-relapse/relapse/internal/printing"
)

func newCleanCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "clean [RUN...]",
		Short: "Undo what killed runs left, and remove retained clusters by name",
		Long: `Clean removes what killed runs left: clusters with the faults in them, networks, private files,
and unfinished bundles, node images and builds. Runs that are alive are never touched. A cluster that was kept
with --retain is removed only if its name is given, or with --all. A name of which nothing is left is wrong usage (exit
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
				errs := []error{ledger.Clean(cmd.Context(), provider, ledger.CleanOptions{Runs: args, All: all}, say),
					made.Clean(cmd.Context(), say)}
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
			return usage(fmt.Errorf("nothing is left of a run called %q %s", name, oneOf(name, known)),
				"relapse clean, without a name, removes what killed runs left")
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

func newCacheCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "List or prune cached builds and node images",
		Args:  wantCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newCacheKeyCmd(),
		&cobra.Command{
			Use: "ls", Short: "List cached builds and node images", Args: exactly(0, "arguments"),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return withArtifacts(func(made *artifacts.Artifacts, keepers []cluster.Keeper) error {
					return listCache(cmd.Context(), cmd.OutOrStdout(), made, keepers)
				})
			},
		},
		&cobra.Command{
			Use: "prune", Short: "Remove cached builds and node images that no run is using", Args: exactly(0,
				"arguments"),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return withArtifacts(func(made *artifacts.Artifacts, keepers []cluster.Keeper) error {
					return pruneCache(cmd.Context(), cmd.OutOrStdout(), made, keepers)
				})
			},
		},
	)
	return cmd
}

// listCache prints the contents of the cache and what providers keep in addition.
func listCache(ctx context.Context, w io.Writer, made *artifacts.Artifacts, keepers []cluster.Keeper) error {
	entries, err := made.Kept()
	if err != nil {
		return err
	}
	t := printing.Table{Header: []string{"kind", "key", "size", "last used", "what"}}
	row := func(kind, key string, bytes int64, at time.Time, what string) {
		t.Add(kind, fmt.Sprintf("%.12s", key), mib(bytes), at.Local().Format("2006-01-02 15:04"), what)
	}
	for _, e := range entries {
		row(e.Kind, e.Key, e.Bytes, e.LastUsed, e.Note)
	}
	for _, k := range keepers {
		list, err := k.Kept(ctx)
		if err != nil {
			return err
		}
		for _, i := range list {
			row(i.Kind, i.Key, i.Bytes, i.Created, i.Name)
		}
	}
	_, err = io.WriteString(w, t.Fit(width(w)))
	return err
}

// pruneCache removes what nobody is using and prints what it removed.
func pruneCache(ctx context.Context, w io.Writer, made *artifacts.Artifacts, keepers []cluster.Keeper) error {
	entries, freed, err := made.Prune()
	for _, e := range entries {
		fmt.Fprintf(w, "removed %s %.12s %s\n", e.Kind, e.Key, e.Note)
	}
	errs := []error{err}
	for _, k := range keepers {
		list, err := k.Prune(ctx)
		for _, i := range list {
			fmt.Fprintf(w, "removed %s %s\n", i.Kind, i.Name)
			freed += i.Bytes
		}
		errs = append(errs, err)
	}
	fmt.Fprintf(w, "%s freed (images share layers, so the disk may have gained less)\n", mib(freed))
	return errors.Join(errs...)
}

func mib(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }

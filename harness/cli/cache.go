package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/internal/printing"
)

func newCacheCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "List, prune, export or import cached builds and node images",
		Args:  wantCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newCacheExportCmd(),
		newCacheImportCmd(),
		newCacheKeyCmd(),
		&cobra.Command{
			Use:   "ls",
			Short: "List cached builds and node images, and how much Go's cache takes up",
			Args:  exactly(0, "arguments"),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return withArtifacts(func(made *artifacts.Artifacts, keepers []cluster.Keeper) error {
					return listCache(cmd.Context(), cmd.OutOrStdout(), made, keepers)
				})
			},
		},
		newCachePruneCmd(),
	)
	return cmd
}

// pruneFlags choose what relapse cache prune removes.
type pruneFlags struct {
	olderThan time.Duration
	maxSize   int64
	scenario  string
	dryRun    bool
}

func newCachePruneCmd() *cobra.Command {
	var f pruneFlags
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove cached builds and node images that no run is using",
		Long: `Prune removes builds, what Go has compiled for them, and node images, unless a run is using them. While a run
compiles, all of Go's cache stays.

Flags choose what is removed. Of several, all have to allow it. With any of them, node images stay.

--max-size removes what was not used for longest until the cache takes up at most that much: first of Go's cache, then
whole builds. --scenario removes the programs of a scenario's arms as they would be built now, of all pairs and of the
candidates that it brings, also where another scenario has the same program. What Go has compiled for them stays,
because no file of it is one scenario's. Whatever is removed, a run builds again when it needs it.`,
		Example: `  relapse cache prune --older-than 168h
  relapse cache prune --max-size 5GiB --dry-run
  relapse cache prune --scenario pleg-deadlock`,
		Args: exactly(0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return runCachePrune(cmd, f) },
	}
	fl := cmd.Flags()
	durationVar(fl, &f.olderThan, "older-than", 0, "remove only what was not used for this long, such as 168h")
	sizeVar(fl, &f.maxSize, "max-size", "remove only until the cache takes up at most this much, such as 5GiB")
	fl.StringVar(&f.scenario, "scenario", "", "remove only the programs of this scenario's arms")
	fl.BoolVar(&f.dryRun, "dry-run", false, "remove nothing, and print what would be removed")
	return cmd
}

func runCachePrune(cmd *cobra.Command, f pruneFlags) error {
	plans, err := f.plans(cmd)
	if err != nil {
		return err
	}
	return withArtifacts(func(made *artifacts.Artifacts, keepers []cluster.Keeper) error {
		o := cache.PruneOptions{Unused: f.olderThan, MaxSize: f.maxSize, DryRun: f.dryRun}
		if f.scenario != "" {
			o.Only = made.BuildsOf(cmd.Context(), plans)
		}
		if f.olderThan > 0 || f.maxSize > 0 || f.scenario != "" {
			keepers = nil
		}
		return pruneCache(cmd.Context(), cmd.OutOrStdout(), made, keepers, o)
	})
}

// plans returns one plan for each pair of the scenario, with the candidates that the scenario brings for it.
func (f pruneFlags) plans(cmd *cobra.Command) (out []*plan.Plan, err error) {
	if f.scenario == "" {
		return nil, nil
	}
	s, err := loadScenario(cmd, f.scenario)
	if err != nil {
		return nil, err
	}
	known, err := s.Candidates()
	if err != nil {
		return nil, asInput(err)
	}
	for _, pair := range s.Spec.Pairs {
		flags := planFlags{options: plan.Options{Pair: pair.Name, Repeat: 1}}
		for _, k := range known {
			if k.For(pair.Name) {
				flags.options.Candidates = append(
					flags.options.Candidates,
					plan.Candidate{Known: &k},
				)
			}
		}
		p, err := flags.resolve(cmd, f.scenario)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// listCache prints the contents of the cache and what providers keep in addition.
func listCache(
	ctx context.Context,
	w io.Writer,
	made *artifacts.Artifacts,
	keepers []cluster.Keeper,
) error {
	entries, err := made.Kept()
	if err != nil {
		return err
	}
	t := printing.Table{Header: []string{"kind", "key", "size", "last used", "what"}}
	row := func(kind, key string, bytes int64, at time.Time, what string) {
		t.Add(
			kind,
			fmt.Sprintf("%.12s", key),
			mib(bytes),
			at.Local().Format("2006-01-02 15:04"),
			what,
		)
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

// pruneCache removes what nobody is using, and prints what it removed and what is left.
func pruneCache(
	ctx context.Context,
	w io.Writer,
	made *artifacts.Artifacts,
	keepers []cluster.Keeper,
	o cache.PruneOptions,
) error {
	removed, would := "removed", ""
	if o.DryRun {
		removed, would = "would remove", "would be "
	}
	p, err := made.Prune(o)
	if p.Go > 0 {
		fmt.Fprintf(w, "%s %s of Go's cache\n", removed, mib(p.Go))
	}
	for _, e := range p.Entries {
		fmt.Fprintf(w, "%s %s %.12s %s\n", removed, e.Kind, e.Key, e.Note)
	}
	if p.Busy {
		fmt.Fprintln(w, "Go's cache was left alone, because a run is compiling")
	}
	errs := []error{err}
	for _, k := range keepers {
		list, err := prunedOf(ctx, k, o.DryRun)
		for _, i := range list {
			fmt.Fprintf(w, "%s %s %s\n", removed, i.Kind, i.Name)
			p.Freed += i.Bytes
		}
		errs = append(errs, err)
	}
	layers := ""
	if len(keepers) > 0 {
		layers = " (images share layers, so the disk may have gained less)"
	}
	fmt.Fprintf(
		w,
		"%s %sfreed%s; the cache takes up %s\n",
		mib(p.Freed),
		would,
		layers,
		mib(p.Left),
	)
	return errors.Join(errs...)
}

// prunedOf has a keeper remove what nothing is using, or lists what it keeps.
func prunedOf(ctx context.Context, k cluster.Keeper, dryRun bool) ([]cluster.Kept, error) {
	if dryRun {
		return k.Kept(ctx)
	}
	return k.Prune(ctx)
}

func mib(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }

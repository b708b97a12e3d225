package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	reports "github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/version"
	"github.com/kube-relapse/relapse/internal/printing"
	"github.com/kube-relapse/relapse/internal/sums"
)

type nightlyFlags struct {
	runFlags
	resume       bool
	budget       time.Duration
	keepRuns     int
	maxRunsDisk  int64
	keepFindings time.Duration
	on           kubeFlags
}

func newNightlyCmd() *cobra.Command {
	var f nightlyFlags
	cmd := &cobra.Command{
		Use:   "nightly [NAME...]",
		Short: "Run every pair of every scenario several times, within limits of time and disk",
		Long: fmt.Sprintf(
			`Nightly runs every scenario, or the scenarios that are named, with every pair of arms: one
run for each pair. It goes on after a run that was not as expected. At the end it prints a table, and writes the
same table for programs to %[1]s, one %[2]s for all runs, and the index page. Its exit code is the worst of the
runs' exit codes: 1 outranks 4, then 3, then 0.

The field budget of a scenario is the time for all its pairs and repeats, builds included. A run that exceeds the
budget is ended cleanly and listed as not done, like the runs for which --time-limit leaves no time. The exit code is
then 3. --resume runs what %[1]s lists as not done. A run counts as done if its program, scenario, options and seed
are the same and its verdict is still there. Time limits and budgets begin anew.

--keep-runs and --max-runs-disk remove old run directories, the oldest first, before each run and at the end. These stay:
the newest judged run of each scenario, the runs of this nightly and, for the time of --keep-findings, runs that were
not as expected. A run without a verdict is removed once it is older than a day and than --keep-findings. A folder
without a plan of relapse is never touched.

Programs come as they do for relapse run, by one decision for each run. With --release, a run that has no published
program at all is built. The disk that builds need is looked at before the first run, without those that may be
published; each run looks again once it knows.

With --on kubernetes, the trials of each run are made by a Job in a cluster that is there, with the flags of relapse run,
and scenarios that can't run in pods are left out. Once a run is judged, its Job, its image and its bundles there are
removed.

Each run has a random seed of its own, which %[1]s lists and --resume keeps. --seed gives all runs one:
relapse run with a run's pair, trials and seed makes the same plan.`,
			campaign.SummaryFile,
			reports.JUnitFile,
		),
		Example: `  relapse nightly --repeat 3 --time-limit 6h
  relapse nightly --resume
  relapse nightly --build
  relapse nightly pleg-deadlock --max-runs-disk 20GiB`,
		Args:              func(*cobra.Command, []string) error { return nil },
		ValidArgsFunction: completeScenarios,
		RunE:              func(cmd *cobra.Command, args []string) error { return runNightly(cmd, f, args) },
	}
	fl := cmd.Flags()
	fl.IntVar(&f.options.Repeat, "repeat", 3, "trials of each pair")
	f.until.register(cmd)
	registerSeed(cmd, &f.options.Seed)
	fl.StringVar(
		&f.options.NodeImage,
		"node-image",
		"auto",
		"the node image: auto (official if there is one, else assembled), official, assembled or a reference",
	)
	runsVar(fl, &f.out)
	f.programs.register(fl)
	f.progressFlags.register(fl)
	fl.BoolVar(&f.resume, "resume", false, "run what the nightly run in --runs has not done")
	limitVar(fl, &f.timeLimit, "time-limit", 0, "the time for the whole nightly run, such as 6h (default: no limit)")
	limitVar(fl, &f.budget, "budget", 0, "the time for each scenario, such as 90m (default: the scenario's own budget)")
	fl.IntVar(&f.keepRuns, "keep-runs", 0, "the most runs of each scenario to keep (default: all)")
	sizeVar(fl, &f.maxRunsDisk, "max-runs-disk", "the most disk that all run directories may take up, such as 20GiB (default: no limit)")
	f.disk.register(fl)
	durationVar(fl, &f.keepFindings, "keep-findings", 14*24*time.Hour,
		"how long to keep a run that was not as expected, whatever the other limits say")
	f.on.register(cmd)
	completeFlags(cmd)
	return concluding(cmd)
}

func runNightly(cmd *cobra.Command, f nightlyFlags, names []string) error {
	root, err := moduleRoot(cmd)
	if err != nil {
		return err
	}
	if err := f.fitsAll(cmd, &f.on); err != nil {
		return err
	}
	prune, err := f.prune(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	program, err := identity()
	if err != nil {
		return err
	}
	earlier, err := f.earlier(program)
	if err != nil {
		return err
	}
	units, err := f.units(cmd, names, earlier)
	if err != nil {
		return err
	}
	plans := make([]*plan.Plan, len(units))
	for i, u := range units {
		plans[i] = u.Plan
	}
	if err := f.disk.room(cmd, root, plans, f.programs.publisher); err != nil {
		return err
	}
	s, err := campaign.Nightly(cmd.Context(), campaign.Options{
		Out:       f.out,
		Units:     units,
		Relapse:   program,
		Resume:    f.resume,
		TimeLimit: f.timeLimit,
		Budget:    f.budget,
		Prune:     prune,
		Say:       func(s string) { note(cmd, "nightly: %s", s) },
		Run: func(ctx context.Context, u campaign.Unit) (string, judge.Verdict, error) {
			if err := f.programs.open(); err != nil { // anew, so that a host that was silent once is asked again
				return "", judge.Verdict{}, err
			}
			dir, v, err := f.on.carryOut(ctx, cmd, f.runFlags, root, u.Plan)
			if err != nil {
				return dir, v, err
			}
			return dir, v, f.tell(cmd, dir, v)
		},
	})
	if err != nil {
		return hinted(err, "relapse nightly --resume goes on with what was not done")
	}
	if err := buildReports(cmd, []string{f.out}, f.out); err != nil { // runs broke off; the index names them
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: not every run is in the index with a verdict:", err)
	}
	if err := nightlyTable(cmd.OutOrStdout(), s); err != nil {
		return err
	}
	fmt.Fprintf(
		cmd.OutOrStdout(),
		"\nsummary: %s\n",
		filepath.Join(short(f.out), campaign.SummaryFile),
	)
	printLast(cmd, s.Verdict, s.ExitCode)
	return exitWith(s.ExitCode)
}

// units returns one unit for each pair of each scenario. A unit that is among earlier keeps its seed, unless --seed was
// given. It refuses a scenario that can't be planned, before anything is built.
func (f *nightlyFlags) units(
	cmd *cobra.Command,
	names []string,
	earlier []campaign.Result,
) ([]campaign.Unit, error) {
	all := len(names) == 0
	if all {
		files, err := scenarioFiles(cmd)
		if err != nil {
			return nil, err
		}
		names = files
	}
	var units []campaign.Unit
	for _, name := range names {
		s, err := loadScenario(cmd, name)
		if err != nil {
			return nil, err
		}
		if all && f.on.on != "" && !slices.Contains(s.Spec.RunsOn(), providers.Processes) {
			note(
				cmd,
				"nightly: %s is left out, as it can't run in pods: it is made for %s",
				s.Metadata.Name,
				strings.Join(s.Spec.RunsOn(), ", "),
			)
			continue
		}
		for _, pair := range s.Spec.Pairs {
			one := f.planFlags
			one.options.Pair = pair.Name
			for _, r := range earlier {
				if r.Scenario == s.Metadata.Name && r.Pair == pair.Name && !cmd.Flags().Changed("seed") {
					one.options.Seed, one.seeded = r.Seed, true
				}
			}
			p, err := one.resolve(cmd, name)
			if err == nil {
				err = f.programs.applyToOne(p)
			}
			if err != nil {
				return nil, err
			}
			u, err := campaign.NewUnit(p)
			if err != nil {
				return nil, err
			}
			units = append(units, u)
		}
	}
	return units, nil
}

// earlier returns what became of the units of the nightly run that is resumed, and nil if none is, or if that was one of
// another program: nothing of it is taken over.
func (f *nightlyFlags) earlier(program string) ([]campaign.Result, error) {
	if !f.resume {
		return nil, nil
	}
	was, err := campaign.ReadSummary(f.out)
	if err != nil {
		return nil, usage(err, "leave out --resume, or say with --runs where it was")
	}
	if was.Relapse != program {
		return nil, nil
	}
	return was.Units, nil
}

// prune returns a function that removes old runs, or nil if the flags ask for no removal.
func (f *nightlyFlags) prune(errs io.Writer) (func([]string) ([]string, error), error) {
	o := campaign.PruneOptions{
		KeepRuns:     f.keepRuns,
		KeepFindings: f.keepFindings,
		MaxDisk:      f.maxRunsDisk,
	}
	if f.keepRuns < 0 {
		return nil, usage(
			fmt.Errorf("--keep-runs is %d (want at least 1)", f.keepRuns),
			"leave out --keep-runs to keep all",
		)
	}
	if o.KeepRuns == 0 && o.MaxDisk == 0 {
		return nil, nil
	}
	return func(keep []string) ([]string, error) {
		o.Keep, o.Now = keep, time.Now()
		removed, over, err := campaign.Prune(f.out, o)
		for _, name := range removed {
			fmt.Fprintln(errs, "nightly: removed the old run", name)
		}
		if over > 0 {
			fmt.Fprintf(
				errs,
				"warning: the runs that must be kept take up %d MiB more than --max-runs-disk %s\n",
				over>>20,
				cache.FormatSize(f.maxRunsDisk),
			)
		}
		return removed, err
	}, nil
}

// identity returns this program's version and SHA-256. The version alone isn't enough, because two builds of a changed
// checkout have the same one.
func identity() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	sum, err := sums.File(path)
	if err != nil {
		return "", fmt.Errorf("reading this program: %w", err)
	}
	return version.Relapse() + ", sha256 " + sum[:12], nil
}

func nightlyTable(w io.Writer, s campaign.Summary) error {
	t := printing.Table{
		Empty:  "-",
		Header: []string{"scenario", "pair", "trials", "verdict", "exit", "time", "run"},
	}
	for _, r := range s.Units {
		trials, what := strconv.Itoa(r.Trials), r.Verdict
		if r.Status != campaign.Done {
			trials, what = "", fmt.Sprintf("%s: %s", r.Status, r.Why)
		}
		t.Add(r.Scenario, r.Pair, trials, what, r.Exit,
			time.Duration(r.Seconds*float64(time.Second)).Round(time.Second), r.Dir)
	}
	_, err := io.WriteString(w, t.Fit(width(w)))
	return err
}

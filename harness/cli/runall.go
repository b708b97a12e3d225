package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/host"
)

// allHelp describes the run of all scenarios.
const allHelp = `--all runs the default pair of every scenario that the provider can run, and lists the others as not run.
--component and --failure choose among them. What all of them need is built first, each program once; then trials run
side by side, and the output ends with one table. Together they have at most one node of their clusters for each core
of this host, and 2 GiB of free memory for each; --parallel N asks for N trials at once. A scenario whose own checks rest
on CPU time runs alone. What became of each is in runs/` + campaign.CorpusFile + `, and compared with the time before. The exit code is
the worst of all, as of relapse nightly; what is listed as not run counts for nothing. A scenario's budget limits its
trials, and --time-limit the whole.`

// allFlags are the flags of run for all scenarios.
type allFlags struct {
	on, shuffle bool
	choose      chooseFlags
}

func (a *allFlags) register(cmd *cobra.Command) {
	cmd.Flags().
		BoolVar(&a.on, "all", false, "run the default pair of every scenario, and end in one table")
	cmd.Flags().
		BoolVar(&a.shuffle, "shuffle", false, "with --all: in an order that the seed draws (default: by name)")
	a.choose.register(cmd, "with --all: only scenarios")
}

// ofOne are the flags of run that are about one scenario.
var ofOne = []string{"file", "candidate", "retain", "pair", "until-confident", "target-rate", "max-trials", "confidence", "sequential",
	"no-faults", "without", "arms", "set", "swap"}

// fits refuses flags that don't go together.
func (a *allFlags) fits(cmd *cobra.Command, args []string) error {
	if !a.on {
		for _, name := range []string{"shuffle", "component", "failure"} {
			if cmd.Flags().Changed(name) {
				return usage(fmt.Errorf("--%s is for --all", name), "relapse run --all --"+name)
			}
		}
		return nil
	}
	if len(args) > 0 {
		return usage(
			fmt.Errorf("--all runs every scenario, and %s is one", args[0]),
			"relapse nightly "+strings.Join(args, " ")+
				" runs some; --component and --failure choose among all",
		)
	}
	for _, name := range ofOne {
		if cmd.Flags().Changed(name) {
			return usage(
				fmt.Errorf(
					"--all runs the default pair of each scenario as it is, and --%s is about one scenario",
					name,
				),
				"leave out one of them",
			)
		}
	}
	return a.choose.fits()
}

// runAll runs the default pairs of all chosen scenarios.
func runAll(cmd *cobra.Command, f runFlags, a allFlags) error {
	root, err := moduleRoot(cmd)
	if err != nil {
		return err
	}
	if err := errors.Join(f.progressFlags.fits(), f.disk.fits()); err != nil {
		return err
	}
	program, err := identity()
	if err != nil {
		return err
	}
	c := campaign.Corpus{
		Out:       f.out,
		Relapse:   program,
		TimeLimit: f.timeLimit,
		Say:       func(s string) { note(cmd, "all: %s", s) },
	}
	if c.Units, c.Skipped, err = f.defaultPairs(cmd, a); err != nil {
		return err
	}
	plans := make([]*plan.Plan, len(c.Units))
	for i, u := range c.Units {
		plans[i] = u.Plan
	}
	if err := f.roomFor(cmd, &c, plans); err != nil {
		return err
	}
	if err := f.disk.room(cmd, root, plans, f.programs.publisher); err != nil {
		return err
	}
	earlier, err := campaign.ReadCorpus(f.out)
	if err != nil {
		note(cmd, "all: nothing is compared with: %v", err)
	}
	one := newSide(cmd, f, root, c.Room)
	c.Build, c.Run = one.build, one.run
	s, err := c.RunAll(cmd.Context())
	if len(s.Units) == 0 {
		return err
	}
	if printed := writeCorpus(cmd.OutOrStdout(), f.out, s, earlier); printed != nil || err != nil {
		return failed(errors.Join(err, printed))
	}
	printLast(cmd, s.Verdict, s.ExitCode)
	return exitWith(s.ExitCode)
}

// defaultPairs returns a unit for the default pair of each chosen scenario, in the order in which they are to run, and
// what can't be run on the provider that was asked for. It refuses a scenario that can't be planned, before anything is
// built.
func (f *runFlags) defaultPairs(
	cmd *cobra.Command,
	a allFlags,
) (units []campaign.Unit, skipped []campaign.Result, err error) {
	if f.provider != autoProvider && !slices.Contains(providers.All, f.provider) {
		return nil, nil, usage(
			fmt.Errorf(
				"there is no provider %q %s",
				f.provider,
				oneOf(f.provider, providers.All),
			),
			"leave out --provider",
		)
	}
	files, err := scenarioFiles(cmd)
	if err != nil {
		return nil, nil, err
	}
	var all []*scenario.Scenario
	for _, file := range files {
		s, err := loadScenario(cmd, file)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, s)
	}
	if all, err = a.choose.of(all); err != nil {
		return nil, nil, err
	}
	if err := drawSeed(cmd, &f.options.Seed); err != nil {
		return nil, nil, err
	}
	f.seeded = true
	for _, s := range all {
		if f.provider != autoProvider && !slices.Contains(s.Spec.RunsOn(), f.provider) {
			skipped = append(
				skipped,
				campaign.Result{Scenario: s.Metadata.Name, Pair: defaultPairOf(s),
					Why: "needs " + strings.Join(s.Spec.RunsOn(), " or ")},
			)
			continue
		}
		p, err := f.planFor(cmd, s)
		if err != nil {
			return nil, nil, err
		}
		u, err := campaign.NewUnit(p)
		if err != nil {
			return nil, nil, err
		}
		units = append(units, u)
	}
	if len(units) == 0 {
		return nil, nil, usage(
			fmt.Errorf(
				"none of the %d scenarios can run on the provider %s",
				len(all),
				f.provider,
			),
			"relapse list shows the providers of each",
		)
	}
	order := "by name"
	if a.shuffle {
		order = "shuffled"
		drawn := rand.New(rand.NewPCG(uint64(f.options.Seed), 0))
		drawn.Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
	}
	note(
		cmd,
		"all: %d scenarios, %d not run, order %s; seed %d: --seed %[4]d repeats the plans and the order",
		len(units),
		len(skipped),
		order,
		f.options.Seed,
	)
	return units, skipped, nil
}

// defaultPairOf returns the name of the pair that a run takes unless it is asked for another.
func defaultPairOf(s *scenario.Scenario) string {
	if i := slices.IndexFunc(s.Spec.Pairs, func(p scenario.Pair) bool { return p.Default }); i >= 0 {
		return s.Spec.Pairs[i].Name
	}
	return s.Spec.Pairs[0].Name
}

// planFor returns the plan of a scenario's default pair on the provider that was asked for, or else on the first of the
// scenario's providers that works on this host. Where none works it is the plan for the last one, whose run says why not.
func (f *runFlags) planFor(cmd *cobra.Command, s *scenario.Scenario) (p *plan.Plan, err error) {
	err = f.firstProvider(cmd, s, func(name string) error {
		one := f.planFlags
		one.options.Provider = name
		if p, err = one.resolve(cmd, s.Origin.File); err != nil {
			return err
		}
		if err := f.programs.applyToOne(p); err != nil {
			return err
		}
		on, err := newProvider(name, nil, false)
		if err != nil {
			return err
		}
		return on.Check(cmd.Context(), p.Needs(nil))
	})
	if host := (*cluster.HostError)(nil); errors.As(err, &host) && cmd.Context().Err() == nil {
		return p, nil
	}
	return p, err
}

// roomFor decides how many trials may run at once, and says so.
func (f *runFlags) roomFor(cmd *cobra.Command, c *campaign.Corpus, plans []*plan.Plan) error {
	cores, free := runtime.NumCPU(), host.FreeMemory()
	if !cmd.Flags().Changed("parallel") {
		c.Room.Nodes = plan.NodesAtOnce(cores, free)
		note(
			cmd,
			"all: trials run side by side while they have no more than %d nodes of clusters: one a core of %d, and 2 GiB "+
				"of memory each, of %.1f GiB",
			c.Room.Nodes,
			cores,
			float64(free)/(1<<30),
		)
		return nil
	}
	if f.parallel < 1 {
		return usage(
			fmt.Errorf("--parallel is %d (want at least 1)", f.parallel),
			"leave out --parallel",
		)
	}
	for _, p := range plans {
		if err := p.Parallel(f.parallel, cores, free); f.parallel > 1 && err != nil {
			return usage(
				fmt.Errorf("--parallel: %s: %w", p.Scenario, err),
				"leave out --parallel",
			)
		}
	}
	c.Room.Trials = f.parallel
	return nil
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/plan/candidate"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/version"
)

type runFlags struct {
	planFlags
	progressFlags
	file      string
	candidate string
	out       string
	retain    bool
	timeLimit time.Duration
	parallel  int
	programs  programFlags
	disk      diskFlags
}

// fitsAll checks the flags that survey, nightly and oracle have in common, with what more says of their others. In a cluster
// that is there, trials are made on plain processes.
func (f *runFlags) fitsAll(cmd *cobra.Command, on *kubeFlags, more ...error) error {
	if err := errors.Join(append([]error{f.progressFlags.fits(), f.disk.fits()}, more...)...); err != nil {
		return err
	}
	if err := on.fits(cmd); err != nil {
		return err
	}
	if on.on != "" {
		f.provider = providers.Processes
	}
	return nil
}

func newRunCmd() *cobra.Command {
	var f runFlags
	var all allFlags
	var on kubeFlags
	cmd := &cobra.Command{
		Use:   "run NAME|FILE|--all",
		Short: "Reproduce a scenario, or all of them, and judge every arm",
		Long: `Run checks the host, builds each arm, creates a node, a cluster or a workload for each arm, injects the
scenario's faults in all arms at once, collects evidence and judges the evidence. The output ends with the verdict
and the line

  relapse: <verdict> (exit N)

That line is the last one however run ends: relapse: Error (exit 4) stands below an error, relapse: interrupted (exit 130)
below what there is to say after Ctrl-C. Only wrong usage (exit 64) has no such line.

The evidence is in runs/<id>-<scenario>/, and runs/latest points to that directory. Run removes everything else
but the cache, also on failure and on Ctrl-C. relapse clean removes what a killed run left.

` + candidateHelp + `

Programs are taken as their project published them if all arms' can be had so, from registry.k8s.io or dl.k8s.io, or
else all are built from source. A mutation, a fixture or a candidate that is built here has all of them built. --build
and --release decide it; see docs/published.md.

--until-confident runs trials until the judged arm is proven, at 95 %, to show the incident in less than
--target-rate of them. A trial counts if its controls were as expected; the others are set aside. For 20% that
takes 14 trials without the incident, nearly 2 hours at 7 minutes each (29 for 10%, 59 for 5%). The first trial
that shows the incident ends the run as StillVulnerable, and the first in which the arm fails in another way ends the
run as Broken (both exit 1). A trial that counts but gives no answer about the arm ends the run as Inconclusive,
because an incident may destroy its own evidence. The run also ends as Inconclusive if so many trials are set aside
that the rate can't be proven within --max-trials.

` + onHelp + `

` + allHelp + `

Exit codes: 0 validated (or, with one arm, as expected), 1 still vulnerable, broken or not reproduced,
3 inconclusive, 4 something of relapse's own failed, 64 wrong usage, 130 interrupted.`,
		Example: `  relapse run pleg-deadlock
  relapse run pleg-deadlock --candidate src:../kubernetes
  relapse run pleg-deadlock --no-faults           # the null control
  relapse run apiserver-goroutine-leak --pair all --set items=2000
  relapse run pleg-deadlock --arms fixed --repeat 5
  relapse run pleg-deadlock --until-confident --target-rate 10%
  relapse run -f plan.json
  relapse run --all --provider processes
  relapse run watch-loses-delete --repeat 200 --on kubernetes -n relapse --parallelism 20 --registry registry.example.com/team/relapse
  relapse run --all --component kube-apiserver,etcd --failure leak`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := on.fits(cmd); err != nil {
				return err
			}
			if err := all.fits(cmd, args); err != nil || all.on {
				return err
			}
			return f.args(cmd, args)
		},
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all.on {
				return runAll(cmd, f, all)
			}
			if on.on != "" {
				return runOn(cmd, f, on, args)
			}
			return runRun(cmd, f, args)
		},
	}
	f.register(cmd)
	all.register(cmd)
	on.register(cmd)
	on.registerSole(cmd.Flags())
	return concluding(cmd)
}

// register adds all flags of run to cmd.
func (f *runFlags) register(cmd *cobra.Command) {
	f.planFlags.register(cmd)
	fl := cmd.Flags()
	fl.StringVarP(&f.file, "file", "f", "", "run the plan in this file, which relapse plan -o json printed; "+
		"the verdict lists what differs from the scenario's own plan")
	fl.Var(once{&f.candidate, "build", "a run judges one candidate, and another run the next"}, "candidate",
		"judge your own build as an additional arm: bin:PATH, src:DIR, patch:FILE@VERSION, git:URL@REF, pr:NUMBER, release:VERSION, mod:PATH@VERSION, image:REF or nodeimage:REF")
	runsVar(fl, &f.out)
	fl.BoolVar(&f.retain, "retain", false, "keep the cluster, and print how to reach and remove it")
	limitVar(fl, &f.timeLimit, "time-limit", 0, "end the run and clean up after this time, such as 90m (default: no limit)")
	renamed(fl, "timeout", "time-limit")
	f.programs.register(fl)
	f.progressFlags.register(fl)
	f.disk.register(fl)
	fl.IntVar(
		&f.parallel,
		"parallel",
		1,
		"how many trials run at once, with --repeat or several pairs",
	)
	completeFlags(cmd)
}

// args accepts the name of a scenario, or nothing beside -f.
func (f *runFlags) args(cmd *cobra.Command, args []string) error {
	if f.file != "" {
		return exactly(0, "scenarios beside -f")(cmd, args)
	}
	switch len(args) {
	case 1:
		return nil
	case 0:
		names, _ := completeScenarios(cmd, nil, "") // without a checkout there are none to list
		return usage(
			fmt.Errorf(
				"%s takes a scenario, and none is named %s",
				cmd.CommandPath(),
				oneOf("", names),
			),
			"relapse list shows what each of them is",
		)
	}
	return usage(fmt.Errorf("%s takes one scenario, not %d", cmd.CommandPath(), len(args)),
		"relapse nightly "+strings.Join(args, " ")+" runs several")
}

func runRun(cmd *cobra.Command, f runFlags, args []string) error {
	root, p, err := f.ready(cmd, args)
	if err != nil {
		return err
	}
	v, err := f.judged(cmd, args, root, p)
	if err != nil {
		return failed(err)
	}
	printLast(cmd, v.Verdict, v.ExitCode)
	return exitWith(v.ExitCode)
}

// ready returns the checkout and the plan of a run, with everything refused that can be before it begins.
func (f *runFlags) ready(
	cmd *cobra.Command,
	args []string,
) (root string, p *plan.Plan, err error) {
	if root, err = moduleRoot(cmd); err != nil {
		return "", nil, err
	}
	if p, err = f.plan(cmd, args); err != nil {
		return "", nil, err
	}
	return root, p, f.fits(p)
}

// judged runs a plan on a provider that works here, and returns the verdict, which it has printed.
func (f *runFlags) judged(
	cmd *cobra.Command,
	args []string,
	root string,
	p *plan.Plan,
) (v judge.Verdict, err error) {
	ctx, cancel := f.limited(cmd.Context())
	defer cancel()
	err = asRefusal(placed(p, f.onProviders(cmd, args, p, func(p *plan.Plan) (err error) {
		_, v, err = f.execute(ctx, cmd, root, p)
		return err
	})))
	return v, err
}

// limited returns a context that ends after --time-limit.
func (f *runFlags) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.timeLimit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(
		ctx,
		f.timeLimit,
		fmt.Errorf("it was not done within --time-limit %s", f.timeLimit),
	)
}

// fits refuses flags of a run that don't go with its plan.
func (f *runFlags) fits(p *plan.Plan) error {
	if err := errors.Join(f.progressFlags.fits(), f.disk.fits()); err != nil {
		return err
	}
	if f.quiet && f.retain {
		return usage(
			errors.New("--retain prints how to reach the cluster, and --quiet leaves that out"),
			"leave out one of them",
		)
	}
	if p.Until != nil && f.retain {
		return usage(
			errors.New(
				"--retain keeps the cluster of the last trial, and --until-confident doesn't know "+
					"which one that is",
			),
			"use --repeat, or leave out --retain",
		)
	}
	if least := p.AtLeast(f.parallel); f.timeLimit > 0 && f.timeLimit < least {
		return usage(
			fmt.Errorf(
				"--time-limit %s is shorter than the phases, which last %s at least (%s)",
				f.timeLimit,
				least,
				p.Trials[0].Lengths(),
			),
			"leave out --time-limit, or allow for building the arms and creating clusters, too: 90m",
		)
	}
	if err := f.parallelFits(p); err != nil {
		return usage(err, "leave out --parallel, which runs one trial after the other")
	}
	return nil
}

// short returns a path relative to the working directory if it lies below that, and otherwise the path unchanged.
func short(dir string) string {
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, dir); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return dir
}

// plan reads the plan of -f, or plans the scenario with its candidate.
func (f *runFlags) plan(cmd *cobra.Command, args []string) (*plan.Plan, error) {
	if f.file != "" {
		raw, err := os.ReadFile(f.file)
		switch {
		case isDir(f.file):
			return nil, usage(fmt.Errorf("-f %s: it is a folder (want the file of a plan)", f.file),
				"-f "+filepath.Join(f.file, bundle.PlanFile)+", if it is the folder of a run")
		case err != nil:
			return nil, usage(err, "relapse plan NAME -o json > "+f.file)
		}
		p, err := plan.Decode(raw)
		if err != nil {
			err = fmt.Errorf(
				"reading %s: %w; this is relapse %s, which may be older than the one that wrote it",
				f.file,
				err,
				version.Relapse(),
			)
			return nil, usage(err, "relapse plan NAME -o json prints a plan")
		}
		if err := f.programs.apply(p); err != nil {
			return nil, err
		}
		return p, noteChanges(cmd, p, true)
	}
	f.options.Candidates = nil
	if f.candidate != "" {
		src, err := f.source(cmd, args[0])
		if err != nil {
			return nil, err
		}
		f.options.Candidates = []plan.Candidate{{Source: src}}
	}
	return f.planned(cmd, args[0])
}

// planned plans the scenario with the candidates among the options.
func (f *runFlags) planned(cmd *cobra.Command, name string) (*plan.Plan, error) {
	p, err := f.resolve(cmd, name)
	if err == nil {
		err = f.programs.apply(p)
	}
	if err != nil {
		return nil, err
	}
	return p, noteChanges(cmd, p, false)
}

// source returns the source of the candidate.
func (f *runFlags) source(cmd *cobra.Command, name string) (*scenario.Source, error) {
	if err := f.exactFits(cmd, name); err != nil {
		return nil, err
	}
	return candidateSource(cmd, f.candidate, name)
}

// exactFits refuses a candidate that is an exact version which the scenario can't run, before a module proxy is asked.
func (f *runFlags) exactFits(cmd *cobra.Command, name string) error {
	s, err := loadScenario(cmd, name)
	if err != nil {
		return err
	}
	src := candidate.Exactly(s, f.candidate)
	if src == nil {
		return nil
	}
	with := f.planFlags
	with.options.Candidates = []plan.Candidate{{Source: src}}
	_, err = with.resolve(cmd, name)
	return err
}

// noteChanges records in a plan how it differs from that of the scenario with the same name here. If there is none, it
// records that of a plan that was read from a file. If nobody knows whether there is one, because the scenarios can't be
// listed, it records that of any plan.
func noteChanges(cmd *cobra.Command, p *plan.Plan, fromFile bool) error {
	files, err := scenarioFiles(cmd)
	i := slices.IndexFunc(files, func(f string) bool { return scenarioName(f) == p.Scenario })
	switch {
	case err != nil:
		p.NoteUncompared(err)
		return nil
	case i < 0 && fromFile:
		p.NoteUncompared(errors.New("there is none of that name here"))
		return nil
	case i < 0:
		return nil
	}
	s, err := loadScenario(cmd, files[i])
	if err != nil {
		return err
	}
	base, err := kindConfig(cmd)
	if err != nil {
		return err
	}
	return p.NoteChanges(s, base)
}

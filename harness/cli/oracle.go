package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/internal/docker"
	"github.com/kube-relapse/relapse/internal/printing"
)

type oracleFlags struct {
	runFlags
	full   bool
	beside int
	from   string
	on     kubeFlags
	output printing.Format
}

func newOracleCmd() *cobra.Command {
	var f oracleFlags
	cmd := &cobra.Command{
		Use:   "oracle [NAME [CANDIDATE...]]",
		Short: "Test a scenario's checks with candidates whose right answer is known",
		Long: fmt.Sprintf(
			`Oracle runs the candidates of a scenario (in its folder candidates/), or the candidates
that are named, and compares the outcome of each with the right outcome: NotReproduced for a cure, Reproduced for a
bug that moved, Broken for another failure. Without NAME it does so for every scenario.

Several candidates share a trial, each with its own node, cluster or workload; the scenario's two arms are the
controls. The section oracle of the scenario names the pair and the settings that make a trial short. --full takes the
scenario's default pair and own numbers instead. --pair and --set take precedence over both. The command ends with a
table, which is also in runs/<id>-oracle-NAME/%[1]s and %[2]s.

Candidates are built here, and so are the controls beside them: a published program differs from a build in its
compiler and flags, too. For the same reason no part of a cluster is taken as published. Each run has a random seed of
its own, which its plan.json records, unless --seed gives one to all.

The right outcome has to come from the checks that the candidate names under because. If one of those checks has
another answer, or if the outcome is the same without those checks, the candidate is "right by luck". In these cases
the candidate gave no answer:
  - It is Inconclusive, and another outcome is right.
  - A control was not as expected.
  - A check that the candidate names is unknown and should not be.
  - No vulnerable arm in the same trial showed the incident.

--from grades recorded evidence and runs nothing. The evidence is a run, or all runs of an earlier oracle.

--provider says what makes the clusters, as for relapse run. Without NAME, oracle leaves out scenarios that don't list
that provider.

With --on kubernetes, the trials of each run are made by a Job in a cluster that is there, with the flags of relapse run,
one run after the other. Candidates are built here. Once a run is judged, its Job, its image and its bundles there are
removed. --beside says how many candidates share a pod; --memory must be enough for them.

Exit codes: 0 all candidates are right, 1 one is wrong or right by luck, 3 one gave no answer or was not run, 4 one
can't be built or its run failed; 1 outranks 4, then 3.`,
			campaign.OracleFile,
			campaign.OracleMarkdownFile,
		),
		Example: `  relapse oracle pleg-deadlock
  relapse oracle pleg-deadlock unbounded-queue gives-up-after-10s
  relapse oracle pleg-deadlock --full --beside 1
  relapse oracle apiserver-goroutine-leak --provider processes
  relapse oracle fleet-status-churn --repeat 3 -o markdown
  relapse oracle pleg-deadlock --from runs/1f3c9a07-oracle-pleg-deadlock`,
		Args:              func(*cobra.Command, []string) error { return nil },
		ValidArgsFunction: completeOracle,
		RunE:              func(cmd *cobra.Command, args []string) error { return runOracle(cmd, f, args) },
	}
	fl := cmd.Flags()
	registerBeside(fl, &f.beside, "candidates")
	fl.BoolVar(&f.full, "full", false, "take the scenario's default pair and own numbers, not those in its section oracle")
	fl.StringVar(&f.options.Pair, "pair", "",
		"the pair whose arms are the controls (default: the scenario's oracle.pair, else its default pair)")
	fl.StringArrayVar(&f.set, "set", nil,
		"change a declared parameter, or any field by its path: NAME=VALUE; takes precedence over the scenario's oracle.set")
	fl.IntVar(&f.options.Repeat, "repeat", 1, "trials of each candidate, all of which must be right")
	fl.StringVar(&f.from, "from", "", "grade the evidence in this directory of a run or of an earlier oracle, and run nothing")
	registerSeed(cmd, &f.options.Seed)
	f.registerProvider(cmd)
	fl.StringVar(
		&f.options.NodeImage,
		"node-image",
		"auto",
		"the node image: auto (official if there is one, else assembled), official, assembled or a reference",
	)
	runsVar(fl, &f.out)
	f.progressFlags.register(fl)
	f.disk.register(fl)
	f.on.register(cmd)
	registerOutput(cmd, &f.output, printing.Text, printing.JSON, printing.Markdown)
	completeFlags(cmd)
	return concluding(cmd)
}

func runOracle(cmd *cobra.Command, f oracleFlags, args []string) error {
	if err := f.fitsAll(cmd, &f.on, besideFits(f.beside)); err != nil {
		return err
	}
	if f.from != "" {
		return f.regrade(cmd, args)
	}
	root, err := moduleRoot(cmd)
	if err != nil {
		return err
	}
	exams, err := f.exams(cmd, args)
	if err != nil {
		return err
	}
	if err := f.roomForAll(cmd, root, exams); err != nil {
		return err
	}
	program, err := identity()
	if err != nil {
		return err
	}
	var exits []int
	grade := campaign.Right
	for _, e := range exams {
		if err := e.chooseProvider(cmd); err != nil {
			return hostHint(cmd, e.options.Settings.Provider, err)
		}
		e.options.Relapse = program
		s, err := campaign.Oracle(cmd.Context(), f.hooks(cmd, root, e))
		if len(s.Candidates) > 0 && !s.EndedAt.IsZero() {
			if err := printOracle(cmd.OutOrStdout(), s, f.output); err != nil {
				return err
			}
		}
		if err != nil {
			return failed(err)
		}
		fmt.Fprintln(
			cmd.ErrOrStderr(),
			"table:",
			filepath.Join(short(e.options.Dir), campaign.OracleMarkdownFile),
		)
		if exits = append(exits, s.ExitCode); s.ExitCode == verdict.Combine(exits) {
			grade = s.Grade
		}
	}
	return f.end(cmd, grade, verdict.Combine(exits))
}

// end prints the last line and returns the exit code.
func (f *oracleFlags) end(cmd *cobra.Command, grade campaign.Grade, exit int) error {
	printLast(cmd, verdict.Verdict(grade), exit)
	return exitWith(exit)
}

// regrade runs `relapse oracle --from`: it grades what was recorded.
func (f *oracleFlags) regrade(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(
			errors.New("--from is for one scenario, and none is named"),
			"relapse oracle NAME --from DIR",
		)
	}
	s, err := loadScenario(cmd, args[0])
	if err != nil {
		return err
	}
	all, err := s.Candidates()
	if err != nil {
		return asInput(err)
	}
	known := namesOf(all)
	for _, name := range args[1:] {
		if !slices.Contains(known, name) {
			return noCandidate(s.Metadata.Name, name, known)
		}
	}
	if len(args) > 1 {
		all = slices.DeleteFunc(
			all,
			func(k scenario.CandidateFile) bool { return !slices.Contains(args[1:], k.Metadata.Name) },
		)
	}
	const hint = "--from takes a run's directory, runs/ID, or an oracle's, runs/ID-oracle-NAME"
	if !isDir(f.from) {
		return usage(fmt.Errorf("grading %s: there is no such folder", f.from), hint)
	}
	sum, err := campaign.Regrade(s.Metadata.Name, all, f.from)
	if err != nil {
		return hinted(err, hint)
	}
	if err := printOracle(cmd.OutOrStdout(), sum, f.output); err != nil {
		return err
	}
	return f.end(cmd, sum.Grade, sum.ExitCode)
}

// hooks returns the functions with which the oracle plans, builds and runs.
func (f *oracleFlags) hooks(cmd *cobra.Command, root string, e exam) campaign.OracleOptions {
	o := e.options
	o.Say = func(s string) { note(cmd, "oracle: %s", printing.OneLine(s)) }
	o.Plan = func(list []scenario.CandidateFile) (*plan.Plan, error) { return e.plan(cmd, list) }
	o.Run = func(ctx context.Context, p *plan.Plan) (string, judge.Verdict, error) {
		return f.on.carryOut(ctx, cmd, f.runFlags, root, p)
	}
	o.Build = func(ctx context.Context, list []scenario.CandidateFile) (failed map[string]error, err error) {
		p, err := e.plan(cmd, list)
		if err != nil {
			return nil, err
		}
		sink, done, err := f.sink(cmd.ErrOrStderr(), 1)
		if err != nil {
			return nil, err
		}
		defer done()
		made, err := artifacts.Open(
			artifacts.Options{Root: root, MaxDisk: f.disk.max, Events: event.NewStream(sink),
				Engine: docker.OnDemand{}},
		)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, made.Close()) }()
		return made.BuildCandidates(ctx, p)
	}
	return o
}

func printOracle(w io.Writer, s campaign.OracleSummary, output printing.Format) error {
	switch output {
	case printing.JSON:
		raw, err := s.JSON()
		if err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	case printing.Markdown:
		_, err := w.Write(s.Markdown())
		return err
	}
	fmt.Fprint(w, s.Table().Fit(width(w)))
	for _, u := range s.Unexplained() {
		fmt.Fprintf(w, "\n%s\n", printing.OneLine(u))
	}
	_, err := fmt.Fprintf(
		w,
		"\n%s, in %s on the provider %s\n",
		s.Sentence(),
		s.Took(),
		s.Settings.Provider,
	)
	return err
}

// completeOracle completes a scenario's name, and then the names of its candidates.
func completeOracle(
	cmd *cobra.Command,
	args []string,
	prefix string,
) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeScenarios(cmd, args, prefix)
	}
	s, err := loadScenario(cmd, args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := s.Candidates()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return namesOf(all), cobra.ShellCompDirectiveNoFileComp
}

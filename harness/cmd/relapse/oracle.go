package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/engine"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	reports "github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

type oracleFlags struct {
	runFlags
	full   bool
	beside int
	output string
}

func newOracleCmd() *cobra.Command {
	var f oracleFlags
	cmd := &cobra.Command{
		Use:   "oracle [NAME [CANDIDATE...]]",
		Short: "Test a scenario's checks with candidates whose right answer is known",
		Long: fmt.Sprintf(`Oracle runs the candidates that lie beside a scenario, in candidates/, or those that are named, and compares the answer that each was given with the
one that is right: a cure must be NotReproduced, a bug that moved Reproduced, another illness Broken. Without NAME it does so for every scenario.

Several candidates are in a trial beside each other, each with a node, a cluster or a workload of its own, and the scenario's two arms are the controls.
What the scenario says under oracle:, a pair and settings that make a trial short, is used unless --full asks for its default pair and true numbers;
--pair and --set change either. It ends with a table, which is also in runs/<id>-oracle-NAME/%[1]s and %[2]s, beside one run directory for each run.

A candidate that is Inconclusive, or whose controls were not as expected, gave no answer: that is never right unless Inconclusive is the right answer.

Exit codes: 0 all are right, 1 one is wrong, 3 one gave no answer or was not run, 4 one can't be built or its run failed; 1 outranks 4, then 3.`,
			campaign.OracleFile, campaign.OracleMarkdownFile),
		Example: `  relapse oracle pleg-deadlock
  relapse oracle pleg-deadlock unbounded-queue gives-up-after-10s
  relapse oracle pleg-deadlock --full --beside 1
  relapse oracle fleet-status-churn --repeat 3 -o markdown`,
		Args:              func(*cobra.Command, []string) error { return nil },
		ValidArgsFunction: completeOracle,
		RunE:              func(cmd *cobra.Command, args []string) error { return runOracle(cmd, f, args) },
	}
	fl := cmd.Flags()
	fl.IntVar(&f.beside, "beside", 0, "how many candidates are in one trial (default by this machine's cores and memory)")
	fl.BoolVar(&f.full, "full", false, "with the scenario's default pair and true numbers")
	fl.StringVar(&f.options.Pair, "pair", "", "the pair whose arms are the controls (default what the scenario says under oracle:)")
	fl.StringArrayVar(&f.set, "set", nil, "change a declared parameter, or any field by its path, over what the scenario says under oracle:")
	fl.IntVar(&f.options.Repeat, "repeat", 1, "trials of each candidate, all of which have to be right")
	registerSeed(cmd, &f.options.Seed)
	fl.StringVar(&f.options.NodeImage, "node-image", "auto", "auto, official, assembled or a reference")
	fl.StringVar(&f.out, "out", "runs", "the folder that run directories are made in")
	fl.StringVar(&f.progress, "progress", "auto", "auto, terminal or plain")
	fl.StringVarP(&f.output, "output", "o", "text", "text, json or markdown")
	return cmd
}

func runOracle(cmd *cobra.Command, f oracleFlags, args []string) error {
	if !slices.Contains([]string{"text", "json", "markdown"}, f.output) {
		return usage(fmt.Errorf("unknown output %q (want one of text, json, markdown)", f.output), "")
	}
	if f.beside < 0 {
		return usage(fmt.Errorf("--beside is %d (want at least 1)", f.beside), "")
	}
	root, err := moduleRoot(cmd)
	if err != nil {
		return err
	}
	exams, err := f.exams(cmd, args)
	if err != nil {
		return err
	}
	program, err := identity()
	if err != nil {
		return err
	}
	var exits []int
	grade := campaign.Right
	for _, e := range exams {
		e.options.Relapse = program
		s, err := campaign.Oracle(cmd.Context(), f.hooks(cmd, root, e))
		if len(s.Candidates) > 0 && !s.EndedAt.IsZero() {
			if err := printOracle(cmd.OutOrStdout(), s, f.output); err != nil {
				return err
			}
		}
		if err != nil {
			return hinted(err, "relapse doctor checks the host; relapse clean removes what a killed run left")
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "table:", filepath.Join(short(e.options.Dir), campaign.OracleMarkdownFile))
		if exits = append(exits, s.ExitCode); s.ExitCode == verdict.Combine(exits) {
			grade = s.Grade
		}
	}
	last := cmd.OutOrStdout()
	if f.output != "text" { // for programs
		last = cmd.ErrOrStderr()
	}
	fmt.Fprintln(last, reports.LastLine(verdict.Verdict(grade), verdict.Combine(exits)))
	return exitWith(verdict.Combine(exits))
}

// exam is one scenario with the candidates of it that are run.
type exam struct {
	scenario *scenario.Scenario
	flags    planFlags
	options  campaign.OracleOptions
}

// exams are one for each scenario that is to be run. What can't be planned is refused before anything is spent.
func (f *oracleFlags) exams(cmd *cobra.Command, args []string) ([]exam, error) {
	var files, candidates []string
	if len(args) > 0 {
		files, candidates = args[:1], args[1:]
	} else {
		var err error
		if files, err = scenarioFiles(cmd); err != nil {
			return nil, err
		}
	}
	var out []exam
	for _, name := range files {
		s, err := loadScenario(cmd, name)
		if err != nil {
			return nil, err
		}
		e, err := f.exam(cmd, s, candidates)
		if err != nil {
			return nil, err
		}
		if len(e.options.Candidates) > 0 {
			out = append(out, e)
		} else if len(args) > 0 {
			return nil, usage(fmt.Errorf("scenario %s has no candidates for pair %s", s.Metadata.Name, e.options.Settings.Pair), "relapse list candidates")
		}
	}
	if len(out) == 0 {
		return nil, usage(errors.New("no scenario has candidates for the pair"), "relapse list candidates")
	}
	return out, nil
}

func (f *oracleFlags) exam(cmd *cobra.Command, s *scenario.Scenario, wanted []string) (exam, error) {
	e := exam{scenario: s, flags: f.planFlags}
	set, err := e.settings(f.full)
	if err != nil {
		return e, err
	}
	all, err := s.Candidates()
	if err != nil {
		return e, asInput(err)
	}
	chosen, err := choose(all, wanted, s.Metadata.Name, set.Pair)
	if err != nil {
		return e, err
	}
	e.options = campaign.OracleOptions{
		Scenario: s.Metadata.Name, Settings: set, Candidates: chosen,
		Dir: filepath.Join(f.out, harness.NewID()+"-oracle-"+s.Metadata.Name),
	}
	if len(chosen) > 0 {
		p, err := e.plan(cmd, chosen[:1])
		if err != nil {
			return e, err
		}
		e.options.Beside = f.beside
		if f.beside == 0 {
			e.options.Beside = beside(p.Trials[0].Placement, runtime.NumCPU(), engine.FreeMemory())
		}
		_, err = e.plan(cmd, chosen)
		return e, err
	}
	return e, nil
}

// settings puts into the flags what the scenario says of its oracle and they leave open.
func (e *exam) settings(full bool) (campaign.Settings, error) {
	given, err := assignments("--set", e.flags.set)
	if err != nil {
		return campaign.Settings{}, err
	}
	set := map[string]string{}
	if o := e.scenario.Spec.Oracle; o != nil && !full {
		if e.flags.options.Pair == "" {
			e.flags.options.Pair = o.Pair
		}
		for name, v := range o.Set {
			set[name] = string(v)
		}
	}
	maps.Copy(set, given)
	for _, p := range e.scenario.Spec.Pairs {
		if e.flags.options.Pair == "" && (p.Default || len(e.scenario.Spec.Pairs) == 1) {
			e.flags.options.Pair = p.Name
		}
	}
	if e.flags.options.Pair == plan.AllPairs {
		return campaign.Settings{}, usage(errors.New("--pair all is more than one run (want the name of a pair)"), "")
	}
	e.flags.set = nil
	for _, name := range slices.Sorted(maps.Keys(set)) {
		e.flags.set = append(e.flags.set, name+"="+set[name])
	}
	return campaign.Settings{Pair: e.flags.options.Pair, Set: set, Full: full}, nil
}

// choose are the wanted candidates, or all that are made for the pair.
func choose(all []scenario.Known, wanted []string, name, pair string) ([]scenario.Known, error) {
	var known []string
	for _, k := range all {
		known = append(known, k.Metadata.Name)
	}
	for _, w := range wanted {
		i := slices.Index(known, w)
		if i < 0 {
			return nil, usage(fmt.Errorf("scenario %s has no candidate %q (want one of %s)", name, w, strings.Join(known, ", ")), "relapse list candidates")
		}
		if !all[i].For(pair) {
			return nil, usage(fmt.Errorf("the candidate %s is made for %s, and this is pair %s", w, strings.Join(all[i].Spec.Pairs, ", "), pair), "relapse oracle --pair")
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(k scenario.Known) bool {
		return !k.For(pair) || len(wanted) > 0 && !slices.Contains(wanted, k.Metadata.Name)
	}), nil
}

// beside is how many candidates a machine takes at once: a kubelet with its node, a cluster, or a workload each, beside two controls.
func beside(placement string, cores int, free int64) int {
	type needs struct {
		each, most int
		memory     int64
	}
	n := map[string]needs{
		plan.PlacementNode:     {2 * cores, 8, 1 << 30},
		plan.PlacementCluster:  {cores, 4, 2 << 30},
		plan.PlacementWorkload: {4 * cores, 16, 512 << 20},
	}[placement]
	out := min(n.each, n.most)
	if free > 0 && n.memory > 0 {
		out = min(out, int(free/n.memory)-2)
	}
	return max(out, 1)
}

// plan plans the trials of some candidates beside each other.
func (e *exam) plan(cmd *cobra.Command, list []scenario.Known) (*plan.Plan, error) {
	flags := e.flags
	flags.options.Candidates = nil
	for _, k := range list {
		flags.options.Candidates = append(flags.options.Candidates, plan.Candidate{Known: &k})
	}
	return flags.resolve(cmd, e.scenario.Origin.File)
}

// hooks are what the oracle does by the harness.
func (f *oracleFlags) hooks(cmd *cobra.Command, root string, e exam) campaign.OracleOptions {
	o := e.options
	o.Say = func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), "oracle:", oneLine(s)) }
	o.Plan = func(list []scenario.Known) (*plan.Plan, error) { return e.plan(cmd, list) }
	o.Run = func(ctx context.Context, p *plan.Plan) (string, reports.Verdict, error) {
		return f.perform(ctx, cmd, root, p)
	}
	o.Build = func(ctx context.Context, list []scenario.Known) (map[string]error, error) {
		p, err := e.plan(cmd, list)
		if err != nil {
			return nil, err
		}
		sink, done, err := progress(f.progress, cmd.ErrOrStderr())
		if err != nil {
			return nil, err
		}
		defer done()
		return harness.BuildCandidates(ctx, harness.Options{Plan: p, Root: root, Events: event.NewStream(sink)})
	}
	return o
}

func printOracle(w io.Writer, s campaign.OracleSummary, output string) error {
	switch output {
	case "json":
		raw, err := s.JSON()
		if err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	case "markdown":
		_, err := w.Write(s.Markdown())
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range s.Rows() {
		for i := range row {
			row[i] = dash(row[i])
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, u := range s.Unexplained() {
		fmt.Fprintf(w, "\n%s\n", oneLine(u))
	}
	fmt.Fprintf(w, "\n%s, in %s\n", s.Sentence(), s.Took())
	return nil
}

// completeOracle completes a scenario's name, and then those of its candidates.
func completeOracle(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
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
	var out []string
	for _, k := range all {
		out = append(out, k.Metadata.Name)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

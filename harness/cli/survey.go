package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/survey"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/internal/printing"
)

type surveyFlags struct {
	runFlags
	versions string
	packages []string
	drawn    int
	repeat   int
	beside   int
	dry      bool
	resume   bool
	known    bool
	write    bool
	since    string
	last     *scenario.Surveyed // what since names; nil without it
	until    bool
	target   string
	below    float64 // what target says with until, else 0
	on       kubeFlags
	output   printing.Format
}

func newSurveyCmd() *cobra.Command {
	var f surveyFlags
	cmd := &cobra.Command{
		Use:   "survey NAME",
		Short: "Find out which releases have a bug, by running them",
		Long: `Survey asks which releases of a scenario's subject have its bug: in which it came in, in which it is fixed, and
which branch was forgotten. It runs them beside the scenario's vulnerable and fixed arm. Several share a trial, as
--beside allows, and each is judged as if the others weren't there. A release counts as good only if a run proves that
it is well, and as bad if one run shows the bug.

It doesn't bisect: a bug may be in one release alone, with clean ones on both sides. Releases in a row in which the
packages of the scenario's section survey have the same syntax are one class. Without such a list they are those that
the scenario's mutations change, and those of the functions that its exposure and signature name.

Of each class, its first and its last release are run, each release at which changes what these packages import of the
subject's repository, and --draw more at random. A class with a good and a bad release is run as a whole. No class
stands for the first or the last release of a branch. What did not run has the answer of the releases of its class on
both sides, if these agree, and says so.

A release whose source can't be had or built is unavailable, and what lies beside it is given as an interval:
first fixed in (v1.33.5, v1.33.13]. Releases are those that this version of relapse knows, and newer ones, if the module
proxy has them.

With --until-confident as many are drawn as it takes to prove that less than --target-rate of the members of classes
differ from what their class says of them. It takes members without an answer for such that differ.

With --since FILE, which is the survey.json of an earlier survey, only the releases run that it doesn't list. One that
answers other than the one before it in its branch, or the first of a branch other than the newest of the branch before,
is told in a sentence, and the exit code is 1.

What is known is written to --runs after each run, as survey-NAME.json; --resume goes on from it, with its versions,
packages, seed, draws and repeats, and so does a survey after a new release. A run whose controls were not as expected
is made again, until there are three.

With --on kubernetes, each run is made by a Job in a cluster that is there, with the flags of relapse run. Releases are
built here. Once a run is judged, its Job, its image and its bundle there are removed.

Exit codes: 0 every release that was chosen and can be had and built has an answer, 1 with --since a release answers
other than the one before it, 3 some releases have no answer, or a rate is not proven, 4 something of relapse's own
failed, 64 wrong usage, 130 interrupted.`,
		Example: `  relapse survey policy-type-check-crash --dry-run
  relapse survey policy-type-check-crash --provider processes
  relapse survey no-node-for-affinity --versions '>=1.29 <1.30' --time-limit 4h
  relapse survey no-node-for-affinity --resume -o markdown
  relapse survey no-node-for-affinity --since scenarios/no-node-for-affinity/survey.json`,
		Args:              exactly(1, "scenario"),
		ValidArgsFunction: completeScenarios,
		RunE:              func(cmd *cobra.Command, args []string) error { return runSurvey(cmd, f, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.versions, "versions", "", "semver range of releases (default: the scenario's survey.versions)")
	fl.StringSliceVar(&f.packages, "packages", nil, "import paths of the packages that make the classes (default: the scenario's)")
	fl.IntVar(&f.drawn, "draw", 2, "how many members of classes to draw, to try the classes")
	fl.IntVar(&f.repeat, "repeat", 1, "in how many runs a release has to be good; one that shows the bug is enough for bad")
	registerBeside(fl, &f.beside, "releases")
	fl.BoolVar(&f.dry, "dry-run", false, "show the classes and the releases that would run, and run none")
	fl.BoolVar(&f.known, "known", false, "ask for no releases but those that this version of relapse knows")
	fl.BoolVar(&f.until, "until-confident", false, "draw more until it is proven that less than --target-rate of the "+
		"members of classes differ from their class, or all have run")
	fl.StringVar(&f.target, "target-rate", targetRate, "the rate to rule out, with --until-confident, from 1% to 50%, at "+
		"95 %; 20% takes 24 members if none of them differs")
	fl.StringVar(&f.since, "since", "", "run only the releases that this survey.json of an earlier survey doesn't list, and "+
		"compare each with the one before it")
	fl.BoolVar(&f.write, "write", false, "write the answers next to the scenario, as survey.json, from where relapse match "+
		"and relapse record take them")
	fl.BoolVar(&f.resume, "resume", false, "go on with the survey in --runs")
	fl.StringVar(&f.options.Pair, "pair", "", "the pair whose arms are the controls (default: the scenario's default pair)")
	fl.StringArrayVar(&f.set, "set", nil, "change a declared parameter, or any field by its path: NAME=VALUE")
	registerSeed(cmd, &f.options.Seed)
	f.registerProvider(cmd)
	runsVar(fl, &f.out)
	durationVar(fl, &f.timeLimit, "time-limit", 0, "end the survey after this time, such as 4h (default: no limit)")
	f.programs.register(fl)
	f.progressFlags.register(fl)
	f.disk.register(fl)
	f.on.register(cmd)
	registerOutput(cmd, &f.output, printing.Text, printing.JSON, printing.Markdown, printing.OSV)
	completeFlags(cmd)
	return concluding(cmd)
}

func runSurvey(cmd *cobra.Command, f surveyFlags, args []string) error {
	root, err := moduleRoot(cmd)
	if err != nil {
		return err
	}
	f.options.Repeat, f.options.NodeImage = 1, "auto"
	if err := f.fitsAll(cmd, &f.on, besideFits(f.beside)); err != nil {
		return err
	}
	s, err := loadScenario(cmd, args[0])
	if err != nil {
		return err
	}
	file := filepath.Join(f.out, survey.FileOf(s.Metadata.Name))
	was, err := f.earlier(cmd, file)
	if err != nil {
		return err
	}
	if err := errors.Join(f.writes(s), f.draws(cmd), f.reads(s)); err != nil {
		return err
	}
	r, controls, err := f.begin(cmd, s, args[0])
	if err != nil {
		return err
	}
	if f.last != nil && !r.Since(f.last) {
		fmt.Fprintf(cmd.ErrOrStderr(), "no release of %s came since the survey in %s\n", r.Versions, short(f.since))
		printLast(cmd, surveyAnswered, verdict.ExitOK)
		return nil
	}
	if was != nil {
		if err := f.goOn(r, was, file); err != nil {
			return err
		}
	}
	if err := f.classify(cmd, r, file); err != nil {
		return failed(err)
	}
	if err := hasPackages(cmd, r); err != nil {
		return err
	}
	r.Choose()
	if f.dry {
		return f.printChosen(cmd, r)
	}
	if err := f.controls(cmd, root, r, controls); err != nil {
		return failed(err)
	}
	err = r.Do(cmd.Context(), survey.Options{File: file, TimeLimit: f.timeLimit, Below: f.below, Now: time.Now,
		Say:    func(said string) { note(cmd, "survey: %s", said) },
		Beside: cmp.Or(f.beside, candidatesBeside(s, controls)),
		Run: func(ctx context.Context, versions []string) ([]survey.Run, error) {
			return f.releases(ctx, cmd, root, args[0], r, versions)
		}})
	if err != nil {
		return hinted(failed(err), "relapse survey "+args[0]+" --resume goes on with what was not done")
	}
	if err := f.print(cmd.OutOrStdout(), s, r); err != nil {
		return err
	}
	if f.write {
		if err := writeAnswers(cmd, s, r); err != nil {
			return failed(err)
		}
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "record:", short(file))
	fmt.Fprintf(cmd.ErrOrStderr(), "%d of the %d chosen releases have an answer\n", r.CountAnswered(), len(r.Chosen))
	said, exit := f.conclude(cmd, r)
	printLast(cmd, said, exit)
	return exitWith(exit)
}

// begin returns a record without runs, and the plan of a run with the controls alone. It refuses a scenario of whose subject
// no releases are known.
func (f *surveyFlags) begin(cmd *cobra.Command, s *scenario.Scenario, name string) (*survey.Record, *plan.Plan, error) {
	section := cmp.Or(s.Spec.Survey, &scenario.Survey{})
	versions := cmp.Or(f.versions, section.Versions)
	if versions == "" {
		return nil, nil, usage(fmt.Errorf("%s has no section survey, which says which releases to look at", name),
			"--versions '>=1.32'")
	}
	packages, from, err := f.packagesOf(cmd, s, section.Packages)
	if err != nil {
		return nil, nil, err
	}
	p, err := f.resolve(cmd, name)
	if err != nil {
		return nil, nil, err
	}
	fixed := slices.IndexFunc(p.Trials[0].Arms, func(a plan.Arm) bool { return a.Role == scenario.Fixed })
	if fixed < 0 || p.Trials[0].Arms[fixed].Source.Module == "" || p.Trials[0].Arms[fixed].Source.Fixture != "" {
		return nil, nil, usage(fmt.Errorf("the subject of %s is no program of a published module, so it has no releases to run", name),
			"relapse list shows what each scenario is about")
	}
	module := p.Trials[0].Arms[fixed].Source.Module
	releases, err := survey.Known(module)
	if err != nil {
		return nil, nil, usage(err, "")
	}
	if !f.known {
		releases = survey.Newer(cmd.Context(), releases, func(ctx context.Context, version string) bool {
			_, err := build.Resolve(ctx, module, version)
			return err == nil
		})
	}
	branches, err := survey.Branches(releases, versions)
	if err != nil {
		return nil, nil, usage(err, "--versions '>=1.30'")
	}
	program, err := identity()
	if err != nil {
		return nil, nil, err
	}
	return &survey.Record{Schema: survey.Schema, Scenario: p.Scenario, Digest: p.Digest, Pair: p.Trials[0].Pair,
		Provider: p.Provider, Settings: slices.Sorted(slices.Values(f.set)), Subject: s.Spec.Subject, Module: module,
		Versions: versions, Packages: packages, Found: from, Seed: p.Seed, Drawn: f.drawn, Repeat: f.repeat,
		Relapse: program, Updated: time.Now().UTC(), Branches: branches, Runs: map[string][]survey.Run{}}, p, nil
}

// earlier reads the record that a survey left, nil if there is none. With --resume, what was asked for then is asked for
// again where no flag says otherwise.
func (f *surveyFlags) earlier(cmd *cobra.Command, file string) (*survey.Record, error) {
	was, err := survey.Read(file)
	switch {
	case !f.resume && errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, usage(err, "leave out --resume, or say with --runs where the survey was")
	case !f.resume:
		return was, nil
	}
	given := cmd.Flags().Changed
	if !given("versions") {
		f.versions = was.Versions
	}
	if !given("packages") {
		f.packages = was.Packages
	}
	if !given("draw") {
		f.drawn = was.Drawn
	}
	if !given("repeat") {
		f.repeat = max(was.Repeat, 1)
	}
	if !given("seed") {
		f.options.Seed, f.seeded = was.Seed, true
	}
	return was, nil
}

// goOn takes over what an earlier survey read and, with --resume, what it ran. Without it, a survey whose runs would be lost
// is refused.
func (f *surveyFlags) goOn(r, was *survey.Record, file string) error {
	r.KeepPrints(was)
	switch {
	case !f.resume && (f.dry || len(was.Runs) == 0):
		return nil
	case !f.resume:
		return usage(fmt.Errorf("%s has the runs of a survey of %s already", short(file), r.Scenario),
			"--resume goes on with it; another --runs begins anew")
	}
	if why := r.Fits(was); why != "" {
		return usage(fmt.Errorf("the survey in %s is another one: %s", short(file), why), "choose another --runs to begin anew")
	}
	r.Keep(was, func(dir string) bool {
		_, err := os.Stat(filepath.Join(f.out, dir, judge.VerdictFile))
		return err == nil
	})
	return nil
}

// printChosen prints the classes and what would run.
func (f *surveyFlags) printChosen(cmd *cobra.Command, r *survey.Record) error {
	if f.output == printing.JSON {
		return printing.WriteJSON(cmd.OutOrStdout(), r)
	}
	why := map[string]string{}
	for _, c := range r.Chosen {
		why[c.Version] = c.Why
	}
	t := printing.Table{Empty: "-", Header: []string{"branch", "release", "class", "runs, because it is"}}
	for _, b := range r.Branches {
		for _, one := range b.Releases {
			class := ""
			if one.Class > 0 {
				class = fmt.Sprint(one.Class)
			}
			t.Add(b.Name, one.Version, class, cmp.Or(why[one.Version], one.Why))
		}
	}
	out := cmd.OutOrStdout()
	_, err := fmt.Fprintf(out, "%s\n%d of them would run. They are of %d classes, and of %d with what their packages import. Seed %d.\n",
		t.Fit(width(out)), len(r.Chosen), r.Classes, r.Near, r.Seed)
	return err
}

// print prints the answers.
func (f *surveyFlags) print(w io.Writer, s *scenario.Scenario, r *survey.Record) error {
	switch f.output {
	case printing.JSON:
		return printing.WriteJSON(w, struct {
			*survey.Record
			Rows      []survey.Row `json:"rows"`
			Sentences []string     `json:"sentences"`
			Tried     survey.Tried `json:"tried"`
		}{r, r.Rows(), survey.Sentences(r.Rows()), r.Tried()})
	case printing.Markdown:
		return r.WriteMarkdown(w)
	case printing.OSV:
		return printing.WriteJSON(w, r.OSV(s.Spec.Title, s.Spec.References))
	}
	return r.WriteText(w, width(w))
}

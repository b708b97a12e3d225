package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/survey"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// packagesOf returns the packages that make the classes: those of --packages, else those of the scenario's section survey,
// else those that its mutations, exposure and signature name, with where each of these was found.
func (f *surveyFlags) packagesOf(
	cmd *cobra.Command,
	s *scenario.Scenario,
	section []string,
) ([]string, map[string]string, error) {
	if len(f.packages) > 0 {
		section = f.packages
	}
	if len(section) > 0 {
		return section, nil, nil
	}
	derived := survey.PackagesOf(s)
	if len(derived.Paths) == 0 {
		return nil, nil, usage(
			fmt.Errorf(
				"%s names no packages that have its bug, and no function in full by which they "+
					"would be known%s",
				s.Metadata.Name,
				derived.Describe(),
			),
			"--packages k8s.io/kubernetes/pkg/scheduler, or survey: {packages: [...]} in the scenario",
		)
	}
	note(cmd, "survey: packages, from the scenario: %s", derived.Describe())
	return derived.Paths, derived.From, nil
}

// classify reads the source of each release that wasn't read before. Unless it is a dry run, what was read is kept in the
// record, as it takes some time.
func (f *surveyFlags) classify(cmd *cobra.Command, r *survey.Record, file string) error {
	return withBuilder(func(builder *build.Builder) error {
		sources := func(ctx context.Context, version, pkg string) (string, bool, error) {
			return builder.PackageDir(ctx, r.Module, version, pkg)
		}
		for _, b := range r.Branches {
			for k := range b.Releases {
				one := &b.Releases[k]
				if one.Print != "" {
					continue
				}
				note(cmd, "survey: reading the source of %s", one.Version)
				if err := survey.Fingerprint(cmd.Context(), sources, one, r.Packages); err != nil {
					return err
				}
			}
			if f.dry {
				continue
			}
			if err := r.Write(file); err != nil {
				return err
			}
		}
		r.Classes, r.Near = survey.Classify(r.Branches)
		return nil
	})
}

// hasPackages refuses packages that no release has: all releases would be alike. One that is absent among others may have
// moved, and is told.
func hasPackages(cmd *cobra.Command, r *survey.Record) error {
	absent := r.Absent()
	if len(absent) > 0 && len(absent) == len(r.Packages) {
		return usage(fmt.Errorf("no release whose source can be had has %s, so there is nothing to tell classes by",
			strings.Join(absent, ", ")), "--packages k8s.io/kubernetes/pkg/scheduler: want import paths of the subject's repository")
	}
	for _, pkg := range absent {
		note(cmd, "survey: no release whose source can be had has %s", pkg)
	}
	if without := r.Without(); len(without) > 0 {
		note(
			cmd,
			"survey: %s have none of the packages, and each of them is a class of its own; --packages takes older paths, too",
			strings.Join(without, ", "),
		)
	}
	return nil
}

// controls builds the arms that every release runs beside, unless none has to run. If that failed later on, it would count
// as the release's own fault.
func (f *surveyFlags) controls(
	cmd *cobra.Command,
	root string,
	r *survey.Record,
	p *plan.Plan,
) error {
	if !r.Pending() && r.Confident(f.below) {
		return nil
	}
	if err := f.programs.apply(p); err != nil {
		return err
	}
	if err := f.prepare(cmd.Context(), cmd, root, p); err != nil {
		return fmt.Errorf("building the arms of pair %s, which are the controls: %w", r.Pair, err)
	}
	return nil
}

// releases runs releases beside the controls, in one trial. Those that can't be built don't take part. An error ends the
// survey: every further release would meet it, too.
func (f *surveyFlags) releases(
	ctx context.Context,
	cmd *cobra.Command,
	root, name string,
	r *survey.Record,
	versions []string,
) ([]survey.Run, error) {
	runs := make([]survey.Run, len(versions))
	var built []int // of versions
	var candidates []plan.Candidate
	for i, version := range versions {
		given, err := f.buildRelease(ctx, cmd, root, name, version, nil)
		if err != nil && !full(err) && ctx.Err() == nil {
			given, err = f.buildWithStandIns(ctx, cmd, root, name, r, version, err)
		}
		switch {
		case full(err):
			return nil, err
		case err != nil:
			runs[i] = survey.Run{Result: survey.Unbuildable, Why: lastLines(err.Error(), 3)}
		default:
			built, candidates = append(built, i), append(candidates, given)
		}
	}
	if len(built) == 0 {
		return runs, nil
	}
	with := *f
	with.options.Candidates = candidates
	dir, v, err := with.trial(ctx, cmd, root, name)
	if full(err) {
		return nil, err
	}
	for n, i := range built {
		runs[i] = survey.Run{Result: survey.Inconclusive}
		if err != nil {
			runs[i].Why = err.Error()
		} else {
			runs[i] = survey.Judged(filepath.Base(dir), plan.ArmOf(candidates[n].Of), v)
		}
		runs[i].StandIns = survey.StandIns(candidates[n].Source.Replace)
	}
	return runs, nil
}

// buildWithStandIns builds a release that could not be built because modules of its repository can't be had, with those
// of its neighbours. No class depends on them: a release of which its packages can't be read is not run. Where nothing
// lacks, or nothing stands in, the error is why it could not be built at first.
func (f *surveyFlags) buildWithStandIns(
	ctx context.Context,
	cmd *cobra.Command,
	root, name string,
	r *survey.Record,
	version string,
	why error,
) (plan.Candidate, error) {
	var with map[string]string
	err := withBuilder(func(b *build.Builder) (err error) {
		with, err = b.FromNeighbours(ctx, r.Module, version, r.Neighbours(version))
		return err
	})
	if err != nil {
		return plan.Candidate{}, errors.Join(why, err)
	}
	if len(with) == 0 {
		return plan.Candidate{}, why
	}
	note(cmd, "survey: %s can't be had whole, and is built with stand-ins: %s", version, survey.StandIns(with))
	return f.buildRelease(ctx, cmd, root, name, version, with)
}

// withBuilder calls do with a builder upon the cache.
func withBuilder(do func(b *build.Builder) error) (err error) {
	dir, err := cache.DefaultDir()
	if err != nil {
		return err
	}
	store, err := cache.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return do(&build.Builder{Cache: store})
}

// buildRelease builds a release and returns it as a candidate. replace maps modules to the versions that stand in for
// those of the release.
func (f *surveyFlags) buildRelease(
	ctx context.Context,
	cmd *cobra.Command,
	root, name, version string,
	replace map[string]string,
) (plan.Candidate, error) {
	with := *f
	with.candidate = version
	src, err := with.source(cmd, name)
	if err != nil {
		return plan.Candidate{}, err
	}
	if len(replace) > 0 {
		src.Replace = replace
	}
	given := plan.Candidate{Source: src, Of: version}
	with.options.Candidates = []plan.Candidate{given}
	p, err := with.planned(cmd, name)
	if err != nil {
		return given, err
	}
	return given, with.prepare(ctx, cmd, root, p)
}

// trial runs the options' candidates beside the controls.
func (f *surveyFlags) trial(
	ctx context.Context,
	cmd *cobra.Command,
	root, name string,
) (string, judge.Verdict, error) {
	p, err := f.planned(cmd, name)
	if err != nil {
		return "", judge.Verdict{}, err
	}
	return f.on.carryOut(ctx, cmd, f.runFlags, root, p)
}

// full reports whether the disk is to blame for an error, or that it would not be enough.
func full(err error) bool {
	return errors.As(err, new(*cache.FullError)) || errors.As(err, new(*build.RoomError)) ||
		errors.Is(err, syscall.ENOSPC)
}

// lastLines returns the end of what a compiler or the go command said.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}

// prepare builds what a plan needs.
func (f *surveyFlags) prepare(
	ctx context.Context,
	cmd *cobra.Command,
	root string,
	p *plan.Plan,
) error {
	sink, done, err := f.sink(cmd.ErrOrStderr(), 1)
	if err != nil {
		return err
	}
	defer done()
	_, err = f.built(ctx, cmd, root, p, sink)
	return err
}

// writes refuses --write where the answers would not be the scenario's own, or could not be kept.
func (f *surveyFlags) writes(s *scenario.Scenario) error {
	switch {
	case !f.write:
		return nil
	case f.dry:
		return usage(errors.New("--dry-run has no answers to write"), "leave out --write")
	case len(f.set) > 0:
		return usage(
			errors.New("--set changes the scenario, so the answers are not its own"),
			"leave out --write or --set",
		)
	case isCarried(s.Origin.File):
		return usage(
			fmt.Errorf(
				"%s is part of this program, and nothing can be written next to it",
				s.Metadata.Name,
			),
			"work in a checkout of relapse, or name a copy of the scenario by its path",
		)
	}
	return nil
}

// writeAnswers writes what is known next to the scenario.
func writeAnswers(cmd *cobra.Command, s *scenario.Scenario, r *survey.Record) error {
	file, err := r.Publish(s)
	if errors.Is(err, survey.ErrNoAnswer) {
		fmt.Fprintln(cmd.ErrOrStderr(), "not written:", err)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(
		cmd.ErrOrStderr(),
		"written: %s; relapse record shows it in the scenario's README, and relapse validate "+
			"compares it with match.affected\n",
		short(file),
	)
	return nil
}

// draws reads how certain the answers and the classes have to be.
func (f *surveyFlags) draws(cmd *cobra.Command) error {
	if f.repeat < 1 || f.drawn < 0 {
		return usage(
			fmt.Errorf("--repeat is %d and --draw %d (want at least 1 and 0)", f.repeat, f.drawn),
			"leave out both",
		)
	}
	if !f.until {
		if cmd.Flags().Changed("target-rate") {
			return usage(errors.New("--target-rate is for --until-confident"),
				"add --until-confident, or say with --draw how many to draw")
		}
		return nil
	}
	below, err := share(f.target)
	if err == nil && (below < 0.01 || below > 0.5) {
		err = fmt.Errorf("is %s (want one from 1%% to 50%%)", f.target)
	}
	f.below = below
	return usage(
		inFlag("target-rate", err),
		"leave out --target-rate, which is "+targetRate+" then",
	)
}

// inFlag says which flag an error is about.
func inFlag(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("--%s %w", name, err)
}

// reads reads the survey of --since.
func (f *surveyFlags) reads(s *scenario.Scenario) (err error) {
	if f.since == "" {
		return nil
	}
	if f.write {
		return usage(
			errors.New("--since runs new releases alone, and --write keeps a whole survey"),
			"relapse survey NAME --resume --write",
		)
	}
	f.last, err = scenario.ReadSurveyed(f.since, s.Metadata.Name)
	return usage(err, "--since scenarios/NAME/survey.json, which relapse survey --write writes")
}

// The verdicts of a survey, beside Inconclusive.
const (
	surveyAnswered verdict.Verdict = "Answered"
	surveyTurned   verdict.Verdict = "Turned"
)

// conclude returns how a survey ended. It tells which new releases answer other than those before them.
func (f *surveyFlags) conclude(cmd *cobra.Command, r *survey.Record) (verdict.Verdict, int) {
	if f.last != nil {
		if turned := r.Turned(f.last); len(turned) > 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), strings.Join(turned, "\n"))
			return surveyTurned, verdict.ExitFailed
		}
	}
	if !r.Answered() || !r.Confident(f.below) {
		return verdict.VerdictInconclusive, verdict.ExitInconclusive
	}
	return surveyAnswered, verdict.ExitOK
}

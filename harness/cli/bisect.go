package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan/candidate"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// Exit codes for git bisect run. To git, 1 to 127 mean that a commit is bad, but for 125; from 128 on git ends the
// bisection. The codes of relapse run would mislead it: a mistyped flag would make a commit bad.
const (
	bisectGood = 0
	bisectBad  = 1
	bisectSkip = 125
	bisectStop = 128
)

func newBisectStepCmd() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "bisect-step NAME|FILE",
		Short: "Tell git bisect run whether the commit that is checked out has a scenario's incident",
		Long: `Bisect-step runs a scenario with the source tree in the working directory as its candidate, as relapse run
--candidate src:. does, and ends with an exit code for git bisect run:

    0  Validated: the commit is good
    1  StillVulnerable in at least one trial: the commit is bad
  125  git skips the commit: it can't be built, or the run is Broken, Inconclusive or an Error
  128  git stops: wrong usage, a version that the scenario can't run, a network without the modules, a full disk, or a host
       that can't make the clusters
  130  interrupted, so that git stops, too

A commit that is Broken failed in another way, and doesn't say whether it has the incident. Git skips it, because
either answer might lead to the wrong commit. To find the commit that broke it, look for that failure with a script of
your own.

Git takes the verdict of one run for the truth. If a scenario doesn't reproduce every time, use --repeat or
--until-confident. Without --seed each step draws its own seed.`,
		Example: `  git bisect start v1.36.3 v1.36.0
  git bisect run relapse bisect-step pleg-deadlock --root ~/relapse --runs ~/bisect-runs
  git bisect run relapse bisect-step pleg-deadlock --repeat 3 --runs ../bisect-runs`,
		Args: func(cmd *cobra.Command, args []string) error {
			return forBisect(f.bisectArgs(cmd, args))
		},
		ValidArgsFunction: completeScenarios,
		RunE:              func(cmd *cobra.Command, args []string) error { return runBisectStep(cmd, f, args) },
	}
	f.register(cmd)
	cmd.Flag("candidate").DefValue = "src:."
	for _, name := range bisectRefuses {
		cmd.Flag(name).Hidden = true
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return forBisect(wrongFlag(cmd, err))
	})
	return concluding(cmd)
}

// bisectRefuses are the flags of run that make no sense in a step: a plan from a file has no candidate of the commit, each
// step would leave a cluster, another arm's build would be judged in place of the commit's, and without faults nothing is.
var bisectRefuses = []string{"file", "retain", "swap", "no-faults"}

func (f *runFlags) bisectArgs(cmd *cobra.Command, args []string) error {
	for _, name := range bisectRefuses {
		if cmd.Flags().Changed(name) {
			return usage(
				fmt.Errorf("%s takes no --%s", cmd.CommandPath(), name),
				"relapse run takes it",
			)
		}
	}
	return exactly(1, "scenario")(cmd, args)
}

func runBisectStep(cmd *cobra.Command, f runFlags, args []string) error {
	// A crash must not make a commit bad: with this, it ends by a signal (134 to git) and not with 2.
	debug.SetTraceback("crash")
	f.candidate = cmp.Or(f.candidate, "src:.")
	if filepath.IsLocal(short(f.out)) {
		return forBisect(usage(fmt.Errorf("--runs %s lies in the tree that is judged, where each step would make the next commit a "+
			"changed one", f.out), "--runs ../bisect-runs"))
	}
	var v judge.Verdict
	root, p, err := f.ready(cmd, args)
	if err == nil {
		v, err = f.judged(cmd, args, root, p)
	}
	if err != nil {
		return forBisect(err)
	}
	code := bisectCode(v)
	printLast(cmd, v.Verdict, code)
	return exitWith(code)
}

// bisectCode returns what a verdict means to git bisect run.
func bisectCode(v judge.Verdict) int {
	shown := func(t judge.Trial) bool { return t.Verdict == verdict.StillVulnerable }
	switch {
	case v.Verdict == verdict.StillVulnerable, slices.ContainsFunc(v.Trials, shown):
		return bisectBad
	case v.Verdict == verdict.Validated:
		return bisectGood
	}
	return bisectSkip
}

// forBisect gives an error without a verdict its exit code for git bisect run. What only the commit may be to blame for
// is skipped.
func forBisect(err error) error {
	if err == nil {
		return nil
	}
	var said *exitError
	var unfit *cluster.HostError
	var commit *candidate.Error
	var fetch *build.FetchError
	out := &exitError{code: bisectSkip, err: err}
	if errors.As(err, &said) {
		out.hint = said.hint
	}
	noRoom := errors.As(err, new(*cache.FullError)) || errors.As(err, new(*build.RoomError))
	if noRoom && said == nil {
		out.hint = failureHint(err)
	}
	mistake := said != nil && said.code == exitUsage || errors.As(err, &unfit) ||
		errors.As(err, &fetch) ||
		noRoom
	if mistake && !errors.As(err, &commit) {
		out.code = bisectStop
	}
	return out
}

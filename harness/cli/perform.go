package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/judge/history"
	"github.com/kube-relapse/relapse/harness/plan"
	reports "github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/internal/docker"
)

// execute runs a plan, from the checks of the host to the verdict. It prints the verdict without its last line, and
// adds the verdict to the history.
func (f *runFlags) execute(
	ctx context.Context,
	cmd *cobra.Command,
	root string,
	p *plan.Plan,
) (dir string,
	v judge.Verdict, err error) {
	if dir, v, err = f.perform(ctx, cmd, root, p); err != nil {
		return dir, v, err
	}
	return dir, v, f.tell(cmd, dir, v)
}

// tell prints the verdict of a run without its last line, and adds the verdict to the history.
func (f *runFlags) tell(cmd *cobra.Command, dir string, v judge.Verdict) error {
	if err := printVerdict(cmd.OutOrStdout(), v, false); err != nil {
		return err
	}
	printPlaces(cmd.OutOrStdout(), dir)
	if err := history.Append(filepath.Join(f.out, history.File), judge.Entries(v, dir)); err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: the verdict stands, and the history lacks it:", err)
	}
	return nil
}

// perform runs a plan, from the checks of the host to the verdict. It shows the progress on stderr.
func (f *runFlags) perform(
	ctx context.Context,
	cmd *cobra.Command,
	root string,
	p *plan.Plan,
) (dir string,
	v judge.Verdict, err error) {
	sink, done, err := f.sink(cmd.ErrOrStderr(), f.parallel)
	if err != nil {
		return "", v, err
	}
	defer done()
	return f.performShown(ctx, cmd, root, p, sink)
}

// performShown does what perform does, and shows the progress in a sink.
func (f *runFlags) performShown(
	ctx context.Context,
	cmd *cobra.Command,
	root string,
	p *plan.Plan,
	sink event.Sink,
) (dir string,
	v judge.Verdict, err error) {
	events := event.NewStream(sink)
	announce(p, f.out, events)
	provider, err := newProvider(p.Provider, events, f.retain)
	if err != nil {
		return "", v, err
	}
	made, err := artifacts.Open(f.artifactsOf(root, events))
	if err != nil {
		return "", v, err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	dir, v, err = harness.Run(ctx, harness.Options{
		Plan:      p,
		Provider:  provider,
		Artifacts: made,
		Out:       f.out,
		Retain:    f.retain,
		Parallel:  f.parallel,
		Events:    events,
		Report:    reports.Write,
	})
	return dir, v, hostHint(cmd, p.Provider, err)
}

// built builds what a plan needs and nothing else, and shows the progress in a sink.
func (f *runFlags) built(
	ctx context.Context,
	cmd *cobra.Command,
	root string,
	p *plan.Plan,
	sink event.Sink,
) (all []harness.Built, err error) {
	events := event.NewStream(sink)
	provider, err := newProvider(p.Provider, events, false)
	if err != nil {
		return nil, err
	}
	made, err := artifacts.Open(f.artifactsOf(root, events))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	all, err = harness.Build(ctx, harness.Options{Plan: p, Provider: provider, Artifacts: made})
	return all, hostHint(cmd, p.Provider, err)
}

// artifactsOf says where and from what the artifacts of a run are made. root is the module's.
func (f *runFlags) artifactsOf(root string, events *event.Stream) artifacts.Options {
	return artifacts.Options{
		Root:      root,
		MaxDisk:   f.disk.max,
		Events:    events,
		Engine:    docker.OnDemand{},
		Publisher: f.programs.publisher,
	}
}

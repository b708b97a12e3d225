package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/internal/printing"
)

func newBuildCmd() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "build NAME|FILE",
		Short: "Build what a run needs, and nothing else",
		Long: `Build builds the arms of the pairs, the candidate and the fixtures that relapse run with the same flags would
build, and gets what the clusters are made of: node images, or the programs of control planes. It creates no cluster. A
run with the same flags then builds nothing. Build takes all flags of run, and refuses what run would refuse.

It prints the path and SHA-256 of each arm's program, which lies in the cache: relapse cache prune removes it.`,
		Example: `  relapse build pleg-deadlock
  relapse build pleg-deadlock --pair all
  relapse build pleg-deadlock --candidate src:../kubernetes`,
		Args:              f.args,
		ValidArgsFunction: completeScenarios,
		RunE:              func(cmd *cobra.Command, args []string) error { return runBuild(cmd, f, args) },
	}
	f.register(cmd)
	return cmd
}

func runBuild(cmd *cobra.Command, f runFlags, args []string) error {
	root, err := moduleRoot(cmd)
	if err != nil {
		return err
	}
	p, err := f.plan(cmd, args)
	if err != nil {
		return err
	}
	if err := f.fits(p); err != nil {
		return err
	}
	sink, done, err := f.sink(cmd.ErrOrStderr(), 1)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := f.limited(cmd.Context())
	defer cancel()
	var all []harness.Built
	err = f.onProviders(cmd, args, p, func(p *plan.Plan) error {
		all, err = f.built(ctx, cmd, root, p, sink)
		return err
	})
	if err != nil {
		return failed(asRefusal(err))
	}
	return printBuilt(cmd.OutOrStdout(), all)
}

func printBuilt(w io.Writer, built []harness.Built) error {
	t := printing.Table{Header: []string{"pair", "arm", "sha256", "program"}}
	for _, b := range built {
		t.Add(b.Pair, b.Arm, fmt.Sprintf("%.12s", b.Digest), b.Path)
	}
	_, err := io.WriteString(w, t.Fit(width(w)))
	return err
}

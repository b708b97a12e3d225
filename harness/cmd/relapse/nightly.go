package main

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/verdict"
)

func newNightlyCmd() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "nightly",
		Short: "Run every scenario with every pair, repeated",
		Long: `Nightly runs every scenario below scenarios/ with every pair of arms and lists all verdicts. It goes on after a run that was
not as expected. Its exit code is the worst of all: 1 outranks 4, then 3, then 0.`,
		Args: exactly(0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			files, err := scenarioFiles(cmd)
			if err != nil {
				return err
			}
			f.options.Pair = plan.AllPairs
			var exits []int
			t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, file := range files {
				code := exitOK
				if err := runRun(cmd, f, []string{file}); err != nil {
					if cmd.Context().Err() != nil {
						return err
					}
					var e *exitError
					if code = exitOwnFailure; errors.As(err, &e) {
						code = e.code
					}
					if e == nil || e.err != nil {
						fmt.Fprintln(cmd.ErrOrStderr(), "error:", err)
					}
				}
				exits = append(exits, code)
				fmt.Fprintf(t, "%s\texit %d\n", file, code)
			}
			if err := t.Flush(); err != nil {
				return err
			}
			return exitWith(verdict.Combine(exits))
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&f.options.Repeat, "repeat", 3, "trials of each pair")
	fl.Int64Var(&f.options.Seed, "seed", 1, "seed of whatever draws lots; recorded")
	fl.StringVar(&f.options.NodeImage, "node-image", "auto", "auto, official, assembled or a reference")
	fl.StringVar(&f.out, "out", "runs", "the folder that run directories are made in")
	fl.StringVar(&f.progress, "progress", "auto", "auto, terminal or plain")
	fl.DurationVar(&f.timeout, "timeout", 0, "end each run, cleaning up, after this time (default: no limit)")
	return cmd
}

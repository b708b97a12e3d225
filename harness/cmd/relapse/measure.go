package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/match/measure"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/internal/printing"
)

// measureMatch runs `relapse match --measure`. It returns exit code 1 if a rule is met where it must not be.
func measureMatch(cmd *cobra.Command, all []*scenario.Scenario, paths []string, o matchFlags) error {
	tables, problems, err := measure.Run(cmd.Context(), all, paths)
	if err != nil {
		return unread(err)
	}
	for _, p := range problems {
		fmt.Fprintf(cmd.ErrOrStderr(), "problem: %s: %s\n", p.Path, p.Message)
	}
	if o.output == printing.JSON {
		if err := printing.WriteJSON(cmd.OutOrStdout(), tables); err != nil {
			return err
		}
	}
	defect := false
	for i, t := range tables {
		for _, r := range t.Rows {
			if r.Defect() {
				defect = true
				fmt.Fprintf(cmd.ErrOrStderr(), "defect: %s, %s by %s is met in %s of what %s\n", t.Scenario, r.Rule, r.Evidence,
					r.Count(), r.Label)
			}
		}
		if err := printTable(cmd.OutOrStdout(), t, o.output); err != nil {
			return err
		}
		if o.write && len(t.Bundles) > 0 {
			if err := t.Write(all[i].Origin.File); err != nil {
				return err
			}
		}
	}
	if defect {
		return exitWith(verdict.ExitFailed)
	}
	return nil
}

func printTable(w io.Writer, t measure.Table, output printing.Format) (err error) {
	switch output {
	case printing.Markdown:
		_, err = fmt.Fprintln(w, t.Markdown())
	case printing.Text:
		_, err = fmt.Fprintln(w, t.Text())
	}
	return err
}

package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/report/measure"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
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
	if o.output == "json" {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		if err := enc.Encode(tables); err != nil {
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
		if err := showTable(cmd, t, o.output); err != nil {
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

func showTable(cmd *cobra.Command, t measure.Table, output string) error {
	text, err := "", error(nil)
	switch output {
	case "markdown":
		text = t.Markdown()
	case "text":
		text, err = t.Text()
	}
	if err == nil && text != "" {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
	}
	return err
}

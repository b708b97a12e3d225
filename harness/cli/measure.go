package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/match/measure"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/internal/printing"
)

// measureMatch runs `relapse match --measure`. It returns exit code 1 if a rule is met where it must not be.
func measureMatch(
	cmd *cobra.Command,
	all []*scenario.Scenario,
	paths []string,
	o matchFlags,
) error {
	if o.write && o.explain == "" { // the runs of one scenario would replace the tables of others
		return usage(
			errors.New("--measure --write replaces a scenario's table, and no scenario is named"),
			"add --explain NAME, and name all runs that the table is to rest on",
		)
	}
	if slices.ContainsFunc(paths, measure.IsCases) {
		return measureCases(cmd, paths, o)
	}
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
				fmt.Fprintf(
					cmd.ErrOrStderr(),
					"defect: %s, %s by %s is met in %s of what %s\n",
					t.Scenario,
					r.Rule,
					r.Evidence,
					r.Count(),
					r.Label,
				)
			}
		}
		printTable(cmd.OutOrStdout(), t, o.output)
		if o.write {
			if err := writeTable(cmd, t, all[i].Origin.File); err != nil {
				return err
			}
		}
	}
	if defect {
		return exitWith(verdict.ExitFailed)
	}
	return nil
}

// writeTable writes a table next to its scenario's file, and names the bundles that the table before rested on and this
// one doesn't.
func writeTable(cmd *cobra.Command, t measure.Table, file string) error {
	if isCarried(file) {
		return usage(
			fmt.Errorf(
				"the table of %s is part of this program and can't be written",
				t.Scenario,
			),
			"work in a checkout of relapse, or name a copy of the scenario by its path",
		)
	}
	if len(t.Bundles) == 0 {
		return usage(
			fmt.Errorf(
				"nothing is written: the paths have no bundle of %s's component",
				t.Scenario,
			),
			"name runs of scenarios with the same subject",
		)
	}
	before, _, err := measure.Load(file)
	if err != nil {
		return err
	}
	if err := t.Write(file); err != nil {
		return err
	}
	fmt.Fprintf(
		cmd.ErrOrStderr(),
		"written: %s, from %d bundles\n",
		filepath.Join(filepath.Dir(file), measure.File),
		len(t.Bundles),
	)
	for _, b := range before.Bundles {
		if !slices.ContainsFunc(t.Bundles, func(n measure.Bundle) bool { return n.Run == b.Run && n.Trial == b.Trial }) {
			fmt.Fprintf(cmd.ErrOrStderr(), "no longer counted: %s, trial %s, which the paths don't have\n", b.Run, b.Trial)
		}
	}
	return nil
}

// measureCases runs `relapse match --measure` on labelled cases. It returns exit code 1 if an answer is wrong.
func measureCases(cmd *cobra.Command, paths []string, o matchFlags) error {
	if i := slices.IndexFunc(paths, func(p string) bool { return !measure.IsCases(p) }); i >= 0 {
		return usage(
			fmt.Errorf("%s has no %s", paths[i], measure.CaseFile),
			"name folders of cases or runs of relapse, not both",
		)
	}
	if o.write {
		return usage(
			errors.New("--write takes runs of relapse, not cases"),
			"without --write the table is printed",
		)
	}
	all, err := matchable(cmd, "", false)
	if err != nil {
		return err
	}
	cases, err := measure.Cases(all, paths)
	if err != nil {
		return usage(
			fmt.Errorf("a case is not valid\n%w", err),
			"each case is a folder with a "+measure.CaseFile,
		)
	}
	well, err := loadBaselines(cmd, o.healthy)
	if err != nil {
		return err
	}
	tables, err := measure.RunCases(cmd.Context(), all, well, cases)
	if err != nil {
		return unread(err)
	}
	if o.explain != "" {
		tables = slices.DeleteFunc(
			tables,
			func(t measure.CaseTable) bool { return t.Scenario != o.explain },
		)
	}
	if o.output == printing.JSON {
		if err := printing.WriteJSON(cmd.OutOrStdout(), tables); err != nil {
			return err
		}
	}
	wrong := 0
	for _, t := range tables {
		printTable(cmd.OutOrStdout(), t, o.output)
		for _, m := range t.Open {
			fmt.Fprintf(cmd.ErrOrStderr(), "open: %s: %s\n", m.Case, m.Message)
		}
		for _, m := range t.Wrong {
			wrong++
			fmt.Fprintf(cmd.ErrOrStderr(), "wrong: %s: %s\n", m.Case, m.Message)
		}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%d cases, %d wrong answers\n", len(cases), wrong)
	if wrong > 0 {
		return exitWith(verdict.ExitFailed)
	}
	return nil
}

func printTable(w io.Writer, t interface {
	Text() string
	Markdown() string
}, output printing.Format) {
	switch output {
	case printing.Markdown:
		fmt.Fprintln(w, t.Markdown())
	case printing.Text:
		fmt.Fprintln(w, t.Text())
	}
}

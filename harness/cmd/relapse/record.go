package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/campaign/track"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func newRecordCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "record [DIR...]",
		Short: "Add the results of runs to the scenarios' track records, and write the pages that show them",
		Long: fmt.Sprintf(`Record adds the results in directories of runs and of oracles to the file %s next to the
scenario. Then it writes the tables of results and candidates in each scenario's README and in %s anew. Without DIR it
only writes these tables, for example after a candidate was added.

A result has the pair, the versions of both arms, the verdicts of the trials, the date and the platform. Record judges
the evidence of a run again, and takes an oracle's grades from its oracle.json. It refuses a run without faults or with
a candidate, and one that lacks the scenario's vulnerable or fixed arm, because such a run doesn't say whether the
scenario reproduces its incident, and a run that was ended before its last trial. A directory that was recorded before replaces its earlier result.`, track.File, track.Page),
		Example: "  relapse record runs/latest\n  relapse record runs/*-oracle-pleg-deadlock",
		Args:    cobra.ArbitraryArgs,
		RunE:    func(cmd *cobra.Command, dirs []string) error { return addToRecord(cmd, dirs) },
	}
}

func addToRecord(cmd *cobra.Command, dirs []string) error {
	root, err := moduleRoot(cmd)
	if err != nil {
		return err
	}
	var found []track.Found
	for _, dir := range dirs {
		f, err := track.Read(dir)
		if damage := (*bundle.DamageError)(nil); errors.As(err, &damage) {
			return err
		}
		if err != nil {
			return usage(err, "relapse record takes the directory of a run, runs/ID, or of an oracle, runs/ID-oracle-NAME")
		}
		found = append(found, f)
	}
	for i, f := range found {
		s, err := loadScenario(cmd, f.Scenario)
		if err != nil {
			return err
		}
		r, err := track.Load(s)
		if err != nil {
			return err
		}
		r.Add(f)
		if err := r.Write(s); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "recorded: %s in the track record of %s\n", short(dirs[i]), f.Scenario)
	}
	pages, err := track.Texts(root)
	if err != nil {
		return err
	}
	if err := track.Write(pages); err != nil {
		return err
	}
	changed := 0
	for _, p := range pages {
		if p.Changed {
			changed++
			fmt.Fprintln(cmd.OutOrStdout(), "written:", short(p.Path))
		}
	}
	if changed == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "all %d pages show the track records already\n", len(pages))
	}
	return nil
}

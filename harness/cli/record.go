package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/campaign/track"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/scenario"
)

func newRecordCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "record [DIR...]",
		Short: "Add the results of runs to the scenarios' track records, and write the pages that show them",
		Long: fmt.Sprintf(
			`Record adds the results in directories of runs and of oracles to the file %s next to the
scenario. Then it writes the tables of results and candidates in each scenario's README and in %s anew. Without DIR it
only writes these tables, for example after a candidate was added.

A result has the pair, the versions of both arms, the verdicts of the trials, how long each took, the date and the
platform; relapse list shows these times. Record judges all evidence again, that of an oracle's candidates, too. It
refuses what doesn't say whether the scenario as it is now reproduces its incident: a run without faults, with a
candidate or with other arms or checks than the scenario's, one that was ended before its last trial, and evidence of
another version of the scenario's file. So record a run before you change its scenario. Evidence that was recorded
before replaces its earlier result. If one directory is refused, nothing is recorded.`,
			track.File,
			track.Page,
		),
		Example: "  relapse record runs/latest\n  relapse record runs/*-oracle-pleg-deadlock",
		Args:    cobra.ArbitraryArgs,
		RunE:    addToRecord,
	}
}

func addToRecord(cmd *cobra.Command, dirs []string) error {
	root, err := needCheckout(cmd, "the record of runs")
	if err != nil {
		return err
	}
	var said strings.Builder // printed once all is written: whoever reads a part of it and goes ends this process
	defer func() { fmt.Fprint(cmd.OutOrStdout(), said.String()) }()
	load := func(name string) (*scenario.Scenario, error) { return loadScenario(cmd, name) }
	records, of := map[string]*track.Record{}, map[string]*scenario.Scenario{}
	for _, dir := range dirs {
		f, err := track.Read(dir, load)
		if damage := (*bundle.DamageError)(nil); errors.As(err, &damage) {
			return err
		}
		if err != nil {
			return usage(
				err,
				"relapse record takes the directory of a run, runs/ID, or of an oracle, runs/ID-oracle-NAME",
			)
		}
		if records[f.Scenario] == nil {
			s, err := load(f.Scenario)
			if err != nil {
				return err
			}
			r, err := track.Load(s)
			if err != nil {
				return err
			}
			records[f.Scenario], of[f.Scenario] = &r, s
		}
		records[f.Scenario].Add(f)
		fmt.Fprintf(&said, "read: %s, for the track record of %s\n", short(dir), f.Scenario)
	}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		if err := records[name].Write(of[name]); err != nil {
			return err
		}
		fmt.Fprintf(&said, "written: the track record of %s\n", name)
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
			fmt.Fprintln(&said, "written:", short(p.Path))
		}
	}
	if changed == 0 {
		fmt.Fprintf(&said, "all %d pages show the track records already\n", len(pages))
	}
	return nil
}

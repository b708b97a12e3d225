package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/judge/history"
	"github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/harness/report/trend"
	"github.com/kube-relapse/relapse/internal/printing"
)

func newHistoryCmd() *cobra.Command {
	var out string
	var output printing.Format
	cmd := &cobra.Command{
		Use: "history [NAME]",
		Short: "Show how often each scenario was reproduced over time, and which one reproduces less often than it " +
			"used to",
		Long: fmt.Sprintf(
			`History reads %s, to which every run adds its trials. For each scenario, pair and arm
it shows how often the incident was reproduced over time, %d trials at a time, and when it was last reproduced,
with which binary and versions. Trials without an answer are counted separately.

The intervals are Wilson's at 95 %%, as in every report. A pair is flagged if its vulnerable arm reproduces the
incident less often than it used to, or gives an answer less often. That is decided by confidence sequences, which
hold however often you look: an arm whose rate never changes is flagged with a probability of %g %% at most, over any
number of years. If the last %d trials of an arm gave no answer,
history says so.

Trials that were not the scenario's own are not counted, and listed with the reason: those of --no-faults, --without and
--swap, those whose arms or checks were changed, and those with a setting of anything but a declared parameter.

History skips a line of the file that it can't read, and prints the number of the line.`,
			history.File,
			trend.Window,
			100*trend.FalseAlarm,
			trend.Streak,
		),
		Example: "  relapse history\n  relapse history pleg-deadlock -o json | jq '.arms[].fading'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(
					fmt.Errorf("relapse history takes one scenario at most, not %d", len(args)),
					"relapse history "+args[0],
				)
			}
			return nil
		},
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, args []string) error {
			return showHistory(
				cmd.OutOrStdout(),
				cmd.ErrOrStderr(),
				filepath.Join(out, history.File),
				args,
				output,
			)
		},
	}
	runsVar(cmd.Flags(), &out)
	registerOutput(cmd, &output, printing.Text, printing.JSON)
	return cmd
}

func showHistory(w, errs io.Writer, path string, names []string, output printing.Format) error {
	entries, skipped, err := history.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return usage(
			fmt.Errorf("there is no ledger %s", path),
			"runs make it; --runs says where they are",
		)
	}
	if err != nil {
		return err
	}
	for _, s := range skipped {
		fmt.Fprintln(errs, "warning: skipped", s)
	}
	if len(names) > 0 {
		all := entries
		entries = slices.DeleteFunc(
			slices.Clone(all),
			func(e history.Entry) bool { return e.Scenario != names[0] },
		)
		if len(entries) == 0 {
			return usage(
				fmt.Errorf(
					"%s has no trial of %q %s",
					path,
					names[0],
					oneOf(names[0], scenariosOf(all)),
				),
				"relapse history shows all",
			)
		}
	}
	lines := trend.Summary(entries)
	if output == printing.JSON {
		return printing.WriteJSON(w, struct {
			Arms    []trend.Line      `json:"arms"`
			Apart   []trend.Uncounted `json:"notCounted"`
			Skipped []history.Skipped `json:"skipped"`
		}{append([]trend.Line{}, lines...), trend.Apart(entries), append([]history.Skipped{}, skipped...)})
	}
	return historyText(w, lines, trend.Apart(entries))
}

func scenariosOf(entries []history.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Scenario)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// historyText writes a line for each arm, and below the table what is flagged and what isn't counted. Spans are listed
// oldest first.
func historyText(w io.Writer, lines []trend.Line, apart []trend.Uncounted) error {
	t := printing.Table{Empty: "-", Header: []string{"scenario", "pair", "arm", "trials", "reproduced", "Wilson, 95 %", "over time",
		"no answer", "last reproduced"}}
	for _, l := range lines {
		var spans, others []string
		for _, s := range l.Spans {
			spans = append(spans, fmt.Sprintf("%d/%d", s.K, s.N))
		}
		for _, o := range slices.Sorted(maps.Keys(l.Others)) {
			others = append(others, fmt.Sprintf("%d %s", l.Others[o], o))
		}
		interval := rate.Range(l.All.Low, l.All.High)
		t.Add(l.Scenario, l.Pair, l.Arm, l.Trials, l.All.Count, interval, strings.Join(spans, " "),
			strings.Join(others, ", "), lastReproduced(l.Last))
	}
	if _, err := io.WriteString(w, t.Fit(width(w))); err != nil {
		return err
	}
	for _, l := range lines {
		for _, why := range l.Fading {
			if _, err := fmt.Fprintf(w, "\nREPRODUCES LESS: %s, pair %s, arm %s: %s\n", l.Scenario, l.Pair, l.Arm,
				why); err != nil {
				return err
			}
		}
		if l.Silent != "" {
			if _, err := fmt.Fprintf(w, "\nNO ANSWER: %s, pair %s, arm %s: %s\n", l.Scenario, l.Pair, l.Arm,
				l.Silent); err != nil {
				return err
			}
		}
	}
	for _, u := range apart {
		if _, err := fmt.Fprintf(w, "\nNOT COUNTED: %s, pair %s, trials: %d, because %s\n", u.Scenario, u.Pair,
			u.Trials, u.Why); err != nil {
			return err
		}
	}
	return nil
}

func lastReproduced(e *history.Entry) string {
	if e == nil {
		return "never"
	}
	return fmt.Sprintf(
		"%s, binary %.12s, Kubernetes %s, in %s",
		e.Time.UTC().Format(time.DateTime),
		e.Digest,
		e.Versions["kubernetes"],
		e.Run,
	)
}

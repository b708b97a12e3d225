package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/event"
	reports "github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/report/history"
	"github.com/kube-relapse/relapse/internal/printing"
)

func newHistoryCmd() *cobra.Command {
	var out string
	var output printing.Format
	cmd := &cobra.Command{
		Use: "history [NAME]",
		Short: "Show how often each scenario was reproduced over time, and which one reproduces less often than it " +
			"used to",
		Long: fmt.Sprintf(`History reads %s, to which every run adds its trials. For each scenario, pair and arm
it shows how often the incident was reproduced over time, %d trials at a time, and when it was last reproduced,
with which binary and versions. Trials without an answer are counted separately.

The intervals are at 95 %%, and hold however often you look. A pair is flagged if its vulnerable arm reproduces
the incident less often than it used to, or gives an answer less often. An arm whose rate never changes is flagged
with a probability of %g %% at most, over any number of years. If the last %d trials of an arm gave no answer,
history says so.

Trials that were not the scenario's own are not counted, and listed with the reason: those of --no-faults, --without and
--swap, those whose arms or checks were changed, and those with a setting of anything but a declared parameter.

History skips a line of the file that it can't read, and prints the number of the line.`,
			history.File, history.Window, 100*history.FalseAlarm, history.Streak),
		Example: "  relapse history\n  relapse history pleg-deadlock -o json | jq '.arms[].fading'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(fmt.Errorf("relapse history takes one scenario at most, not %d", len(args)), "relapse history "+args[0])
			}
			return nil
		},
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, args []string) error {
			return showHistory(cmd.OutOrStdout(), cmd.ErrOrStderr(), filepath.Join(out, history.File), args, output)
		},
	}
	runsVar(cmd.Flags(), &out)
	registerOutput(cmd, &output, printing.Text, printing.JSON)
	return cmd
}

func showHistory(w, errs io.Writer, path string, names []string, output printing.Format) error {
	entries, skipped, err := history.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return usage(fmt.Errorf("there is no ledger %s", path), "runs make it; --runs says where they are")
	}
	if err != nil {
		return err
	}
	for _, s := range skipped {
		fmt.Fprintln(errs, "warning: skipped", s)
	}
	if len(names) > 0 {
		all := entries
		entries = slices.DeleteFunc(slices.Clone(all), func(e history.Entry) bool { return e.Scenario != names[0] })
		if len(entries) == 0 {
			return usage(fmt.Errorf("%s has no trial of %q %s", path, names[0], oneOf(names[0], scenariosOf(all))),
				"relapse history shows all")
		}
	}
	lines := history.Summary(entries)
	if output == printing.JSON {
		return printing.WriteJSON(w, struct {
			Arms    []history.Line      `json:"arms"`
			Apart   []history.Uncounted `json:"notCounted"`
			Skipped []history.Skipped   `json:"skipped"`
		}{append([]history.Line{}, lines...), history.Apart(entries), append([]history.Skipped{}, skipped...)})
	}
	return historyText(w, lines, history.Apart(entries))
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
func historyText(w io.Writer, lines []history.Line, apart []history.Uncounted) error {
	t := printing.Table{Empty: "-", Header: []string{"scenario", "pair", "arm", "trials", "reproduced", "95 %", "over time",
		"no answer", "last reproduced"}}
	for _, l := range lines {
		var spans, others []string
		for _, s := range l.Spans {
			spans = append(spans, fmt.Sprintf("%d/%d", s.K, s.N))
		}
		for _, o := range []string{"Broken", "Inconclusive", "Error"} {
			if n := l.Others[o]; n > 0 {
				others = append(others, fmt.Sprintf("%d %s", n, o))
			}
		}
		interval := fmt.Sprintf("%.0f-%.0f %%", l.All.Low*100, l.All.High*100)
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
	return fmt.Sprintf("%s, binary %.12s, Kubernetes %s, in %s", e.Time.UTC().Format(time.DateTime), e.Digest,
		e.Versions["kubernetes"], e.Run)
}

// entries returns the lines of the history for one run.
func entries(v reports.Verdict, dir string) []history.Entry {
	var out []history.Entry
	for _, t := range v.Trials {
		began, took := t.World.StartedAt, 0.0
		if n := len(t.Events); n > 0 {
			took = t.Events[n-1].Time.Sub(t.Events[0].Time).Seconds() - secondsOf("build", t.Events)
		}
		for _, a := range t.Arms {
			e := history.Entry{
				Time: began, Scenario: v.Scenario, Pair: t.Pair, Provider: t.Provider, Arm: a.Name, Role: a.Role,
				Outcome:  string(a.Outcome),
				Expected: string(a.Expected),
				Verdict:  string(t.Verdict), Versions: t.World.Versions, Seed: v.Seed, Seconds: took,
				Run: filepath.Base(dir), Trial: t.ID,
				Manifest: t.Manifest, Relapse: t.World.Versions["relapse"],
				Apart: t.Apart,
			}
			for _, c := range t.World.Arms {
				if c.Arm == a.Name {
					e.Digest = c.Digest
				}
			}
			out = append(out, e)
		}
	}
	return out
}

// secondsOf returns how long a stage took.
func secondsOf(stage string, events []event.Event) (sum float64) {
	for _, e := range events {
		if seconds, ok := e.Fields["seconds"].(float64); ok && e.Type == event.StageDone && e.Stage == stage {
			sum += seconds
		}
	}
	return sum
}

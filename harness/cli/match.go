package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/match/export"
	"github.com/kube-relapse/relapse/harness/match/healthy"
	"github.com/kube-relapse/relapse/harness/match/matched"
	"github.com/kube-relapse/relapse/harness/match/measure"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/internal/printing"
)

type matchFlags struct {
	output          printing.Format
	explain, export string
	measure, write  bool
	settle          bool
	healthy         []string
}

// newMatchCmd returns the command `relapse match`.
func newMatchCmd() *cobra.Command {
	var o matchFlags
	cmd := &cobra.Command{
		Use:   "match PATH...",
		Short: "Say which known incidents are in evidence from elsewhere, such as dumps and logs",
		Long: `Match reads evidence and looks for the incident of each scenario that has a match section. For each incident
it prints met, suspected, unknown or not met, with the evidence. Suspected means that the answer is unknown, but
something speaks for the incident.

A path is a file, a folder, an archive (tar, gzip, bzip2, xz, zstd, zip, and archives within archives) or - for
standard input. Match tells what a file is by its contents. It reads goroutine dumps at debug=1 and debug=2 and of
crashes, also in the middle of logs; logs and journals, wrapped or not; goroutine profiles of pprof; nodes and pods as
YAML or JSON; metrics, heap and CPU profiles, also as text; relapse's own bundles.

Match also reads what people paste: quoted, indented, numbered by grep, coloured, with spaces for tabs, as a diff, in
a fence of an issue, exported by Loki, Cloud Logging or CloudWatch as JSON or CSV, newest line first, and stacks that
have lost their lines of files or a header. It says what it did to the text. What has lost something rules nothing out,
and what a text only explains counts as no evidence.

For what is suspected, match shows the command that would settle the question; --settle shows it for each unknown,
too. The versions that the evidence names decide first: a process whose version has the fix doesn't have the incident.
If such a process shows a decisive sign, the incident is suspected. A fork's version decides nothing. Match leaves
secrets out of everything that it shows.

Match also reports what no scenario explains: the largest groups of goroutines and, for each process whose component
has a baseline of healthy processes, what the process has beyond the baseline. --healthy names evidence of your own
healthy processes to compare with. They should be as large and as busy as the processes that you look at. relapse
baseline takes dumps of healthy processes.

With --measure the paths are runs of relapse. For each sign, and for each kind of evidence alone, match prints how
often the sign is met where the arm was judged to show the incident, and how often elsewhere. Exit code 1 then means
that a rule is met where it must not be. With --explain NAME, --write replaces that scenario's table. The new table
rests on the given runs only, and match names those that it no longer counts.

The paths of --measure may also be cases: folders with a case.yaml, which says what evidence lies beside it and which
answer is right. Match prints for each scenario how the answers are, by form, to evidence of its own incident, of
other bugs and of healthy processes. Exit code 1 then means that an answer is wrong.

Exit codes: 1 an incident is met; 5 none is met and one is suspected; 0 evidence of some component was recognised, and
all incidents of the components in it are not met; 3 anything else, such as evidence of nothing that is known; 4
something of relapse's own failed; 64 wrong usage, or nothing to read.`,
		Example: "  relapse match must-gather.tar.gz\n  relapse match kubelet-goroutines.txt kubelet.log --explain " +
			"pleg-deadlock\n  kubectl get --raw /api/v1/nodes/NODE/proxy/debug/pprof/goroutine?debug=2 | relapse match -",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && o.export == "" && !o.baselines() {
				return usage(
					errors.New("relapse match takes at least one path"),
					"usage: relapse match PATH...",
				)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.baselines() {
				return writeBaselines(cmd, append(o.healthy, args...))
			}
			all, err := matchable(cmd, o.explain, o.export == "" && !o.measure)
			if err != nil {
				return err
			}
			if o.export != "" {
				return exportMatch(cmd.OutOrStdout(), all, o.export)
			}
			if o.measure {
				return measureMatch(cmd, all, args, o)
			}
			well, err := loadBaselines(cmd, o.healthy)
			if err != nil {
				return err
			}
			r, err := match.Run(cmd.Context(), all, well, args, cmd.InOrStdin())
			if err != nil {
				return unread(err)
			}
			if r.Nothing() {
				return usage(
					errors.New("there is nothing to read: the input is empty"),
					"want a file, a folder, an archive or -",
				)
			}
			return printMatch(cmd.OutOrStdout(), r, o)
		},
	}
	registerOutput(cmd, &o.output, printing.Text, printing.JSON, printing.Markdown, printing.HTML)
	cmd.Flag("output").Usage += "; markdown is for a ticket"
	cmd.Flags().StringVar(&o.export, "export", "",
		"print the rules for another tool, and what the other tool can't express: one of "+strings.Join(export.Forms, ", "),
	)
	cmd.Flags().
		BoolVar(&o.settle, "settle", false, "show for each unknown, too, the command that would settle it")
	cmd.Flags().BoolVar(&o.measure, "measure", false,
		"test the rules on runs of relapse, whose arms were judged, or on cases, and print how often they are met")
	cmd.Flags().
		BoolVar(&o.write, "write", false, "with --measure and --explain: write the table next to the scenario, as "+
			measure.File+"; with --healthy: write the baselines that the program ships with, below "+healthy.Folder)
	cmd.Flags().StringArrayVar(&o.healthy, "healthy", nil,
		"evidence of healthy processes to compare with, in place of the built-in baselines of their components")
	cmd.Flags().StringVar(&o.explain, "explain", "",
		"show only the incident of this scenario, with the evidence for each sign; with --measure, only its rules")
	return cmd
}

// baselines reports whether the command is to write baselines.
func (o matchFlags) baselines() bool { return len(o.healthy) > 0 && o.write && !o.measure }

// exportMatch runs `relapse match --export`.
func exportMatch(out io.Writer, all []*scenario.Scenario, form string) error {
	if !slices.Contains(export.Forms, form) {
		return usage(
			fmt.Errorf("unknown tool %q", form),
			"want one of "+strings.Join(export.Forms, ", "),
		)
	}
	var b bytes.Buffer
	if err := export.Write(&b, all, form); err != nil {
		return err
	}
	_, err := out.Write(b.Bytes())
	return err
}

// unread turns the error of a path that can't be opened into a usage error, which says what is wanted instead.
func unread(err error) error {
	if path := new(fs.PathError); errors.As(err, &path) {
		return usage(err, "want a file, a folder, an archive or -")
	}
	return err
}

// matchable returns the scenarios that have a match section, or only the named one, which must have one. If their rules
// are enough, those that the program ships with have nothing else: reading them whole takes longer than all the rest.
func matchable(
	cmd *cobra.Command,
	only string,
	rules bool,
) (out []*scenario.Scenario, err error) {
	files := []string{only}
	if only == "" {
		if files, err = scenarioFiles(cmd); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		s, err := matchableIn(cmd, f, rules)
		if err != nil {
			return nil, asInput(err)
		}
		if s.Spec.Match != nil {
			out = append(out, s)
		} else if only != "" {
			return nil, usage(fmt.Errorf("%s has no match section", only),
				"relapse match PATH... without --explain shows those that have")
		}
	}
	if len(out) == 0 {
		return nil, usage(
			errors.New("no scenario has a match section"),
			"pass --root or set RELAPSE_ROOT",
		)
	}
	return out, nil
}

// matchableIn returns the scenario of a name or in a file, with nothing but its rules where these are enough.
func matchableIn(cmd *cobra.Command, name string, rules bool) (*scenario.Scenario, error) {
	if rules && isPath(name) {
		if s, err := match.Shipped(name); err != nil || s != nil {
			return s, err
		}
	}
	return loadScenario(cmd, name)
}

// printMatch prints a result without its secrets, and returns the result's exit code.
func printMatch(out io.Writer, r match.Result, o matchFlags) error {
	var b bytes.Buffer
	if o.output == printing.JSON {
		if err := printing.WriteJSONLine(&b, r); err != nil {
			return fmt.Errorf("printing the result: %w", err)
		}
	} else if err := matched.Write(&b, r, o.output, matched.Options{Explain: o.explain != "", Settle: o.settle}); err != nil {
		return err
	}
	clean, err := bundle.Redact(b.Bytes())
	if err != nil {
		return fmt.Errorf("leaving out secrets: %w", err)
	}
	if o.output == printing.JSON { // without secrets it is one line
		err = printing.WriteJSON(out, json.RawMessage(clean))
	} else {
		_, err = out.Write(append(bytes.TrimRight(clean, "\n"), '\n'))
	}
	if err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	switch r.Answer {
	case match.Met:
		return exitWith(verdict.ExitFailed)
	case match.Suspected:
		return exitWith(exitSuspected)
	case match.Unknown:
		return exitWith(verdict.ExitInconclusive)
	}
	return nil
}

// exitSuspected is the exit code of relapse match if an incident is suspected and none is met.
const exitSuspected = 5

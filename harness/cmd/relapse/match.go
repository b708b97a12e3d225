package main

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

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/match/export"
	"github.com/kube-relapse/relapse/harness/match/healthy"
	"github.com/kube-relapse/relapse/harness/report/matched"
	"github.com/kube-relapse/relapse/harness/report/measure"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

type matchFlags struct {
	output, explain string
	measure, write  bool
	export          string
	healthy         []string
}

// newMatchCmd returns the command `relapse match`.
func newMatchCmd() *cobra.Command {
	var o matchFlags
	cmd := &cobra.Command{
		Use:   "match PATH...",
		Short: "Say which known incidents are in somebody else's evidence",
		Long: `Match reads what is there, and says of the incident of each scenario that has a match section
whether it is met, not met or unknown, with the evidence. A path is a file, a folder, an archive (tar, gzip, bzip2,
xz, zstd, zip, and those in each other) or - for standard input. What it is comes from its contents: goroutine dumps at debug=1 and debug=2 and
of crashes, also in the middle of logs; logs and journals, wrapped or not; goroutine profiles of pprof; nodes and pods
as YAML or JSON; metrics, heap and CPU profiles; relapse's own bundles.

Suspected is an unknown with something that speaks for it. For each unknown the command is shown that would settle
it. The versions that the evidence names decide first: what has the fix doesn't have the incident, and a fork's version
says nothing. Secrets are left out of all that is shown.

What no scenario explains is told all the same: the largest groups of goroutines, and for each process of which it is
known what a healthy one has, what it has beyond that. --healthy names evidence of your own healthy processes to
compare with, as large and as busy as yours; relapse baseline takes the like.

With --measure the paths are runs of relapse: it says for each sign, and each kind of evidence alone, how often it
is met where the arm was judged to show the incident, and where it wasn't. Exit code 1 then says that a rule is met
where it must not be.

Exit codes: 0 nothing known is met, 1 something is, 3 some are unknown and none is met, 4 a failure of relapse's own,
64 wrong usage.`,
		Example: "  relapse match must-gather.tar.gz\n  relapse match kubelet-goroutines.txt kubelet.log --explain " +
			"pleg-deadlock\n  kubectl get --raw /api/v1/nodes/NODE/proxy/debug/pprof/goroutine?debug=2 | relapse match -",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && o.export == "" && !o.baselines() {
				return usage(errors.New("relapse match takes at least one path"), "usage: relapse match PATH...")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"text", "json", "markdown", "html"}, o.output) {
				return usage(fmt.Errorf("unknown output %q", o.output), "want text, json, markdown or html")
			}
			if o.baselines() {
				return writeBaselines(cmd, append(o.healthy, args...))
			}
			all, err := matchable(cmd, o.explain)
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
			return printMatch(cmd.OutOrStdout(), r, o)
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "text, json, markdown for a ticket, or html")
	cmd.Flags().StringVar(&o.export, "export", "",
		"write the rules for another tool, and what is lost in it: "+strings.Join(export.Forms, " or "))
	cmd.Flags().BoolVar(&o.measure, "measure", false,
		"hold the rules against runs of relapse, whose arms were judged, and print how often each is met")
	cmd.Flags().BoolVar(&o.write, "write", false, "with --measure: write each table beside its scenario, as "+measure.File+
		"; with --healthy: write what the program ships with, below "+healthy.Folder)
	cmd.Flags().StringArrayVar(&o.healthy, "healthy", nil,
		"evidence of processes that were well, to compare the evidence with in place of what the program ships with")
	cmd.Flags().StringVar(&o.explain, "explain", "",
		"only this scenario's incident, with the evidence for each of its signs")
	return cmd
}

// baselines reports whether the command is to write baselines.
func (o matchFlags) baselines() bool { return len(o.healthy) > 0 && o.write && !o.measure }

// exportMatch runs `relapse match --export`.
func exportMatch(out io.Writer, all []*scenario.Scenario, form string) error {
	if !slices.Contains(export.Forms, form) {
		return usage(fmt.Errorf("unknown tool %q", form), "want "+strings.Join(export.Forms, " or "))
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

// matchable returns the scenarios that have a match section, or only the named one, which must have one.
func matchable(cmd *cobra.Command, only string) (out []*scenario.Scenario, err error) {
	files := []string{only}
	if only == "" {
		if files, err = scenarioFiles(cmd); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		s, err := loadScenario(cmd, f)
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
		return nil, usage(errors.New("no scenario has a match section"), "pass --root or set RELAPSE_ROOT")
	}
	return out, nil
}

// printMatch prints a result without its secrets, and returns the result's exit code.
func printMatch(out io.Writer, r match.Result, o matchFlags) error {
	var b bytes.Buffer
	if o.output == "json" {
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("printing the result: %w", err)
		}
	} else if err := matched.Write(&b, r, o.output, o.explain != ""); err != nil {
		return err
	}
	clean, err := bundle.Redact(b.Bytes())
	if err != nil {
		return fmt.Errorf("leaving out secrets: %w", err)
	}
	if o.output == "json" { // without secrets it has been joined to one line
		b.Reset()
		if err := json.Indent(&b, clean, "", "  "); err != nil {
			return fmt.Errorf("printing the result: %w", err)
		}
		clean = b.Bytes()
	}
	if _, err := out.Write(append(bytes.TrimRight(clean, "\n"), '\n')); err != nil {
		return err
	}
	switch r.Met() {
	case check.True:
		return exitWith(verdict.ExitFailed)
	case check.Unknown:
		return exitWith(verdict.ExitInconclusive)
	}
	return nil
}

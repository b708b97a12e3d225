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
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

type matchFlags struct{ output, explain string }

// newMatchCmd is `relapse match`.
func newMatchCmd() *cobra.Command {
	var o matchFlags
	cmd := &cobra.Command{
		Use:   "match PATH...",
		Short: "Say which known incidents are in somebody else's evidence",
		Long: `Match reads what is there, and says of the incident of each scenario that has a match section
whether it is met, not met or unknown, with the evidence. A path is a file, a folder, an archive (tar, gzip, bzip2, xz, zstd, zip, and those in
each other) or - for standard input. What it is comes from its contents: goroutine dumps at debug=1 and debug=2 and
of crashes, also in the middle of logs; logs and journals, wrapped or not; goroutine profiles of pprof; nodes and pods
as YAML or JSON; metrics, of which only the version is taken; relapse's own bundles.

Suspected is an unknown with something that speaks for it. For each unknown the command is shown that would settle
it. The versions that the evidence names decide first: what has the fix doesn't have the incident, and a fork's version
says nothing. Secrets are left out of all that is shown.

Exit codes: 0 nothing known is met, 1 something is, 3 some are unknown and none is met, 4 a failure of relapse's own,
64 wrong usage.`,
		Example: "  relapse match must-gather.tar.gz\n  relapse match kubelet-goroutines.txt kubelet.log --explain " +
			"pleg-deadlock\n  kubectl get --raw /api/v1/nodes/NODE/proxy/debug/pprof/goroutine?debug=2 | relapse match -",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("relapse match takes at least one path"), "usage: relapse match PATH...")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.output != "text" && o.output != "json" {
				return usage(fmt.Errorf("unknown output %q", o.output), "want text or json")
			}
			all, err := matchable(cmd, o.explain)
			if err != nil {
				return err
			}
			r, err := match.Run(cmd.Context(), all, args, cmd.InOrStdin())
			if err != nil {
				if unread := new(fs.PathError); errors.As(err, &unread) {
					err = usage(err, "want a file, a folder, an archive or -")
				}
				return err
			}
			return printMatch(cmd.OutOrStdout(), r, o)
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "text or json")
	cmd.Flags().StringVar(&o.explain, "explain", "",
		"only this scenario's incident, with the evidence for each of its signs")
	return cmd
}

// matchable are the scenarios that say how their incident is known, or the named one, which has to.
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

// printMatch shows a result without its secrets, and ends with its exit code.
func printMatch(out io.Writer, r match.Result, o matchFlags) error {
	var b bytes.Buffer
	if o.output == "json" {
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("printing the result: %w", err)
		}
	} else if err := matchText(&b, r, o.explain != ""); err != nil {
		return err
	}
	clean, err := bundle.Redact(b.Bytes())
	if err != nil {
		return fmt.Errorf("leaving out secrets: %w", err)
	}
	if o.output == "json" { // without secrets it is one line
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
	case check.Met:
		return exitWith(verdict.ExitFailed)
	case check.Unknown:
		return exitWith(verdict.ExitInconclusive)
	}
	return nil
}

func matchText(b *bytes.Buffer, r match.Result, explain bool) error {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "INCIDENT\tANSWER\tWHY")
	for _, i := range r.Incidents {
		fmt.Fprintf(w, "%s\t%s\t%s\n", i.Name, i.Word(), i.Why)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, i := range r.Incidents {
		if explain {
			explainMatch(b, i)
		}
		if i.Settle != "" {
			fmt.Fprintf(b, "\n%s is %s; this would settle it:\n  %s\n", i.Name, i.Word(), i.Settle)
		}
		if i.Prove != "" {
			fmt.Fprintf(b, "\n%s on that very version:\n  %s\n", i.Name, i.Prove)
		}
	}
	if !explain {
		unexplained(b, r.Unexplained)
	}
	fmt.Fprintf(b, "\nread: %s\n", inputs(r.Inputs))
	for _, lacks := range lacking(r.Inputs) {
		fmt.Fprintf(b, "  %s\n", lacks)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(b, "problem: %s: %s\n", p.Path, p.Message)
	}
	return nil
}

func explainMatch(b *bytes.Buffer, i match.Incident) {
	fmt.Fprintf(b, "\n%s\n", i.Title)
	for _, ref := range i.References {
		fmt.Fprintf(b, "  %s\n", ref)
	}
	if i.Fixed != "" {
		fmt.Fprintf(b, "  the fix is in %s\n", i.Fixed)
	}
	for _, j := range i.Subjects {
		fmt.Fprintf(b, "\n%s %s: %s: %s\n", j.Place, j.Version, j.Met, j.Why)
		for _, s := range j.Signs {
			fmt.Fprintf(b, "  %s (%s): %s: %s\n    %s\n", s.Name, s.Is, s.Met, s.Seen, s.Ground)
			if s.Met == check.Unknown {
				continue
			}
			for _, at := range s.Where {
				fmt.Fprintf(b, "    at %s\n", at)
			}
			if s.Detail != "" {
				fmt.Fprintf(b, "      %s\n", strings.ReplaceAll(s.Detail, "\n", "\n      "))
			}
		}
	}
}

func unexplained(b *bytes.Buffer, u match.Unexplained) {
	if len(u.Goroutines)+len(u.Restarts) > 0 {
		fmt.Fprint(b, "\nunexplained:\n")
	}
	for _, g := range u.Goroutines {
		state := g.State
		if g.Minutes > 0 {
			state += fmt.Sprintf(", up to %d minutes", g.Minutes)
		}
		fmt.Fprintf(b, "  %d goroutines [%s] in %s\n", g.Count, state, g.Where)
		for _, f := range g.Frames {
			fmt.Fprintf(b, "    %s\n", f)
		}
	}
	for _, r := range u.Restarts {
		fmt.Fprintf(b, "  %s of %s restarted %d times", r.Container, r.Place, r.Restarts)
		if !r.At.IsZero() {
			fmt.Fprintf(b, ", the last time after %s with exit code %d at %s", r.Reason, r.ExitCode,
				r.At.UTC().Format("2006-01-02 15:04:05"))
		}
		fmt.Fprintln(b)
	}
}

// inputs are what was read, each by itself if there are few, else only their number.
func inputs(all []match.Input) string {
	if len(all) > 6 {
		return fmt.Sprintf("%d files; -o json lists them", len(all))
	}
	var out []string
	for _, i := range all {
		out = append(out, i.Path+" as "+i.As)
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, "; ")
}

// lacking says for the forms that were read what they can't hold, each once.
func lacking(all []match.Input) (out []string) {
	for _, i := range all {
		form, _, _ := strings.Cut(i.As, " ")
		if said := strings.TrimRight(form, ",") + ": " + i.Lacks; i.Lacks != "" && !slices.Contains(out, said) {
			out = append(out, said)
		}
	}
	return out
}

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/judge"
	reports "github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/internal/printing"
)

// newReportCmd returns the command `relapse report`.
func newReportCmd() *cobra.Command {
	var index string
	var output printing.Format
	cmd := &cobra.Command{
		Use:   "report DIR...",
		Short: "Write the reports of runs again from their evidence, with an index of several runs",
		Long: `Report reads the evidence of each run and writes its reports again: the same bytes, wherever the
directory was copied to. Each page is one file that needs no network.

DIR is a run, or a folder of runs such as runs/. For several runs, a folder of runs or --index, report also writes
index.html, the history of each scenario and arm. The file goes into the folder that --index names, else into the
folder that contains all of the runs.

A run has no verdict if its evidence is damaged or belongs to another run, or if the run broke off before its first
trial ended. The index names a run without a verdict, and the exit code is then 4.

With -o markdown, report writes no file. It prints one table of all the runs, to be pasted into a pull request: a row
for each pair of a run, with the versions of the arms, what the candidate was made of, the verdict, in how many trials
each arm showed the incident, and the digests of the bundles. A run without an answer has a note that says why.`,
		Example: "  relapse report runs/latest\n  relapse report runs\n  relapse report runs/2026* --index public\n" +
			"  relapse report runs/20260304-* -o markdown",
		Args: someDirectories,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == printing.Markdown {
				return compareRuns(cmd, args, index)
			}
			return buildReports(cmd, args, index)
		},
	}
	registerOutput(cmd, &output, printing.Text, printing.Markdown)
	cmd.Flags().StringVar(&index, "index", "",
		"the folder that index.html is written to (default: the folder that contains all of the runs)")
	return cmd
}

func someDirectories(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(
			fmt.Errorf("%s takes at least one directory", cmd.CommandPath()),
			"usage: "+cmd.UseLine(),
		)
	}
	return nil
}

// buildReports judges each run again and writes its reports.
func buildReports(cmd *cobra.Command, args []string, index string) error {
	dirs, many, err := runsIn(args)
	if err != nil {
		return err
	}
	var failed []error
	var runs []reports.Run
	for _, dir := range dirs {
		r, err := judged(dir, writeReports)
		if err != nil {
			failed = append(failed, err)
		} else {
			fmt.Fprintf(
				cmd.OutOrStdout(),
				"%s: %s\n",
				filepath.Join(short(dir), reports.PageFile),
				r.Verdict.Verdict,
			)
		}
		runs = append(runs, r)
	}
	if many || index != "" {
		if index == "" {
			index = common(dirs)
		}
		if err := writeIndex(index, runs); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), filepath.Join(short(index), reports.IndexFile))
	}
	return hinted(errors.Join(failed...), damagedHint)
}

// damagedHint follows the errors of runs that have no verdict.
const damagedHint = "a run has a verdict only if its evidence is as it was recorded, and all of it is its own"

// judged judges a run again, and hands it to write unless that is nil.
func judged(dir string, write func(dir string, v judge.Verdict) error) (reports.Run, error) {
	v, err := judge.Run(dir)
	if err == nil && write != nil {
		err = write(dir, v)
	}
	r := reports.Run{Dir: dir, Verdict: v}
	if err != nil {
		r.Err = strings.ReplaceAll(err.Error(), dir, filepath.Base(dir)) // what names it can be copied
	}
	return r, err
}

// compareRuns judges each run again and prints one table of all of them.
func compareRuns(cmd *cobra.Command, args []string, index string) error {
	if index != "" {
		return usage(
			errors.New("-o markdown prints a table and writes no index"),
			"leave --index or -o markdown out",
		)
	}
	dirs, _, err := runsIn(args)
	if err != nil {
		return err
	}
	var failed []error
	var runs []reports.Run
	for _, dir := range dirs {
		r, err := judged(dir, nil)
		failed, runs = append(failed, err), append(runs, r)
	}
	if _, err := fmt.Fprint(cmd.OutOrStdout(), reports.Comparison(runs)); err != nil {
		return err
	}
	return hinted(errors.Join(failed...), damagedHint)
}

// writeIndex writes the index. It links the runs' directories relative to the index.
func writeIndex(index string, runs []reports.Run) error {
	at, err := filepath.Abs(index)
	if err != nil {
		return err
	}
	for i, r := range runs {
		rel, err := filepath.Rel(at, r.Dir)
		if err != nil {
			return fmt.Errorf("linking the index to %s: %w", r.Dir, err)
		}
		runs[i].Dir = filepath.ToSlash(rel)
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	return reports.WriteIndex(at, runs)
}

// runsIn returns the runs that the arguments name, each once and by its real path. many says that there are several
// runs, or that an argument is a folder of runs.
func runsIn(args []string) (dirs []string, many bool, err error) {
	seen := map[string]bool{}
	add := func(dir string) error {
		own, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return err
		}
		if own, err = filepath.Abs(own); err != nil {
			return err
		}
		if !seen[own] {
			seen[own] = true
			dirs = append(dirs, own)
		}
		return nil
	}
	for _, arg := range args {
		inside, err := filepath.Glob(filepath.Join(escaped(arg), "*", "trials"))
		switch {
		case err != nil:
			return nil, false, err
		case isFile(arg):
			return nil, false, usage(fmt.Errorf("reporting %s: it is no folder (want that of a run, or of several)", arg),
				"relapse report runs/latest reports the last run, and relapse report runs all of them")
		case !isDir(arg):
			return nil, false, usage(
				fmt.Errorf("reporting %s: there is no such folder", arg),
				"relapse report runs/latest reports the last run, and relapse report runs all of them",
			)
		case judge.IsTrial(arg):
			return nil, false, usage(
				fmt.Errorf("reporting %s: it is a single trial, and a bundle is never changed",
					arg),
				"name the run that it belongs to",
			)
		case isDir(filepath.Join(arg, "trials")):
			inside = []string{filepath.Join(arg, "trials")}
		case len(inside) == 0:
			return nil, false, usage(
				fmt.Errorf("reporting %s: it is no run and has none", arg),
				"relapse report runs/latest reports the last run, and relapse report runs all of them",
			)
		default:
			many = true
		}
		for _, trials := range inside {
			if err := add(filepath.Dir(trials)); err != nil {
				return nil, false, fmt.Errorf("reporting %s: %w", arg, err)
			}
		}
	}
	return dirs, many || len(dirs) > 1, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// escaped returns a path with its special characters escaped, so that a glob matches the path itself.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// common returns the deepest folder that contains all of the runs.
func common(dirs []string) string {
	out := filepath.Dir(dirs[0])
	for _, d := range dirs {
		for rel, err := filepath.Rel(out, d); err != nil || !filepath.IsLocal(rel); rel, err = filepath.Rel(out, d) {
			out = filepath.Dir(out)
		}
	}
	return out
}

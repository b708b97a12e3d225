package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	reports "github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/report/attest"
	"github.com/kube-relapse/relapse/internal/printing"
)

type judgeFlags struct {
	output      printing.Format
	verify      string // a public key
	attestation string
}

// newJudgeCmd returns the command `relapse judge`.
func newJudgeCmd() *cobra.Command {
	var o judgeFlags
	cmd := &cobra.Command{
		Use:   "judge DIR",
		Short: "Judge a run again from its evidence, with no cluster and no engine",
		Long: `Judge reads the evidence in a run's directory, decides again and writes the reports again: the
same bytes, wherever the directory was copied to. For the directory of a single trial it prints the
verdict and writes nothing. A single trial of a run with --until-confident is never Validated.

In these cases there is no verdict, the exit code is 4, and nothing is written:
  - The evidence has a changed byte, a file that the manifest doesn't list, or a broken manifest.
  - The run has a trial of another run or plan.
  - The run lacks plan.json, index.json or a trial that the index lists.
If another file is missing, each check that needs the file is unknown.

A run that was killed, or is not over, is judged by the trials that it finished, and is at best Inconclusive.

--verify compares first the files and then the verdict with what relapse attest signed. If anything differs
there is no verdict. With --verify nothing is written, whether anything differs or not.`,
		Example: "  relapse judge runs/latest\n  relapse judge runs/latest -o json | jq .verdict\n  relapse judge " +
			"runs/latest/trials/001\n" +
			"  relapse judge --verify key.pub runs/latest",
		Args: exactly(1, "directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runJudge(cmd, args[0], o)
		},
	}
	registerOutput(cmd, &o.output, printing.Text, printing.JSON)
	cmd.Flag("output").Usage += "; json is verdict.json, with the last line on stderr"
	jsonFlag(cmd.Flags())
	cmd.Flags().
		StringVar(&o.verify, "verify", "", "compare the run with its attestation; the value is the file of the public key (PEM)")
	cmd.Flags().StringVar(&o.attestation, "attestation", "",
		"the file of the attestation, with --verify (default: DIR/"+attest.File+")")
	return concluding(cmd)
}

// runJudge prints the verdict over dir, writes the reports if dir is a run, and returns the verdict's exit code.
func runJudge(cmd *cobra.Command, dir string, o judgeFlags) error {
	out := cmd.OutOrStdout()
	if err := isRun("judging", dir); err != nil {
		return err
	}
	if o.attestation != "" && o.verify == "" {
		return usage(errors.New("--attestation is for --verify"), "--verify names the public key")
	}
	v, err := o.judged(cmd.Context(), dir, cmd.ErrOrStderr())
	if damage := (*bundle.DamageError)(nil); errors.As(err, &damage) {
		return hinted(
			err,
			"the evidence is not what was recorded, so there is no verdict; a verdict.json there is an older one",
		)
	}
	if err != nil {
		return hinted(err, "relapse judge --help says when there is no verdict")
	}
	asJSON := o.output == printing.JSON
	if err := printVerdict(out, v, asJSON); err != nil {
		return fmt.Errorf("printing the verdict: %w", err)
	}
	if !asJSON && o.verify == "" && !judge.IsTrial(dir) {
		printPlaces(out, dir)
	}
	printLast(cmd, v.Verdict, v.ExitCode)
	return exitWith(v.ExitCode)
}

// isRun refuses a path that is no folder of a run or of a trial. A run that lacks something is damaged, and that isn't
// the user's mistake.
func isRun(doing, dir string) error {
	const hint = "relapse judge runs/latest judges the last run; the others are beside it"
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usage(fmt.Errorf("%s %s: there is no such folder", doing, dir), hint)
	case err != nil || !info.IsDir():
		return usage(fmt.Errorf("%s %s: it is no folder (want that of a run)", doing, dir), hint)
	}
	for _, name := range []string{bundle.PlanFile, bundle.IndexFile, "trials", judge.VerdictFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return nil
		}
	}
	if judge.IsTrial(dir) {
		return nil
	}
	return usage(
		fmt.Errorf(
			"%s %s: it is not the folder of a run, which has a plan.json, an index.json and trials",
			doing,
			dir,
		),
		hint,
	)
}

// judged returns the verdict over dir. It writes the reports, or with --verify compares the verdict with the signed
// one.
func (o judgeFlags) judged(
	ctx context.Context,
	dir string,
	errs io.Writer,
) (judge.Verdict, error) {
	if o.verify == "" {
		v, err := judge.Run(dir)
		if err == nil && !judge.IsTrial(dir) {
			err = writeReports(dir, v)
		}
		return v, err
	}
	signed, err := attested(ctx, dir, o.verify, o.attestation)
	if err != nil {
		return judge.Verdict{}, err
	}
	v, err := judge.Run(dir)
	if err == nil {
		err = signed.Agrees(v)
	}
	if err == nil {
		fmt.Fprintf(
			errs,
			"verified: the files and the verdict are those that were signed; relapse %s judged them then\n",
			signed.Judge,
		)
	}
	return v, err
}

// writeReports writes the reports of a run to its directory, and then its verdict.json.
func writeReports(dir string, v judge.Verdict) error {
	if err := reports.Write(dir, v); err != nil {
		return err
	}
	return judge.Write(dir, v)
}

// printPlaces prints where a run's evidence and reports are.
func printPlaces(out io.Writer, dir string) {
	at := short(dir)
	fmt.Fprintf(
		out,
		"\nevidence: %s\nreport:   %s\nsummary:  %s\n",
		at,
		filepath.Join(at, reports.PageFile),
		filepath.Join(at, reports.SummaryFile),
	)
}

func printVerdict(out io.Writer, v judge.Verdict, asJSON bool) error {
	if asJSON {
		b, err := v.JSON()
		if err != nil {
			return err
		}
		_, err = out.Write(b)
		return err
	}
	f, ok := out.(*os.File)
	return reports.Text(out, v, ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "")
}

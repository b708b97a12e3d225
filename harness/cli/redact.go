package cli

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/build/image"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/judge/redact"
)

type redactFlags struct {
	output, table string
	words         []string
}

// newRedactCmd returns the command `relapse redact`.
func newRedactCmd() *cobra.Command {
	var f redactFlags
	cmd := &cobra.Command{
		Use:   "redact RUN -o FILE",
		Short: "Make a copy of a run that can be given away, and say what is left in it",
		Long: `Redact writes an archive with a copy of a run that is judged like the run itself:
  - Artifacts that judging doesn't read are taken out. So is the text of log lines that no check asks for.
  - Names of objects, nodes, hosts and users, addresses, labels, annotations, arguments and the environment get
    stand-ins, the same in all files of the run. So do the names of your own files in the plan.
  - Names that the plan has stay, because checks refer to them. So do the names of functions.
  - --word takes a word out wherever it stands, even in the names of functions.

Redact then judges the copy. If one answer differs there is no archive, and the error says which.

The copy is sealed anew and says that it is redacted, and the SHA-256 of the index.json that it was made from. An
attestation of the original doesn't hold for it; relapse attest signs the copy, once it is unpacked and judged.

Redact prints what it took out and what it left. Read that before you give the archive away: nothing but a person
can tell what a log line or the name of a function says. docs/redaction.md tells what a bundle may reveal.`,
		Example: "  relapse redact runs/latest -o redacted.tar.gz\n" +
			"  relapse redact runs/latest -o redacted.tar.gz --word acme --table names.json",
		Args: exactly(1, "directory"),
		RunE: func(cmd *cobra.Command, args []string) error { return runRedact(cmd, args[0], f) },
	}
	cmd.Flags().
		StringVarP(&f.output, "output", "o", "", "the archive to write: a new file, tar with gzip")
	cmd.Flags().
		StringArrayVar(&f.words, "word", nil, "a word to take out wherever it stands, whatever its case; may be given several times")
	cmd.Flags().
		StringVar(&f.table, "table", "", "a new file for the table of names, as JSON: keep it to yourself, it translates back")
	return cmd
}

func runRedact(cmd *cobra.Command, dir string, f redactFlags) error {
	if f.output == "" {
		return usage(
			errors.New("there is no file to write to"),
			"-o names the archive, such as redacted.tar.gz",
		)
	}
	if err := isRun("redacting", dir); err != nil {
		return err
	}
	if judge.IsTrial(dir) {
		return usage(
			fmt.Errorf("redacting %s: it is a single trial", dir),
			"name the run that it belongs to",
		)
	}
	for _, file := range []string{f.output, f.table} {
		if _, err := os.Lstat(file); file != "" && !errors.Is(err, fs.ErrNotExist) {
			return usage(fmt.Errorf("writing %s: it is there already", file), "name a new file")
		}
	}
	for _, w := range f.words {
		if len(w) < 3 {
			return usage(
				fmt.Errorf("the word %q is too short to be found alone", w),
				"--word takes three letters or more",
			)
		}
	}
	tmp, err := os.MkdirTemp(filepath.Dir(f.output), ".redact-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	copied := filepath.Join(tmp, "redacted")
	done, err := redact.Run(dir, copied, f.words)
	if damage := (*bundle.DamageError)(nil); errors.As(err, &damage) {
		return hinted(err, "only evidence that is as it was recorded can be redacted")
	}
	if err != nil {
		return fmt.Errorf("redacting %s: %w", dir, err)
	}
	if err := writeReports(copied, done.Verdict); err != nil {
		return err
	}
	if err := pack(f.output, copied, done.Verdict.Scenario+"-redacted"); err != nil {
		return fmt.Errorf("writing %s: %w", f.output, err)
	}
	if f.table != "" {
		names, err := json.MarshalIndent(done.Table.Names(), "", "  ")
		if err := errors.Join(err, renameio.WriteFile(f.table, append(names, '\n'), 0o600)); err != nil {
			return err
		}
	}
	return printRedacted(cmd.OutOrStdout(), f.output, done)
}

func printRedacted(w io.Writer, file string, r *redact.Result) error {
	fmt.Fprintf(w, "taken out:\n")
	for _, line := range r.TakenOut() {
		fmt.Fprintf(w, "  %s\n", line)
	}
	fmt.Fprintf(w, "left:\n")
	for _, line := range r.Left() {
		fmt.Fprintf(w, "  %s\n", line)
	}
	_, err := fmt.Fprintf(
		w,
		"judged the same: %s\nmade from the index.json with the SHA-256 %s\n%s\n",
		r.Verdict.Verdict,
		r.From,
		short(file),
	)
	return err
}

// pack writes an archive of a folder, which has the given name in it. The same files give the same bytes.
func pack(file, dir, name string) error {
	out, err := renameio.NewPendingFile(file, renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer out.Cleanup()
	z := gzip.NewWriter(out)
	t := tar.NewWriter(z)
	err = image.WriteDir(t, name, dir)
	if err := errors.Join(err, t.Close(), z.Close()); err != nil {
		return err
	}
	return out.CloseAtomicallyReplace()
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/report/attest"
)

// newAttestCmd returns the command `relapse attest`.
func newAttestCmd() *cobra.Command {
	var key, out string
	cmd := &cobra.Command{
		Use:   "attest DIR --key KEY",
		Short: "Sign a run's verdict together with its evidence, for relapse judge --verify",
		Long: `Attest judges the run once more and signs the result: an in-toto statement in a DSSE envelope.
The statement's subjects are plan.json, index.json, verdict.json and each trial's manifest.json, with their
SHA-256. The predicate is the verdict, the arms with their binaries, the plan and the version of relapse that judged.

The sums in a run protect against accidents. The signature also protects against forgery, for as long as the
key is secret: relapse judge --verify KEY DIR compares the files and the verdict with what was signed.

The key is a PEM file, ed25519 or ecdsa, without a passphrase:

  openssl genpkey -algorithm ed25519 -out key.pem
  openssl pkey -in key.pem -pubout -out key.pub`,
		Example: "  relapse attest runs/latest --key key.pem\n  relapse judge --verify key.pub runs/latest",
		Args:    exactly(1, "directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if key == "" {
				return usage(
					errors.New("there is no key to sign with"),
					"--key names a private key, as PEM",
				)
			}
			if out == "" {
				out = filepath.Join(args[0], attest.File)
			}
			if err := attestRun(cmd.Context(), args[0], key, out); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), short(out))
			return err
		},
	}
	cmd.Flags().
		StringVar(&key, "key", "", "the private key to sign with: a PEM file, ed25519 or ecdsa")
	cmd.Flags().StringVar(&out, "attestation", "",
		"the file that the attestation is written to (default: DIR/"+attest.File+")")
	renamed(cmd.Flags(), "out", "attestation")
	return cmd
}

func attestRun(ctx context.Context, dir, key, out string) error {
	if err := isRun("attesting", dir); err != nil {
		return err
	}
	if judge.IsTrial(dir) {
		return usage(
			fmt.Errorf("attesting %s: it is a single trial", dir),
			"name the run that it belongs to",
		)
	}
	raw, err := os.ReadFile(key)
	if err != nil {
		return usage(err, "--key names a private key, as PEM")
	}
	v, err := judge.Run(dir)
	if err != nil {
		return err
	}
	signed, err := attest.Sign(ctx, dir, v, raw)
	if err != nil {
		return hinted(
			fmt.Errorf("attesting %s: %w", dir, err),
			"relapse judge "+dir+" writes the verdict anew",
		)
	}
	return renameio.WriteFile(out, signed, 0o644)
}

// attested returns what was signed about a run, after comparing the run's files with it.
func attested(ctx context.Context, dir, key, file string) (attest.Predicate, error) {
	if file == "" {
		file = filepath.Join(dir, attest.File)
	}
	public, err := os.ReadFile(key)
	if err != nil {
		return attest.Predicate{}, err
	}
	envelope, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return attest.Predicate{}, fmt.Errorf(
			"there is no attestation %s: relapse attest makes one",
			file,
		)
	}
	if err != nil {
		return attest.Predicate{}, err
	}
	return attest.Verify(ctx, dir, envelope, public)
}

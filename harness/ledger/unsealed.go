package ledger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveUnsealed removes a run's trial directories without a manifest, because half-written evidence must not pass for
// a bundle.
func RemoveUnsealed(dir string) error {
	trials, err := filepath.Glob(filepath.Join(dir, "trials", "*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, t := range trials {
		if _, err := os.Stat(filepath.Join(t, "manifest.json")); errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, os.RemoveAll(t))
		}
	}
	return errors.Join(errs...)
}

// RemoveIfEmpty removes a run's directory if no trial in it is sealed. A run that was judged, because all its trials were
// lost, keeps its verdict, and what lost trials had seen stays, once it was fetched.
func RemoveIfEmpty(dir string) error {
	for _, kept := range []string{"trials/*/manifest.json", "verdict.json", "partial/*/partial.json"} {
		if found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(kept))); err != nil || len(found) > 0 {
			return err
		}
	}
	return os.RemoveAll(dir)
}

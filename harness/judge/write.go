package judge

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Write writes verdict.json to a run's directory, whole or not at all. Whoever writes reports, too, does so before: a
// run with a verdict.json is done.
func Write(dir string, v Verdict) error {
	j, err := v.JSON()
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(dir, VerdictFile), j, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", VerdictFile, err)
	}
	return nil
}

// Latest makes the link "latest" point at run, atomically. The link lies next to the directory of the run. Latest
// replaces nothing but a link.
func Latest(run string) error {
	link := filepath.Join(filepath.Dir(filepath.Clean(run)), "latest")
	if info, err := os.Lstat(link); err == nil && info.Mode()&os.ModeSymlink == 0 {
		return fmt.Errorf("linking %s: it exists and is no link", link)
	}
	if err := renameio.Symlink(filepath.Base(filepath.Clean(run)), link); err != nil {
		return fmt.Errorf("linking %s: %w", link, err)
	}
	return nil
}

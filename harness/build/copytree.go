package build

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kube-relapse/relapse/internal/sums"
)

// copyTree copies a module's files, and those that its links lead to. It leaves out what the build never reads: .git,
// _output, vendored packages and, in a published module, the remains of staging modules.
func copyTree(ctx context.Context, from, to string, published bool) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir() && (sums.LeftOut(rel) || published && rel == "staging"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		}
		if ok, err := sums.IsFile(p); err != nil || !ok {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, 0o644)
	})
}

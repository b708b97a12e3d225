package build

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
		case d.IsDir() && skipped(rel, published):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		}
		if ok, err := isFile(p); err != nil || !ok {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, 0o644)
	})
}

// isFile says whether a path is of a regular file or a link to one. Go compiles both.
func isFile(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) { // a link that leads nowhere
		return false, nil
	}
	return err == nil && info.Mode().IsRegular(), err
}

func skipped(rel string, published bool) bool {
	switch rel {
	case ".git", "_output", "vendor":
		return true
	case "staging":
		return published
	}
	return false
}

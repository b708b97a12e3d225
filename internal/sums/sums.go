// Package sums says by a SHA-256 what is in files and in folders of source. Whoever plans a run and whoever builds for it
// must mean the same files.
package sums

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File returns the SHA-256 of a file, in hex.
func File(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Tree returns the SHA-256 over the names and contents of the source in a folder: all files but those that LeftOut
// names.
func Tree(root string) (string, error) {
	return Files(root, func(path, rel string, d fs.DirEntry) (read bool, err error) {
		if d.IsDir() && LeftOut(rel) {
			return false, fs.SkipDir
		}
		return IsFile(path)
	})
}

// Files returns the SHA-256 over the names and contents of those files below root that read chooses.
func Files(
	root string,
	read func(path, rel string, d fs.DirEntry) (bool, error),
) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if ok, err := read(p, rel, d); err != nil || !ok {
			return err
		}
		sum, err := File(p)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %s\n", filepath.ToSlash(rel), sum)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("hashing the source in %s: %w", root, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// LeftOut reports whether a folder, named from the root of a module, has nothing that a build of the module reads: .git,
// _output and vendored packages.
func LeftOut(rel string) bool { return rel == ".git" || rel == "_output" || rel == "vendor" }

// IsFile says whether a path is of a regular file or a link to one. Go compiles both.
func IsFile(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) { // a link that leads nowhere
		return false, nil
	}
	return err == nil && info.Mode().IsRegular(), err
}

// Package embedded writes the scenarios and fixtures that the program carries to a folder, which then stands in for a
// checkout.
package embedded

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	relapse "github.com/kube-relapse/relapse"
)

// ChangedError says that a file of an unpacked tree is not as the program carries it.
type ChangedError struct {
	Root string // the folder of the tree
	File string // below Root
	Why  string // "was changed"
}

// Error names the file.
func (e *ChangedError) Error() string {
	return fmt.Sprintf(
		"%s %s since it was unpacked, so that it no longer is what this program carries",
		filepath.Join(e.Root, e.File),
		e.Why,
	)
}

// Unpack returns a folder that has the files which the program carries. The folder is in the first of dirs that can be
// written to; it is named by its content, and made only once. Files that are there are compared with the program's: a
// ChangedError names one that is missing, more or different.
func Unpack(dirs ...string) (string, error) {
	files, err := carried()
	if err != nil {
		return "", err
	}
	var errs []error
	for _, dir := range dirs {
		root := filepath.Join(dir, sum(files))
		err := write(root, files)
		if err == nil {
			return root, compare(root, files)
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("unpacking the scenarios: %w", errors.Join(errs...))
}

// carried returns the program's files by their paths in a checkout.
func carried() (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(relapse.Tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[name], err = relapse.Tree.ReadFile(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the scenarios in this program: %w", err)
	}
	return files, unpackModules(files[modulesFile], files)
}

// sum identifies files by their names and contents.
func sum(files map[string][]byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%q %d\n%s", name, len(files[name]), files[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// write makes the folder root with files, unless it is there. Another process may do the same at the same time.
func write(root string, files map[string][]byte) error {
	if _, err := os.Stat(root); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(root), 0o700); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(root), ".unpacking-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for name, text := range files {
		path := filepath.Join(tmp, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	if err := os.Rename(tmp, root); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// compare returns a ChangedError unless root has exactly these files.
func compare(root string, files map[string][]byte) error {
	found := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		want, ok := files[filepath.ToSlash(name)]
		if !ok {
			return &ChangedError{root, name, "was added"}
		}
		if !d.Type().IsRegular() {
			return &ChangedError{root, name, "was replaced"}
		}
		found++
		text, err := os.ReadFile(path)
		if err == nil && !bytes.Equal(text, want) {
			return &ChangedError{root, name, "was changed"}
		}
		return err
	})
	if err != nil || found == len(files) {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
			return &ChangedError{root, filepath.FromSlash(name), "was removed"}
		}
	}
	return nil
}

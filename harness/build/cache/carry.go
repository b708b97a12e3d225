package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Taken returns the entries that this store has given out: their kinds, keys and paths, sorted. Prune leaves them alone
// until Close.
func (s *Store) Taken() (out []Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range s.held {
		kind, key := filepath.Base(filepath.Dir(at)), filepath.Base(at)
		out = append(out, Entry{Kind: kind, Key: key, Path: s.entryPath(kind, key)})
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// Scratch returns an empty folder on the same file system as the entries. Only one process at a time has it; others wait.
// release removes it. Clean does that if the process was killed.
func (s *Store) Scratch(
	ctx context.Context,
	name string,
) (dir string, release func() error, err error) {
	const kind = "scratch"
	if err := valid(kind, name); err != nil {
		return "", nil, err
	}
	lock, err := s.newLock(kind, name)
	if err != nil {
		return "", nil, err
	}
	if ok, err := lock.TryLockContext(ctx, retry); err != nil || !ok {
		return "", nil, fmt.Errorf("waiting for the cache lock of %s/%s: %w", kind, name, err)
	}
	dir = s.scratchPath(kind, name)
	release = func() error { return errors.Join(os.RemoveAll(dir), lock.Unlock()) }
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return "", nil, errors.Join(err, release())
	}
	return dir, release, nil
}

// Adopt makes the files in dir the entry kind/key, and moves them for that. An entry with the same files stays as it is,
// and added is false. An entry with other files is replaced.
func (s *Store) Adopt(ctx context.Context, kind, key, dir string) (added bool, err error) {
	place := func(ctx context.Context, to string) error {
		list, err := os.ReadDir(dir)
		for _, f := range list {
			err = errors.Join(
				err,
				os.Rename(filepath.Join(dir, f.Name()), filepath.Join(to, f.Name())),
			)
		}
		return err
	}
	path, there, err := s.Do(ctx, kind, key, place)
	if err != nil || !there {
		return err == nil, err
	}
	if same, err := equal(path, dir); err != nil || same {
		return false, err
	}
	if err := s.Remove(kind, key); err != nil {
		return false, err
	}
	_, _, err = s.Do(ctx, kind, key, place)
	return true, err
}

// equal reports whether two folders have the same files.
func equal(a, b string) (bool, error) {
	in, err := contents(a)
	if err != nil {
		return false, err
	}
	of, err := contents(b)
	if err != nil || !slices.Equal(in, of) {
		return false, err
	}
	for _, name := range in {
		x, err := os.ReadFile(filepath.Join(a, name))
		if err != nil {
			return false, err
		}
		y, err := os.ReadFile(filepath.Join(b, name))
		if err != nil || !bytes.Equal(x, y) {
			return false, err
		}
	}
	return true, nil
}

// contents lists the files in a folder, in order.
func contents(dir string) (out []string, err error) {
	err = filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		out = append(out, rel)
		return err
	})
	return out, err
}

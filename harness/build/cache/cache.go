// Package cache is a content-addressed store on disk, shared by all runs of one user. It is safe when several run at
// once.
//
// An entry is a directory, found by its kind ("build", "nodeimage", …) and key (a hash of everything that went into
// it). It is made in a scratch directory and renamed into place when complete, so a visible entry is complete. A
// process that is killed leaves only a scratch directory, which Clean or the next maker of the same key removes.
//
// Locks are flock(2) locks on one small file for each key. The maker of an entry holds its lock exclusively. A user of
// an entry holds the lock shared until Close or the end of the process, which tells Prune what running processes still
// need. Lock files are never removed, because two processes could then hold locks on different inodes of the same name.
//
// Layout below the store's directory:
//
// entries/<kind>/<key>/   a complete entry
// scratch/<kind>/<key>/   an entry that is being made, or the remains of a killed maker
// locks/<kind>/<key>      the lock; its modification time is when the entry was last requested
// go-build/               Go's own cache (GOCACHE), with the packages that builds have compiled
// locks/go-build          held shared while a go command uses Go's cache
// times.jsonl             how long builds took on which host and what they left, which package build writes and no Prune removes
package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// EnvDir is the environment variable that names a store to use instead of the user's default.
const EnvDir = "RELAPSE_CACHE"

// NoteFile is a file that a maker may leave in its entry. It has one line for people, which List returns.
const NoteFile = "note"

// retry is the interval at which a lock is tried again. Waiting for flock(2) can't be cancelled by a context.
const retry = 50 * time.Millisecond

// name matches kinds and keys: one path element, never hidden.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Store is an opened cache directory. Its methods can be called from several goroutines.
type Store struct {
	dir string

	mu   sync.Mutex
	held map[string]*flock.Flock // shared locks on the entries that this process uses, by lock path
}

// DefaultDir returns $RELAPSE_CACHE, or `relapse` in the user's cache directory (os.UserCacheDir: XDG_CACHE_HOME on
// Linux).
func DefaultDir() (string, error) {
	if dir := os.Getenv(EnvDir); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("resolving %s=%s: %w", EnvDir, dir, err)
		}
		return abs, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache directory: %w", err)
	}
	return filepath.Join(dir, "relapse"), nil
}

// Open opens the store in dir and creates the directory if it doesn't exist. An empty dir means DefaultDir.
func Open(dir string) (*Store, error) {
	if dir == "" {
		var err error
		if dir, err = DefaultDir(); err != nil {
			return nil, err
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolving cache directory %s: %w", dir, err)
	}
	for _, sub := range []string{"entries", "scratch", "locks"} {
		if err := os.MkdirAll(filepath.Join(abs, sub), 0o755); err != nil {
			return nil, fmt.Errorf(
				"opening cache %s: %w; %s names another folder",
				abs,
				err,
				EnvDir,
			)
		}
	}
	return &Store{dir: abs, held: map[string]*flock.Flock{}}, nil
}

// Dir returns the store's absolute directory.
func (s *Store) Dir() string { return s.dir }

// Close releases every entry that the store gave out, so that other processes may prune them.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for path, l := range s.held {
		errs = append(errs, l.Unlock())
		delete(s.held, path)
	}
	return errors.Join(errs...)
}

// Do returns the directory of the entry kind/key, and calls build to make the entry if there is none. cached reports
// that it already existed.
//
// build fills dir, an empty directory on the same filesystem as the entry. No file in it may contain the name of dir,
// because dir is renamed when build returns nil. Only one process at a time builds a key; others wait, or return ctx's
// error. If build fails, dir is removed. Prune leaves the entry alone until Close.
func (s *Store) Do(ctx context.Context, kind, key string,
	build func(ctx context.Context, dir string) error) (path string, cached bool, err error) {
	if err := valid(kind, key); err != nil {
		return "", false, err
	}
	entry := s.entryPath(kind, key)
	cached = true
	for {
		ok, err := s.hold(ctx, kind, key)
		if err != nil {
			return "", false, err
		}
		if ok {
			return entry, cached, nil
		}
		made, err := s.make(ctx, kind, key, build)
		if err != nil {
			return "", false, err
		}
		if made {
			cached = false
		}
		// The exclusive lock was dropped in order to take a shared one. Another process may have pruned the entry in
		// between, so look again.
	}
}

// Has reports whether there is an entry. Another process may remove it at any time.
func (s *Store) Has(kind, key string) bool {
	if valid(kind, key) != nil {
		return false
	}
	_, err := os.Stat(s.entryPath(kind, key))
	return err == nil
}

// Find returns the directory of the entry kind/key. found is false if there is no such entry. Prune leaves the entry
// alone until Close.
func (s *Store) Find(ctx context.Context, kind, key string) (path string, found bool, err error) {
	if err := valid(kind, key); err != nil {
		return "", false, err
	}
	found, err = s.hold(ctx, kind, key)
	return s.entryPath(kind, key), found, err
}

// hold takes a shared lock on an entry and keeps it if the entry exists. It reports whether the entry exists.
func (s *Store) hold(ctx context.Context, kind, key string) (bool, error) {
	if s.holds(kind, key) {
		return true, nil
	}
	lock, err := s.newLock(kind, key)
	if err != nil {
		return false, err
	}
	if ok, err := lock.TryRLockContext(ctx, retry); err != nil || !ok {
		return false, fmt.Errorf("waiting for the cache lock of %s/%s: %w", kind, key, err)
	}
	if _, err := os.Stat(s.entryPath(kind, key)); err != nil {
		_ = lock.Unlock()
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, fmt.Errorf("looking up cache entry %s/%s: %w", kind, key, err)
	}
	s.touch(kind, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[lock.Path()] != nil { // another goroutine was faster; one lock is enough
		return true, lock.Unlock()
	}
	s.held[lock.Path()] = lock
	return true, nil
}

// holds reports whether this process already has a lock on an entry. If somebody removed the entry by hand, holds
// releases the lock, so that the entry can be made again.
func (s *Store) holds(kind, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	lock := s.held[s.lockPath(kind, key)]
	if lock == nil {
		return false
	}
	if _, err := os.Stat(s.entryPath(kind, key)); err != nil {
		_ = lock.Unlock()
		delete(s.held, lock.Path())
		return false
	}
	s.touch(kind, key)
	return true
}

// make builds an entry under the exclusive lock. It returns false if another process made the entry in the meantime.
func (s *Store) make(ctx context.Context, kind, key string,
	build func(ctx context.Context, dir string) error) (_ bool, err error) {
	lock, err := s.newLock(kind, key)
	if err != nil {
		return false, err
	}
	entry, scratch := s.entryPath(kind, key), s.scratchPath(kind, key)
	locked, err := lockUnlessMade(ctx, lock, entry)
	if err != nil {
		return false, fmt.Errorf("waiting for the cache lock of %s/%s: %w", kind, key, err)
	}
	if !locked {
		return false, nil
	}
	defer func() { err = Full(errors.Join(err, lock.Unlock()), s.dir) }()
	if _, err := os.Stat(entry); err == nil {
		return false, nil
	}
	if err := os.RemoveAll(scratch); err != nil {
		return false, fmt.Errorf(
			"removing what an earlier maker of %s/%s left: %w",
			kind,
			key,
			err,
		)
	}
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return false, fmt.Errorf("making room for cache entry %s/%s: %w", kind, key, err)
	}
	if err := build(ctx, scratch); err != nil {
		err = Full(err, s.dir, os.TempDir()) // before the scratch directory leaves room again
		return false, errors.Join(err, os.RemoveAll(scratch))
	}
	if err := ctx.Err(); err != nil {
		return false, errors.Join(
			fmt.Errorf("making cache entry %s/%s: %w", kind, key, err),
			os.RemoveAll(scratch),
		)
	}
	if err := os.MkdirAll(filepath.Dir(entry), 0o755); err != nil {
		return false, fmt.Errorf("making room for cache entry %s/%s: %w", kind, key, err)
	}
	if err := os.Rename(scratch, entry); err != nil {
		return false, fmt.Errorf("putting cache entry %s/%s into place: %w", kind, key, err)
	}
	return true, nil
}

// lockUnlessMade waits for the exclusive lock. It returns false as soon as the entry exists, because the entry's maker
// may keep a shared lock for hours.
func lockUnlessMade(ctx context.Context, lock *flock.Flock, entry string) (bool, error) {
	tick := time.NewTicker(retry)
	defer tick.Stop()
	for {
		if ok, err := lock.TryLock(); err != nil || ok {
			return ok, err
		}
		if _, err := os.Stat(entry); err == nil {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
	}
}

// newLock returns the lock of a key, not locked yet.
func (s *Store) newLock(kind, key string) (*flock.Flock, error) {
	path := s.lockPath(kind, key)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("making room for the cache lock of %s/%s: %w", kind, key, err)
	}
	return flock.New(path), nil
}

// touch records that an entry was requested now. A failure only makes the entry look older than it is.
func (s *Store) touch(kind, key string) {
	now := time.Now()
	_ = os.Chtimes(s.lockPath(kind, key), now, now)
}

func (s *Store) entryPath(kind, key string) string { return filepath.Join(s.dir, "entries", kind, key) }
func (s *Store) scratchPath(kind, key string) string {
	return filepath.Join(s.dir, "scratch", kind, key)
}
func (s *Store) lockPath(kind, key string) string { return filepath.Join(s.dir, "locks", kind, key) }

func valid(kind, key string) error {
	if !name.MatchString(kind) {
		return fmt.Errorf("cache kind %q is not one plain path element", kind)
	}
	if !name.MatchString(key) {
		return fmt.Errorf("cache key %q is not one plain path element", key)
	}
	return nil
}

package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

// goDir is the folder of Go's cache, and the name of its lock.
const goDir = "go-build"

// GoDir returns the folder for Go's own cache (GOCACHE), which has the compiled packages of all builds. Where it is a
// symbolic link, the cache that it leads to is somebody else's, and is neither measured nor pruned.
func (s *Store) GoDir() string { return filepath.Join(s.dir, goDir) }

// Compiling lets a go command use Go's cache until done is called. Several may use it at once; none begins while Prune
// removes files of it.
func (s *Store) Compiling(ctx context.Context) (done func(), err error) {
	lock := s.goLock()
	if ok, err := lock.TryRLockContext(ctx, retry); err != nil || !ok {
		return nil, fmt.Errorf("waiting for the lock of Go's cache %s: %w", s.GoDir(), err)
	}
	return func() { _ = lock.Unlock() }, nil
}

func (s *Store) goLock() *flock.Flock { return flock.New(filepath.Join(s.dir, "locks", goDir)) }

// GoCache describes Go's cache as an entry: how large it is, and when a file of it was last used.
func (s *Store) GoCache() (Entry, error) {
	e := Entry{Kind: goDir, Path: s.GoDir(), Note: "packages that Go has compiled"}
	files, err := s.goFiles()
	for _, f := range files {
		e.Bytes += f.bytes
	}
	if len(files) > 0 {
		e.LastUsed = files[len(files)-1].used
	}
	return e, err
}

// GoSince returns when the oldest file of Go's cache was used: of what was compiled before, nothing is left. It is now if
// there is no file, and the zero time if nobody knows, because the cache is somebody else's.
func (s *Store) GoSince() time.Time {
	if info, err := os.Lstat(s.GoDir()); err == nil && !info.IsDir() {
		return time.Time{}
	}
	files, err := s.goFiles()
	switch {
	case err != nil:
		return time.Time{}
	case len(files) == 0:
		return time.Now()
	}
	return files[0].used
}

// goFile is a file of Go's cache. Go sets its time when it uses the file, but at most once an hour.
type goFile struct {
	path  string
	bytes int64
	used  time.Time
}

// goFiles lists the files of Go's cache, least recently used first. They lie in folders with two hexadecimal digits for a
// name; what lies beside these is about the cache as a whole.
func (s *Store) goFiles() ([]goFile, error) {
	if info, err := os.Lstat(s.GoDir()); err != nil || !info.IsDir() {
		return nil, nil
	}
	var out []goFile
	paths, err := filepath.Glob(filepath.Join(s.GoDir(), "[0-9a-f][0-9a-f]", "*"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err == nil {
			f := goFile{path: path, used: info.ModTime()}
			if f.bytes, err = Size(path); err == nil {
				out = append(out, f)
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // Go itself removes what was not used for days
			return nil, fmt.Errorf("measuring Go's cache: %w", err)
		}
	}
	slices.SortFunc(
		out,
		func(a, b goFile) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path)) },
	)
	return out, nil
}

// pruneGo removes files of Go's cache. Go takes a file that isn't there for a package that it has to compile.
func (s *Store) pruneGo(o PruneOptions, p *Pruned) (err error) {
	if o.MaxSize > 0 && p.Left <= o.MaxSize {
		return nil
	}
	lock := s.goLock()
	ok, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("locking Go's cache %s: %w", s.GoDir(), err)
	}
	if p.Busy = !ok; p.Busy {
		return nil
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	files, err := s.goFiles()
	if err != nil {
		return err
	}
	for _, f := range files {
		if o.MaxSize > 0 && p.Left <= o.MaxSize || o.Unused > 0 && time.Since(f.used) < o.Unused {
			break
		}
		if !o.DryRun {
			if err := os.RemoveAll(f.path); err != nil {
				return fmt.Errorf("pruning Go's cache: %w", err)
			}
		}
		p.Go += f.bytes
		p.freed(f.bytes)
	}
	return nil
}

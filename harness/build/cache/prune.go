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
	"strings"
	"time"
)

// Entry describes one complete entry.
type Entry struct {
	Kind     string    `json:"kind"`
	Key      string    `json:"key"`
	Path     string    `json:"path"`
	Bytes    int64     `json:"bytes"` // that its files take up on disk
	LastUsed time.Time `json:"lastUsed"`
	Note     string    `json:"note,omitempty"` // first line of the entry's NoteFile
}

// List returns all complete entries, most recently used first.
func (s *Store) List() ([]Entry, error) {
	dirs, err := s.keys("entries")
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, k := range dirs {
		e := Entry{Kind: k[0], Key: k[1], Path: s.entryPath(k[0], k[1])}
		if e.Bytes, err = Size(e.Path); errors.Is(err, fs.ErrNotExist) {
			continue // pruned in the meantime
		} else if err != nil {
			return nil, fmt.Errorf("measuring cache entry %s/%s: %w", e.Kind, e.Key, err)
		}
		if fi, err := os.Stat(s.lockPath(e.Kind, e.Key)); err == nil {
			e.LastUsed = fi.ModTime()
		}
		if b, err := os.ReadFile(filepath.Join(e.Path, NoteFile)); err == nil {
			e.Note, _, _ = strings.Cut(strings.TrimSpace(string(b)), "\n")
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(
			b.LastUsed.Compare(a.LastUsed),
			cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Key, b.Key),
		)
	})
	return out, nil
}

// PruneOptions chooses what Prune removes: what all of its fields allow. The zero value allows everything.
type PruneOptions struct {
	Only    func(kind, key string) bool // only these entries, and nothing of Go's cache; nil means all
	Unused  time.Duration               // only what was not used for this long
	MaxSize int64                       // only until the store's folder takes up at most this many bytes; 0 means no such end
	DryRun  bool                        // remove nothing, only report what would be freed
}

// Pruned is what Prune removed.
type Pruned struct {
	Entries []Entry // least recently used first
	Go      int64   // bytes of Go's cache
	Freed   int64   // bytes of all together
	Left    int64   // bytes that the store's folder still takes up
	Busy    bool    // Go's cache was left alone, because a running process compiles
}

// Prune removes what the options allow and nobody needs: first files of Go's cache, then entries, both least recently
// used first. It leaves entries that are being made or that a running process uses, and all of Go's cache while a
// process compiles: what a compiler has put there, the linker is about to read.
func (s *Store) Prune(o PruneOptions) (p Pruned, err error) {
	if p.Left, err = s.Used(); err != nil {
		return p, err
	}
	if o.Only == nil {
		if err := s.pruneGo(o, &p); err != nil {
			return p, err
		}
	}
	if p.Busy && o.MaxSize > 0 { // whoever compiles may make room of what it leaves
		return p, nil
	}
	all, err := s.List()
	if err != nil {
		return p, err
	}
	for _, e := range slices.Backward(all) {
		switch {
		case o.MaxSize > 0 && p.Left <= o.MaxSize:
			return p, nil
		case o.Only != nil && !o.Only(e.Kind, e.Key), o.Unused > 0 && time.Since(e.LastUsed) < o.Unused:
			continue
		}
		ok, err := s.exclusively(e.Kind, e.Key, func() error {
			if o.DryRun {
				return nil
			}
			return s.removeEntry(e.Kind, e.Key)
		})
		if err != nil {
			return p, fmt.Errorf("pruning cache entry %s/%s: %w", e.Kind, e.Key, err)
		}
		if ok {
			p.Entries = append(p.Entries, e)
			p.freed(e.Bytes)
		}
	}
	return p, nil
}

func (p *Pruned) freed(bytes int64) {
	p.Freed += bytes
	p.Left -= bytes
}

// Remove removes one entry, after this store has released it. It fails if another process uses the entry, and does
// nothing if there is no such entry.
func (s *Store) Remove(kind, key string) error {
	if err := valid(kind, key); err != nil {
		return err
	}
	s.mu.Lock()
	path := s.lockPath(kind, key)
	if l := s.held[path]; l != nil {
		_ = l.Unlock()
		delete(s.held, path)
	}
	s.mu.Unlock()
	ok, err := s.exclusively(kind, key, func() error { return s.removeEntry(kind, key) })
	if err != nil {
		return fmt.Errorf("removing cache entry %s/%s: %w", kind, key, err)
	}
	if !ok {
		return fmt.Errorf("removing cache entry %s/%s: another process uses it", kind, key)
	}
	return nil
}

// Clean removes scratch directories that killed makers left, and returns their paths. It keeps a directory whose maker
// still runs.
func (s *Store) Clean(ctx context.Context) ([]string, error) {
	dirs, err := s.keys("scratch")
	if err != nil {
		return nil, err
	}
	var removed []string
	for _, k := range dirs {
		if err := ctx.Err(); err != nil {
			return removed, fmt.Errorf("cleaning cache %s: %w", s.dir, err)
		}
		path := s.scratchPath(k[0], k[1])
		ok, err := s.exclusively(k[0], k[1], func() error { return os.RemoveAll(path) })
		if err != nil {
			return removed, fmt.Errorf("removing scratch directory %s: %w", path, err)
		}
		if ok {
			removed = append(removed, path)
		}
	}
	return removed, nil
}

// removeEntry renames an entry before deleting it, so that no half-deleted entry remains if the process is killed.
func (s *Store) removeEntry(kind, key string) error {
	scratch := s.scratchPath(kind, key)
	if err := os.RemoveAll(scratch); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(scratch), 0o755); err != nil {
		return err
	}
	if err := os.Rename(s.entryPath(kind, key), scratch); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(scratch)
}

// exclusively calls f under the key's exclusive lock. It returns false at once if anyone else holds the lock.
func (s *Store) exclusively(kind, key string, f func() error) (bool, error) {
	lock, err := s.newLock(kind, key)
	if err != nil {
		return false, err
	}
	// Taking a lock opens its file for reading only, which leaves the time of last use unchanged.
	ok, err := lock.TryLock()
	if err != nil || !ok {
		return false, err
	}
	return true, errors.Join(f(), lock.Unlock())
}

// keys lists the kind and key of every directory two levels below sub.
func (s *Store) keys(sub string) ([][2]string, error) {
	root := filepath.Join(s.dir, sub)
	kinds, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("listing cache %s: %w", root, err)
	}
	var out [][2]string
	for _, k := range kinds {
		keys, err := os.ReadDir(filepath.Join(root, k.Name()))
		if err != nil {
			return nil, fmt.Errorf("listing cache %s: %w", filepath.Join(root, k.Name()), err)
		}
		for _, key := range keys {
			if valid(k.Name(), key.Name()) == nil {
				out = append(out, [2]string{k.Name(), key.Name()})
			}
		}
	}
	return out, nil
}

package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/build/cache"
)

// make returns the directory of a cache entry that compile fills with what it builds. Before it builds and afterwards,
// it makes the cache as small as it may be: Go's cache is what grows with each build.
func (b *Builder) make(ctx context.Context, kind, key string,
	compile func(ctx context.Context, dir string) error) (dir string, cached bool, err error) {
	dir, cached, err = b.Cache.Do(ctx, kind, key, func(ctx context.Context, dir string) error {
		b.bound(ctx)
		return compile(ctx, dir)
	})
	if err == nil && !cached {
		b.bound(ctx)
	}
	return dir, cached, err
}

// bound removes what the cache has above MaxDisk. A build stands without that, so a failure is only reported.
func (b *Builder) bound(ctx context.Context) {
	if b.MaxDisk == 0 {
		return
	}
	_, err := b.Cache.Clean(ctx) // what killed builds left goes before what others may use
	var p cache.Pruned
	if err == nil {
		p, err = b.Cache.Prune(cache.PruneOptions{MaxSize: b.MaxDisk})
	}
	switch {
	case err != nil:
		b.report("the cache may be larger than %s: %v", cache.FormatSize(b.MaxDisk), err)
	case p.Freed > 0:
		b.report(
			"the cache was larger than %s: removed %s of Go's cache and %d builds that were not used for longest",
			cache.FormatSize(b.MaxDisk),
			cache.FormatSize(p.Go),
			len(p.Entries),
		)
	}
	if err == nil && p.Left > b.MaxDisk && !p.Busy {
		b.report(
			"the cache takes up %s, more than %s: runs need what is left of it",
			cache.FormatSize(p.Left),
			cache.FormatSize(b.MaxDisk),
		)
	}
}

// start is when a build began, what the cache had then, and where its go command puts temporary files: on the cache's
// disk, so that only that one can fill up.
type start struct {
	at    time.Time
	used  int64     // bytes on disk; 0 if that isn't known
	since time.Time // what was compiled before isn't in Go's cache any more
	temp  string
	peak  int64 // the most bytes that were seen in temp
}

// begin begins a build that fills a directory.
func (b *Builder) begin(dir string) *start {
	used, _ := b.Cache.Used() // without it, what the build needs stays unknown
	return &start{
		at:    time.Now(),
		used:  used,
		since: b.Cache.GoSince(),
		temp:  filepath.Join(dir, "tmp"),
	}
}

// watch makes the folder for temporary files and looks at its size now and then, until stop removes it.
func (s *start) watch() (stop func(), err error) {
	if err := os.MkdirAll(s.temp, 0o755); err != nil {
		return nil, fmt.Errorf("making room for temporary files: %w", err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if n, err := cache.Size(s.temp); err == nil {
					s.peak = max(s.peak, n)
				}
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
		_ = os.RemoveAll(s.temp) // whoever makes the entry removes it again
	}, nil
}

// needed returns how much disk the build needed until now, 0 if that isn't known.
func (s *start) needed(store *cache.Store) int64 {
	used, err := store.Used()
	if err != nil || s.used == 0 || used < s.used {
		return 0
	}
	return used - s.used + s.peak
}

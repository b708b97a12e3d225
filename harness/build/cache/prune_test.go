package cache_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/build/cache"
)

// furnish makes files of Go's cache and entries that were used so many hours ago, of one MiB each, and returns their store.
func furnish(t *testing.T, dir string, compiled, entries map[string]int) *cache.Store {
	t.Helper()
	s := open(t, dir)
	mib := strings.Repeat("x", 1<<20)
	ago := func(path string, hours int) {
		t.Helper()
		at := time.Now().Add(-time.Duration(hours) * time.Hour)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for name, hours := range compiled {
		path := filepath.Join(s.GoDir(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(mib), 0o644); err != nil {
			t.Fatal(err)
		}
		ago(path, hours)
	}
	for key, hours := range entries {
		mustDo(t, s, "build", key, func(_ context.Context, dir string) error {
			return os.WriteFile(filepath.Join(dir, "out"), []byte(mib), 0o644)
		}, false)
		ago(filepath.Join(dir, "locks", "build", key), hours)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

// left returns what there is of Go's cache and of entries.
func left(t *testing.T, s *cache.Store) (out []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.GoDir(), "??", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		out = append(out, filepath.Base(f))
	}
	entries, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Key)
	}
	slices.Sort(out)
	return out
}

// Go's cache goes before programs, and of both what was not used for longest. All filters have to allow it.
func TestPruneGoesByUse(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		o    cache.PruneOptions
		left string
	}{
		{"everything", cache.PruneOptions{}, ""},
		{"room enough", cache.PruneOptions{MaxSize: 20 * mib}, "k1 k2 k3 new-d old-a old-d"},
		{"some of Go's cache", cache.PruneOptions{MaxSize: 5 * mib}, "k1 k2 k3 new-d old-d"},
		{"all of it, and an entry", cache.PruneOptions{MaxSize: 2*mib + mib/2}, "k2 k3"},
		{"what is old", cache.PruneOptions{Unused: 25 * time.Hour}, "k3 new-d"},
		{"what is old, until it is small enough", cache.PruneOptions{Unused: 25 * time.Hour, MaxSize: 4 * mib}, "k1 k2 k3 new-d"},
		{"what is large, if it is old", cache.PruneOptions{Unused: 45 * time.Hour, MaxSize: 1}, "k2 k3 new-d old-d"},
		{"some entries", cache.PruneOptions{Only: func(_, key string) bool { return key != "k1" }}, "k1 new-d old-a old-d"},
		{"some entries, if they are old", cache.PruneOptions{Unused: 25 * time.Hour, Only: func(_, key string) bool { return key != "k1" }},
			"k1 k3 new-d old-a old-d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := furnish(t, t.TempDir(), map[string]int{"0a/old-a": 50, "ff/old-d": 40, "ff/new-d": 2}, map[string]int{"k1": 60, "k2": 30, "k3": 1})
			before, err := s.Used()
			if err != nil {
				t.Fatal(err)
			}
			c.o.DryRun = true
			foreseen, err := s.Prune(c.o)
			if err != nil || len(left(t, s)) != 6 {
				t.Fatalf("a dry run left %q (%v)", left(t, s), err)
			}
			c.o.DryRun = false
			p, err := s.Prune(c.o)
			if got := strings.Join(left(t, s), " "); err != nil || got != c.left {
				t.Errorf("left %q (%v), want %q", got, err, c.left)
			}
			used, err := s.Used()
			if err != nil || used != p.Left || before-used != p.Freed {
				t.Errorf("it says %+v of %d bytes, and %d are left (%v)", p, before, used, err)
			}
			if foreseen.Freed != p.Freed || foreseen.Go != p.Go || len(foreseen.Entries) != len(p.Entries) {
				t.Errorf("it foresaw %+v, and did %+v", foreseen, p)
			}
		})
	}
}

// What a compiler has put into Go's cache, its linker reads a moment later: nothing of it goes while a process compiles,
// and no process begins to while it goes. What is only to become small enough waits for that process's own pruning.
func TestPruneWhileAProcessCompiles(t *testing.T) {
	dir := t.TempDir()
	s := furnish(t, dir, map[string]int{"0a/old-a": 50}, map[string]int{"k1": 60})
	done, err := open(t, dir).Compiling(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	also, err := s.Compiling(t.Context())
	if err != nil {
		t.Fatalf("a second process can't compile: %v", err)
	}
	also()
	p, err := s.Prune(cache.PruneOptions{MaxSize: 1})
	if err != nil || !p.Busy || len(left(t, s)) != 2 {
		t.Errorf("it pruned %+v (%v) and left %q, want nothing pruned", p, err, left(t, s))
	}
	p, err = s.Prune(cache.PruneOptions{})
	if got := left(t, s); err != nil || !p.Busy || !slices.Equal(got, []string{"old-a"}) {
		t.Errorf("it pruned %+v (%v) and left %q, want Go's cache left", p, err, got)
	}
	done()
	p, err = s.Prune(cache.PruneOptions{MaxSize: 1})
	if err != nil || p.Busy || len(left(t, s)) != 0 {
		t.Errorf("it pruned %+v (%v) and left %q, want nothing left", p, err, left(t, s))
	}
}

// Where the folder of Go's cache is a link, the cache is somebody else's.
func TestAGoCacheOfSomebodyElsesStays(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	if err := os.Symlink(other, filepath.Join(dir, "go-build")); err != nil {
		t.Fatal(err)
	}
	s := furnish(t, dir, map[string]int{"0a/old-a": 50}, nil)
	p, err := s.Prune(cache.PruneOptions{})
	if got := left(t, s); err != nil || p.Freed != 0 || !slices.Equal(got, []string{"old-a"}) {
		t.Errorf("it pruned %+v (%v) and left %q", p, err, got)
	}
	if e, err := s.GoCache(); err != nil || e.Bytes != 0 || !s.GoSince().IsZero() {
		t.Errorf("it says %+v (%v), used since %s", e, err, s.GoSince())
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"15GiB": 15 << 30, "15Gi": 15 << 30, "1.5GiB": 3 << 29, "500MB": 500e6, "1Mi": 1 << 20} {
		if got, err := cache.ParseSize(text); err != nil || got != want {
			t.Errorf("%s is %d (%v), want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":      "it is no size (want one such as 15GiB or 500MiB)",
		"much":  "it is no size (want one such as 15GiB or 500MiB)",
		"15GBB": "it is no size (want one such as 15GiB or 500MiB)",
		"15":    "it is less than 1 MiB (want a size with its unit, such as 15GiB or 500MiB)",
		"-1GiB": "it is less than 1 MiB (want a size with its unit, such as 15GiB or 500MiB)",
		"15m":   "it is less than 1 MiB (want a size with its unit, such as 15GiB or 500MiB)",
	} {
		if n, err := cache.ParseSize(text); err == nil || err.Error() != want {
			t.Errorf("%q is %d (%v), want %s", text, n, err, want)
		}
	}
	for n, want := range map[int64]string{0: "0 MiB", 1: "1 MiB", 300 << 20: "300 MiB", 1 << 30: "1.0 GiB", 1717986918: "1.6 GiB"} {
		if got := cache.FormatSize(n); got != want {
			t.Errorf("%d bytes are %s, want %s", n, got, want)
		}
	}
	t.Setenv(cache.EnvMaxDisk, "")
	if n, err := cache.MaxDisk(); err != nil || n != 20<<30 {
		t.Errorf("by default %d (%v)", n, err)
	}
	t.Setenv(cache.EnvMaxDisk, "much")
	if _, err := cache.MaxDisk(); err == nil || err.Error() != `RELAPSE_MAX_DISK is "much": it is no size (want one such as 15GiB or 500MiB)` {
		t.Errorf("a variable that is no size: %v", err)
	}
}

package build_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
)

// Once a build is done the cache is as small as it may be. What Go has compiled goes, and the program stays.
func TestBuildsLeaveABoundedCache(t *testing.T) {
	root := layDown(t, map[string]string{
		"fixtures/one/go.mod": "module example.org/one\n\ngo 1.24\n", "fixtures/one/main.go": "package main\n\nfunc main() {}\n",
		"fixtures/two/go.mod": "module example.org/two\n\ngo 1.24\n", "fixtures/two/main.go": "package main\n\nfunc main() {}\n",
		// Go's own compiler takes long. This one leaves 4 MiB for a program of 2 MiB.
		"go": `#!/bin/sh
[ "$1" = build ] || exec go "$@"
mkdir -p "$GOCACHE/0a"
head -c 4194304 /dev/zero >"$GOCACHE/0a/$(basename "$PWD")-d"
while [ "$1" != -o ]; do shift; done
head -c 2097152 /dev/zero >"$2"
`})
	if err := os.Chmod(filepath.Join(root, "go"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	var said []string
	b := &build.Builder{Cache: s, Go: filepath.Join(root, "go"), Progress: func(l string) { said = append(said, l) }}
	for _, c := range []struct {
		fixture string
		max     int64
		want    string
	}{
		{"one", 8 << 20, ""},
		{"two", 9 << 20, " of Go's cache and 0 builds that were not used for longest"},
	} {
		b.MaxDisk = c.max
		if _, err := b.Fixture(t.Context(), root, c.fixture); err != nil {
			t.Fatal(err)
		}
		used, err := s.Used()
		if err != nil || used > c.max {
			t.Errorf("with %s the cache takes up %d bytes (%v), want at most %d", c.fixture, used, err, c.max)
		}
		if e, err := s.GoCache(); err != nil || e.Bytes < 4<<20 { // beside it there is what go list leaves
			t.Errorf("with %s, %d bytes of Go's cache are left (%v), want what was compiled last", c.fixture, e.Bytes, err)
		}
		if all := strings.Join(said, "\n"); !strings.Contains(all, c.want) || c.want == "" && strings.Contains(all, "larger") {
			t.Errorf("with %s it said %q, want %q", c.fixture, said, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(s.GoDir(), "0a", "two-d")); err != nil {
		t.Error("the newest file of Go's cache went first:", err)
	}

	if err := os.WriteFile(filepath.Join(root, "fixtures/two/main.go"), []byte("package main\n\nfunc main() { }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.MaxDisk = 1 << 20
	if _, err := b.Fixture(t.Context(), root, "two"); err != nil {
		t.Fatal(err)
	}
	if want := "the cache takes up 7 MiB, more than 1 MiB: runs need what is left of it"; !strings.Contains(strings.Join(said, "\n"), want) {
		t.Errorf("where programs that are in use take up more it said %q, want %q", said, want)
	}
	if err := s.Close(); err != nil { // the run is over
		t.Fatal(err)
	}
	if p, err := s.Prune(cache.PruneOptions{MaxSize: 3 << 20}); err != nil || len(p.Entries) != 2 || p.Left > 3<<20 {
		t.Errorf("afterwards it pruned %+v (%v), want the two oldest programs gone", p, err)
	}
}

// What builds need is what one like them needed on this host, a rough figure, or unknown. What can't fit is refused.
func TestRoomForBuilds(t *testing.T) {
	kept := t.TempDir()
	b := newBuilder(t, kept)
	foresee := func(all ...build.Source) *build.Forecast { return foreseen(t, b, all...) }
	const kubernetes = "k8s.io/kubernetes"
	scheduler := build.Source{Module: kubernetes, Version: "v1.34.4", Packages: []string{kubernetes + "/cmd/kube-scheduler"}}
	debug := scheduler
	debug.Unoptimized = []string{kubernetes + "/pkg/scheduler"}
	unknown := build.Source{Module: "example.org/tiny", Version: "v1.2.3", Packages: []string{"example.org/tiny/cmd/other"}}

	if said, err := foresee().Fit(1); said != "" || err != nil {
		t.Errorf("where nothing is missing it says %q (%v)", said, err)
	}
	if r := foresee(unknown).Room(); r.Bytes != 0 || r.String() != "how much disk building needs is unknown" {
		t.Errorf("of a module that was never built: %+v, %s", r, r)
	}
	f := foresee(scheduler, debug)
	f.Other("the node image of v1.34.4", "it isn't in the container engine")
	r := f.Room()
	if want := "building needs about 5.0 GiB of disk, by a rough figure, and more for the node image of v1.34.4, of which that is unknown"; r.String() != want || r.Largest.Bytes != 4<<30 {
		t.Errorf("without a record: %s, want %s", r, want)
	}
	wantRefused(t, f, 3<<30, true, "building k8s.io/kubernetes@v1.34.4 (kube-scheduler) needs about 4.0 GiB of disk, and the cache may take up 3.0 GiB")

	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	record := func(bytes int64) {
		t.Helper()
		line := fmt.Sprintf(`{"at":"2000-01-01T00:00:00Z","host":%q,"programs":"example.org/tiny@any (other)","tree":"x","fresh":true,"seconds":3,"bytes":%d}`+"\n", host, bytes)
		if err := os.WriteFile(filepath.Join(kept, "times.jsonl"), []byte(line), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	record(5 << 20)
	said, err := foresee(unknown).Fit(20 << 30)
	if want := "building needs about 5 MiB of disk; the disk of " + kept + " has "; err != nil || !strings.HasPrefix(said, want) ||
		!strings.HasSuffix(said, " free, and the cache keeps at most 20.0 GiB") {
		t.Errorf("of what was built before it says %q (%v), want %q", said, err, want)
	}
	record(1 << 55)
	wantRefused(t, foresee(unknown), 1<<60, false, "building needs about 33554432.0 GiB of disk, and the disk of "+kept+" has ")
}

func wantRefused(t *testing.T, f *build.Forecast, max int64, bound bool, want string) {
	t.Helper()
	_, err := f.Fit(max)
	var refused *build.RoomError
	if !errors.As(err, &refused) || refused.Bound != bound || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

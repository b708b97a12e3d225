package cache_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/build/cache"
)

// TestMain lets the test binary stand in for another run: with RELAPSE_TEST_MAKER it opens the store and makes an entry
// for ever, or holds one that is there, until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("RELAPSE_TEST_MAKER"); dir != "" {
		maker(dir)
	}
	os.Exit(m.Run())
}

func maker(dir string) {
	s, err := cache.Open(dir)
	if err != nil {
		panic(err)
	}
	path, _, err := s.Do(context.Background(), "build", "k1", func(_ context.Context, dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "half"), nil, 0o644); err != nil {
			return err
		}
		fmt.Println("making")
		wait()
		return nil
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("holding", path)
	wait()
	os.Exit(1)
}

// wait blocks until the test kills this process. An empty select would be a deadlock that the runtime ends at once.
func wait() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	<-c
}

// startMaker starts such a run and returns once it said what it does.
func startMaker(t *testing.T, dir, says string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RELAPSE_TEST_MAKER="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	kill = func() { once.Do(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) }
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, says) {
		t.Fatalf("the other run said %q (%v), want %q", line, err, says)
	}
	return kill
}

// block is what a file takes up at the least.
const block = 4 << 10

func open(t *testing.T, dir string) *cache.Store {
	t.Helper()
	s, err := cache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func write(text string) func(context.Context, string) error {
	return func(_ context.Context, dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "out"), []byte(text), 0o644),
			os.WriteFile(filepath.Join(dir, cache.NoteFile), []byte("a note\nmore\n"), 0o644))
	}
}

func never(context.Context, string) error { return errors.New("built what was there already") }

func mustDo(t *testing.T, s *cache.Store, kind, key string, build func(context.Context, string) error, wantCached bool) string {
	t.Helper()
	path, cached, err := s.Do(t.Context(), kind, key, build)
	if err != nil {
		t.Fatal(err)
	}
	if cached != wantCached {
		t.Errorf("%s/%s: cached %v, want %v", kind, key, cached, wantCached)
	}
	return path
}

func wantContent(t *testing.T, path, want string) {
	t.Helper()
	if b, err := os.ReadFile(filepath.Join(path, "out")); err != nil || string(b) != want {
		t.Errorf("entry has %q (%v), want %q", b, err, want)
	}
}

func TestDoMakesOnce(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	path := mustDo(t, first, "build", "k1", write("one"), false)
	wantContent(t, path, "one")
	mustDo(t, first, "build", "k1", never, true)
	mustDo(t, open(t, dir), "build", "k1", never, true)
	mustDo(t, first, "image", "k1", write("other kind"), false)
}

func TestDoWithSeveralMakersBuildsOnce(t *testing.T) {
	dir := t.TempDir()
	var built atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		s := open(t, dir)
		wg.Go(func() {
			path, _, err := s.Do(t.Context(), "build", "k1", func(ctx context.Context, dir string) error {
				built.Add(1)
				return write("one")(ctx, dir)
			})
			if err != nil {
				t.Error(err)
				return
			}
			wantContent(t, path, "one")
		})
	}
	wg.Wait()
	if n := built.Load(); n != 1 {
		t.Errorf("built %d times, want once", n)
	}
}

// TestDoWhileTheMakerStillUsesIt has a second store ask for an entry that a first one is making and then goes on using:
// it must not wait for the first one's Close.
func TestDoWhileTheMakerStillUsesIt(t *testing.T) {
	dir := t.TempDir()
	first, second := open(t, dir), open(t, dir)
	making, go1 := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _, err := first.Do(t.Context(), "build", "k1", func(ctx context.Context, dir string) error {
			close(making)
			<-go1
			return write("one")(ctx, dir)
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-making
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, cached, err := second.Do(ctx, "build", "k1", never); err != nil || !cached {
			t.Errorf("the second store: cached %v, %v; want what the first one made", cached, err)
		}
	})
	close(go1)
	wg.Wait()
}

func TestFailedMakeLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	broken := errors.New("the compiler said no")
	if _, _, err := s.Do(t.Context(), "build", "k1", func(ctx context.Context, dir string) error {
		return errors.Join(write("half")(ctx, dir), broken)
	}); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Errorf("entries %v (%v), want none", list, err)
	}
	if left, err := s.Clean(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("left %v (%v), want nothing", left, err)
	}
	mustDo(t, s, "build", "k1", write("whole"), false)
}

func TestWaitingForAnotherMakerEndsWithTheContext(t *testing.T) {
	dir := t.TempDir()
	startMaker(t, dir, "making")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, _, err := open(t, dir).Do(ctx, "build", "k1", never)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "waiting for the cache lock of build/k1") {
		t.Errorf("error %v, want a deadline while waiting for the lock of build/k1", err)
	}
}

// A maker that is killed leaves a scratch directory, which Clean keeps while the maker lives and removes afterwards.
func TestKilledMaker(t *testing.T) {
	dir := t.TempDir()
	kill := startMaker(t, dir, "making")
	s := open(t, dir)
	if removed, err := s.Clean(t.Context()); err != nil || len(removed) != 0 {
		t.Errorf("cleaned %v (%v) under a living maker", removed, err)
	}
	kill()
	want := filepath.Join(dir, "scratch", "build", "k1")
	if _, err := os.Stat(filepath.Join(want, "half")); err != nil {
		t.Fatalf("the killed maker left nothing: %v", err)
	}
	if removed, err := s.Clean(t.Context()); err != nil || len(removed) != 1 || removed[0] != want {
		t.Errorf("cleaned %v (%v), want %s", removed, err, want)
	}
	if _, err := os.Stat(want); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("scratch is still there: %v", err)
	}
}

func TestMakingAgainAfterAKill(t *testing.T) {
	dir := t.TempDir()
	startMaker(t, dir, "making")()
	path := mustDo(t, open(t, dir), "build", "k1", write("whole"), false)
	wantContent(t, path, "whole")
	if _, err := os.Stat(filepath.Join(path, "half")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the killed maker's file got into the entry: %v", err)
	}
}

func TestPruneKeepsWhatARunHolds(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	mustDo(t, s, "build", "k1", write("held elsewhere"), false)
	mustDo(t, s, "build", "k2", write("held here"), false)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	kill := startMaker(t, dir, "holding")
	mustDo(t, s, "build", "k2", never, true)

	if p, err := open(t, dir).Prune(cache.PruneOptions{}); err != nil || len(p.Entries) != 0 || p.Freed != 0 {
		t.Errorf("pruned %+v (%v), want nothing", p, err)
	}
	if err := open(t, dir).Remove("build", "k1"); err == nil || !strings.Contains(err.Error(), "removing cache entry build/k1: another process uses it") {
		t.Errorf("removing a held entry: %v", err)
	}
	kill()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := open(t, dir).Prune(cache.PruneOptions{})
	if err != nil || len(p.Entries) != 2 || p.Freed != 4*block {
		t.Errorf("pruned %+v (%v), want both entries with two small files each", p, err)
	}
}

func TestPruneChooses(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, k := range []string{"old", "new"} {
		mustDo(t, s, "build", k, write(k), false)
	}
	mustDo(t, s, "image", "old", write("old"), false)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-48 * time.Hour)
	for _, k := range []string{"build/old", "image/old"} {
		if err := os.Chtimes(filepath.Join(dir, "locks", k), long, long); err != nil {
			t.Fatal(err)
		}
	}
	opts := cache.PruneOptions{Only: func(kind, _ string) bool { return kind == "build" }, Unused: 24 * time.Hour}
	for _, opts.DryRun = range []bool{true, false} {
		p, err := s.Prune(opts)
		if err != nil || len(p.Entries) != 1 || p.Entries[0].Kind != "build" || p.Entries[0].Key != "old" {
			t.Fatalf("dry run %v: pruned %+v (%v), want build/old", opts.DryRun, p, err)
		}
	}
	list, err := s.List()
	if err != nil || len(list) != 2 || list[0].Key != "new" || list[1].Kind != "image" {
		t.Fatalf("left %v (%v), want build/new before image/old", list, err)
	}
	if list[0].Note != "a note" || list[0].Bytes != 2*block {
		t.Errorf("entry %+v, want its note's first line and its size", list[0])
	}
}

func TestNamesAreChecked(t *testing.T) {
	s := open(t, t.TempDir())
	for _, bad := range []string{"", "../x", "a/b", ".hidden"} {
		if _, _, err := s.Do(t.Context(), "build", bad, never); err == nil || !strings.Contains(err.Error(), "is not one plain path element") {
			t.Errorf("key %q: error %v", bad, err)
		}
	}
}

func TestEntryRemovedByHandIsMadeAgain(t *testing.T) {
	s := open(t, t.TempDir())
	path := mustDo(t, s, "build", "k1", write("one"), false)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	wantContent(t, mustDo(t, s, "build", "k1", write("two"), false), "two")
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/xdg")
	t.Setenv(cache.EnvDir, "")
	if dir, err := cache.DefaultDir(); err != nil || dir != "/xdg/relapse" {
		t.Errorf("default %q (%v), want /xdg/relapse", dir, err)
	}
	t.Setenv(cache.EnvDir, "/elsewhere")
	if dir, err := cache.DefaultDir(); err != nil || dir != "/elsewhere" {
		t.Errorf("overridden %q (%v), want /elsewhere", dir, err)
	}
}

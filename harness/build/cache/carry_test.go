package cache_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/build/cache"
)

// put writes a file and its folders.
func put(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestAdopt(t *testing.T) {
	s, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	scratch, release, err := s.Scratch(t.Context(), "import")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		added      bool
	}{{"new", "one", true}, {"the same", "one", false}, {"another", "two", true}} {
		from := filepath.Join(scratch, c.name)
		put(t, filepath.Join(from, "bin/agent"), c.text)
		if added, err := s.Adopt(t.Context(), "build", "k", from); err != nil || added != c.added {
			t.Errorf("%s: added %t, %v; want %t", c.name, added, err, c.added)
		}
		path, found, err := s.Find(t.Context(), "build", "k")
		if text, rerr := os.ReadFile(filepath.Join(path, "bin/agent")); err != nil || rerr != nil || !found || string(text) != c.text {
			t.Errorf("%s: the entry has %q, %v, %v", c.name, text, err, rerr)
		}
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(scratch); err == nil {
		t.Error("the scratch folder is there after its release")
	}
	used := s.Taken()
	if len(used) != 1 || used[0].Kind != "build" || used[0].Key != "k" {
		t.Errorf("used is %+v", used)
	}
	if _, err := os.Stat(filepath.Join(used[0].Path, "bin/agent")); err != nil {
		t.Error(err)
	}
}

// Only one has a scratch folder, Clean leaves it alone meanwhile, and removes what a killed one left.
func TestScratch(t *testing.T) {
	dir := t.TempDir()
	s, err := cache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at, release, err := s.Scratch(t.Context(), "import")
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(at, "half"), "")
	if removed, err := s.Clean(t.Context()); err != nil || len(removed) > 0 {
		t.Errorf("Clean removed %v, %v", removed, err)
	}
	other, err := cache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, _, err := other.Scratch(ctx, "import"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("two have it: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(at, "half"), "") // as if that one had been killed
	if removed, err := s.Clean(t.Context()); err != nil || len(removed) != 1 {
		t.Errorf("Clean removed %v, %v", removed, err)
	}
}

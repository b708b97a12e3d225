package sums_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-relapse/relapse/internal/sums"
)

// put writes a file below root.
func put(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// The sum of a tree follows every name and every byte of its source, and nothing else.
func TestTree(t *testing.T) {
	root := t.TempDir()
	put(t, root, "main.go", "package main\n")
	put(t, root, "staging/a.go", "package a\n")
	if err := os.Symlink("nowhere", filepath.Join(root, "dangling")); err != nil {
		t.Fatal(err)
	}
	sum := func() string {
		t.Helper()
		s, err := sums.Tree(root)
		if err != nil || len(s) != 64 {
			t.Fatalf("the sum is %q, %v", s, err)
		}
		return s
	}
	last := sum()
	for _, c := range []struct {
		what    string
		change  func()
		differs bool
	}{
		{"vendored packages", func() { put(t, root, "vendor/modules.txt", "x") }, false},
		{"git's own files", func() { put(t, root, ".git/HEAD", "x") }, false},
		{"what a build left", func() { put(t, root, "_output/bin", "x") }, false},
		{"a folder vendor below the root", func() { put(t, root, "staging/vendor/b.go", "x") }, true},
		{"another byte", func() { put(t, root, "staging/a.go", "package b\n") }, true},
		{"another name", func() {
			if err := os.Rename(filepath.Join(root, "main.go"), filepath.Join(root, "first.go")); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"a link to a file", func() {
			if err := os.Symlink("first.go", filepath.Join(root, "second.go")); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		c.change()
		now := sum()
		if (now != last) != c.differs {
			t.Errorf("%s: the sum changed: %t, want %t", c.what, now != last, c.differs)
		}
		last = now
	}
	if _, err := sums.Tree(filepath.Join(root, "nowhere")); err == nil {
		t.Error("a folder that isn't there has a sum")
	}
}

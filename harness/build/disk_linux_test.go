package build_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/internal/disktest"
)

// A build for which the disk is too small says so and what to do, leaves nothing behind and takes nothing away: with more
// room, the same builds go on from there.
func TestADiskThatFillsUp(t *testing.T) {
	dir := disktest.Small(t, "16")
	if dir == "" {
		return
	}
	t.Setenv("GOPROXY", "off")
	b := newBuilder(t, dir)
	b.MaxDisk = 20 << 30
	module := with(tiny, "cmd/large/main.go", `package main

var data = [32 << 20]byte{1}

func main() {
	for i := range data {
		data[i]++
	}
	println(data[7])
}
`)
	small := build.Source{Module: "example.org/tiny", Version: "v1.2.3", Dir: layDown(t, module), Packages: []string{"example.org/tiny/cmd/other"}}
	large := small
	large.Packages = []string{"example.org/tiny/cmd/large"}
	first := mustBuild(t, b, small)

	_, err := b.Build(t.Context(), large)
	var full *cache.FullError
	if !errors.As(err, &full) || full.Disk.Size != 16<<20 || full.Disk.Folder != dir {
		t.Fatalf("on a full disk: %v", err)
	}
	for _, want := range []string{"building example.org/tiny@v1.2.3 (large)", "no room was left on the disk of " + dir, " of 16 MiB are free now); finished builds are kept, " +
		"and the same command goes on from there: ", "running go build ", "no space left on device"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("on a full disk it says %v, want %q", err, want)
		}
	}
	if list, err := b.Cache.List(); err != nil || len(list) != 1 || list[0].Key != first.Key {
		t.Errorf("the cache has %+v (%v), want the first build alone", list, err)
	}
	if of, err := filepath.Glob(filepath.Join(dir, "scratch", "*", "*")); err != nil || len(of) != 0 {
		t.Errorf("%q is left (%v)", of, err)
	}

	disktest.Grow(t, dir, "256")
	if !mustBuild(t, b, small).Cached || mustBuild(t, b, large).Cached {
		t.Error("with more room, the first build was done again or the second one wasn't")
	}
}

// What relapse itself writes tells of a full disk in the same way.
func TestAWriterOnAFullDisk(t *testing.T) {
	dir := disktest.Small(t, "1")
	if dir == "" {
		return
	}
	s, err := cache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Do(t.Context(), "image", "k1", func(_ context.Context, dir string) error {
		return os.WriteFile(filepath.Join(dir, "program"), make([]byte, 2<<20), 0o755)
	})
	want := "no room was left on the disk of " + dir + " (0 MiB of 1 MiB are free now)"
	if !errors.As(err, new(*cache.FullError)) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("on a full disk: %v, want %s", err, want)
	}
	if of, err := filepath.Glob(filepath.Join(dir, "*", "*", "k1", "*")); err != nil || len(of) != 0 {
		t.Errorf("%q is left (%v)", of, err)
	}
}

// What git writes tells of a full disk, too: it is no mistake in a patch or a repository, and leaves nothing half-made.
func TestGitOnAFullDisk(t *testing.T) {
	dir := disktest.Small(t, "2")
	if dir == "" {
		return
	}
	noise := make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	large := strings.ReplaceAll(base64.StdEncoding.EncodeToString(noise), "/", "\n")
	proxied(t, "example.org/tree", "v1.2.3", guarded)
	repository := layDown(t, with(guarded, "pleg/large.txt", large))
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch", "main"}, {"add", "."},
		{"-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "All"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = repository
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, said)
		}
	}
	b := newBuilder(t, dir)
	lines := strings.Split(large, "\n")
	text := guard + fmt.Sprintf("diff --git a/pleg/large.txt b/pleg/large.txt\nnew file mode 100644\n--- /dev/null\n+++ b/pleg/large.txt\n@@ -0,0 +1,%d @@\n+%s\n",
		len(lines), strings.Join(lines, "\n+"))
	for _, c := range []struct {
		what string
		do   func() error
	}{
		{"a patch", func() error { _, err := patch(t, b, text); return err }},
		{"a commit", func() error { _, err := b.Checkout(t.Context(), repository, "main"); return err }},
	} {
		err := c.do()
		var full *cache.FullError
		if !errors.As(err, &full) || full.Disk.Folder != dir || errors.As(err, new(*build.PatchError)) {
			t.Errorf("%s on a full disk: %.500v, want a *cache.FullError of %s", c.what, err, dir)
		}
		for _, left := range []string{"entries", "scratch"} {
			if of, err := filepath.Glob(filepath.Join(dir, left, "*", "*")); err != nil || len(of) != 0 {
				t.Errorf("%s: %q is left (%v)", c.what, of, err)
			}
		}
	}
	disktest.Grow(t, dir, "64")
	if p, err := patch(t, b, text); err != nil || len(p.Files) != 2 {
		t.Errorf("with more room the patch changes %v, %v", p.Files, err)
	}
	if at, err := b.Checkout(t.Context(), repository, "main"); err != nil || at.Commit == "" {
		t.Errorf("with more room the commit is %+v, %v", at, err)
	}
}

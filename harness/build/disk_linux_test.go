package build_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
)

// smallDisk is the variable by which a test that runs itself again, with mounts of its own, gets the folder of its disk.
const smallDisk = "RELAPSE_TEST_SMALL_DISK"

// onSmallDisk runs the rest of the test on a file system of a few MiB, in a process of its own: what that one mounts ends
// with it, however it ends. It returns the file system's folder, and "" where that process has done the rest.
func onSmallDisk(t *testing.T, mib string) string {
	t.Helper()
	if dir := os.Getenv(smallDisk); dir != "" {
		for _, err := range []error{syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
			syscall.Mount("none", dir, "tmpfs", 0, "size="+mib+"m")} {
			if err != nil {
				t.Fatal("mounting a small file system:", err)
			}
		}
		return dir
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), smallDisk+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		id := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = id
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if cmd.Process == nil && os.Getuid() != 0 {
		t.Skip("this user can't mount a small file system:", err) // hosts may forbid user namespaces; as root it fails
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return ""
}

// A build for which the disk is too small says so and what to do, leaves nothing behind and takes nothing away: with more
// room, the same builds go on from there.
func TestADiskThatFillsUp(t *testing.T) {
	dir := onSmallDisk(t, "16")
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

	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size=256m"); err != nil {
		t.Fatal(err)
	}
	if !mustBuild(t, b, small).Cached || mustBuild(t, b, large).Cached {
		t.Error("with more room, the first build was done again or the second one wasn't")
	}
}

// What relapse itself writes tells of a full disk in the same way.
func TestAWriterOnAFullDisk(t *testing.T) {
	dir := onSmallDisk(t, "1")
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

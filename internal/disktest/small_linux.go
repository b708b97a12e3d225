package disktest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// folder is the variable by which a test that runs itself again, with mounts of its own, gets the folder of its disk.
const folder = "RELAPSE_TEST_SMALL_DISK"

// Small runs the rest of the test on a file system of so many MiB, in a process of its own: what that one mounts ends
// with it, however it ends. It returns the file system's folder, and "" where that process has done the rest: the test
// then returns. It must be called first, and by a test itself rather than by one of its subtests.
func Small(t *testing.T, mib string) string {
	t.Helper()
	if dir := os.Getenv(folder); dir != "" {
		for _, err := range []error{syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
			syscall.Mount("none", dir, "tmpfs", 0, "size="+mib+"m")} {
			if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
				t.Skip("this user can't mount a small file system:", err) // root in a container may not, either
			}
			if err != nil {
				t.Fatal("mounting a small file system:", err)
			}
		}
		return dir
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), folder+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	if os.Getuid() != 0 {
		id := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = id
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{
			{ContainerID: 0, HostID: os.Getgid(), Size: 1},
		}
	}
	out, err := cmd.CombinedOutput()
	if cmd.Process == nil && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSPC)) {
		t.Skip("this user can't mount a small file system:", err) // hosts may forbid namespaces, and root in a container has none
	}
	if err == nil && strings.Contains(string(out), "--- SKIP: "+t.Name()+" (") {
		t.Skip(string(out)) // it says why
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return ""
}

// Grow gives the file system of Small another size.
func Grow(t *testing.T, dir, mib string) {
	t.Helper()
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size="+mib+"m"); err != nil {
		t.Fatal("remounting the small file system:", err)
	}
}

// Fill fills the file system of a folder but for some bytes, with a file whose path it returns.
func Fill(t *testing.T, dir string, left int64) string {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filling"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(f, zeros{})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("after %d bytes the disk isn't full: %v", n, err)
	}
	if err := errors.Join(f.Truncate(max(n-left, 0)), f.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

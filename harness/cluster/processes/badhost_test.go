package processes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// apart runs a shell command in namespaces of its own, and skips the test where this user may not have them.
func apart(t *testing.T, namespaces, command string, args ...string) string {
	t.Helper()
	if out, err := exec.Command("unshare", namespaces, "true").CombinedOutput(); err != nil {
		t.Skipf("this user may not have namespaces (%s): %v: %s", namespaces, err, out)
	}
	out, _ := exec.Command("unshare", append([]string{namespaces, "sh", "-c", command, "sh"}, args...)...).CombinedOutput()
	return string(out) // that it fails is what is looked for
}

// A disk without room for the components says so, before any of them is started, and nothing is left on it.
func TestFullDisk(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, 1<<20), 0o755); err != nil {
		t.Fatal(err)
	}
	programs := scripts(t, "exit 1")
	programs["kube-apiserver"] = large
	dir := t.TempDir()
	out := apart(t, "--mount", `mount -t tmpfs -o size=512k none "$1" || exit; shift; "$@"; ls -A "$3"; echo "that is left"`,
		append([]string{dir}, makerOf(dir, programs).Args...)...)
	if !strings.Contains(out, "kube-apiserver.new: no space left on device\nthat is left\n") {
		t.Errorf("it said %q", out)
	}
}

// A host on whose loopback nobody may listen is refused with the reason: here all its ports are privileged.
func TestNoPorts(t *testing.T) {
	dir := t.TempDir()
	out := apart(t, "--net", `(cd /proc/sys/net/ipv4 && echo 65534 65535 >ip_local_port_range &&
	echo 65534 >ip_unprivileged_port_start) || exit
setpriv --bounding-set=-net_bind_service "$@"; ls -A "$3"; echo "that is left"`, makerOf(dir, scripts(t, "exit 1")).Args...)
	if !strings.Contains(out, "there are not 6 free ports from 10000 to ") ||
		!strings.HasSuffix(out, "bind: permission denied\nthat is left\n") {
		t.Errorf("it said %q", out)
	}
}

// A folder that can't be written is refused with its name.
func TestFolderThatCantBeWritten(t *testing.T) {
	dir := t.TempDir()
	out := apart(t, "--mount", `mount -t tmpfs -o ro none "$1" || exit; shift; "$@"; ls -A "$3"; echo "that is left"`,
		append([]string{dir}, makerOf(dir, scripts(t, "exit 1")).Args...)...)
	if !strings.Contains(out, filepath.Join(dir, name)+": read-only file system\nthat is left\n") {
		t.Errorf("it said %q", out)
	}
}

//go:build cluster

package processes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// inPod is the environment variable that names the folder of sockets to the test that runs in a pod's recorder.
const inPod = "RELAPSE_TEST_CONTAINERS"

// Docker's containers stand for those of a pod: as restricted, with one numbering of processes, and a cgroup each. The
// recorder's runs TestInThePod.
func TestThePodsContainers(t *testing.T) {
	name := fmt.Sprintf("relapse-pod-%d", os.Getpid())
	work := t.TempDir()
	if err := os.Chmod(work, 0o777); err != nil {
		t.Fatal(err)
	}
	docker := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("docker", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if out, err := exec.Command("sh", "-c", "tar -c --files-from /dev/null | docker import - "+name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		for _, part := range []string{"recorder", "component-1", "component-2", "pause"} {
			_ = exec.Command("docker", "rm", "--force", name+"-"+part).Run() // not all were started
		}
		docker("image", "rm", name)
	})
	start := func(part string, flags []string, command ...string) {
		t.Helper()
		args := []string{"run", "--detach", "--name", name + "-" + part, "--network", "none", "--read-only", "--user", "65532:65532",
			"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--volume", work + ":/trial", "--env", "TMPDIR=/trial",
			"--volume", os.Args[0] + ":/program:ro"}
		for _, folder := range []string{"/usr", "/bin", "/lib", "/lib64"} { // this host's, in place of a base image
			args = append(args, "--volume", folder+":"+folder+":ro")
		}
		docker(append(append(append(args, flags...), name), command...)...)
	}
	start("pause", nil, "sleep", "infinity")
	shared := []string{"--pid", "container:" + name + "-pause"}
	for i, limit := range []string{"256m", "384m"} {
		socket := fmt.Sprintf("/trial/containers/%d.sock", i+1)
		start(fmt.Sprintf("component-%d", i+1), append([]string{"--memory", limit, "--memory-swap", limit}, shared...), "/program", "contain", socket)
	}
	start("recorder", append([]string{"--env", inPod + "=/trial/containers"}, shared...), "/program", "-test.run", "^TestInThePod$", "-test.v")
	code := docker("wait", name+"-recorder")
	said := docker("logs", name+"-recorder")
	if code != "0" || !strings.Contains(said, "--- PASS: TestInThePod") {
		t.Errorf("in the pod, exit code %s:\n%s", code, said)
	}
}

// In a pod, a component that outgrows its container is killed alone or with it. Either way the kill is told, and the
// other component and the recorder stay.
func TestInThePod(t *testing.T) {
	folder := os.Getenv(inPod)
	if folder == "" {
		return // TestThePodsContainers runs it
	}
	if uid := os.Getuid(); uid != 65532 {
		t.Fatalf("it is the user %d", uid)
	}
	s := supervise(t, map[string]string{
		"one":   "[ -e eat ] || exec sleep 1000; rm eat; exec tail /dev/zero", // which keeps a line in memory that never ends
		"other": "exec sleep 1000",
	})
	for name, bytes := range map[string]int64{"one": 256 << 20, "other": 384 << 20} {
		k := componentOf(s, name)
		k.n.c.containers = folder
		if err := k.takeContainer(t.Context(), bytes); err != nil {
			t.Fatal(err)
		}
		s.order(t, orderStart+name)
		s.until(t, name, runs)
	}
	k, other := componentOf(s, "one"), s.until(t, "other", runs)
	if id, err := k.Identity(t.Context(), true); err != nil || len(id.SHA256) != 64 {
		t.Errorf("it is %+v, %v", id, err)
	}
	put(t, filepath.Join(s.home, "eat"), "")
	if err := k.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	killed := s.until(t, "one", func(st state) bool { return st.Last != nil && st.Last.Code == 137 }) // by the kernel
	if !killed.Last.OutOfMemory || killed.Last.Unsure {
		t.Errorf("it is said to have ended with %+v", killed.Last)
	}
	if now := s.until(t, "other", runs); now.PID != other.PID || now.StartTicks != other.StartTicks || now.Starts != 1 {
		t.Errorf("the other one was %+v, and is %+v", other.state, now.state)
	}
	again := s.until(t, "one", func(st state) bool { return runs(st) && st.Restarts == 1 })
	if status, err := k.Status(t.Context()); err != nil || !status.LastOutOfMemory || status.LastCode != 137 {
		t.Errorf("started again as %+v, its status is %+v, %v", again.state, status, err)
	}
}

package kind

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// stateOf is the letter of a process's state.
func stateOf(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return string(b[bytes.LastIndex(b, []byte(") "))+2])
}

// The scripts of a node, on this host: they stop a process, have it go on when asked to or when its time is over, and
// leave nobody waiting.
func TestPauseScripts(t *testing.T) {
	victim := exec.Command("sleep", "1000")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := victim.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = victim.Wait() // it was killed
	})
	pid := victim.Process.Pid
	mark := filepath.Join(t.TempDir(), "mark")
	run := func(script string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", script)
		cmd.Env = append(os.Environ(), execMark+"=this")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	becomes := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !ok(); {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
			time.Sleep(10 * time.Millisecond) // polls /proc: nobody is told when a process stops or goes on
		}
	}
	stopped := func() bool { return stateOf(t, pid) == "T" }
	goesOn := func() bool { return !stopped() }
	gone := func(group string) func() bool {
		return func() bool {
			out, _ := exec.Command("ps", "-o", "stat=", "-g", group).Output() // it fails where there is none
			return !slices.ContainsFunc(strings.Fields(string(out)), func(s string) bool { return s[0] != 'Z' })
		}
	}
	command := fmt.Sprintf("echo %d", pid)
	run(resumeScript(command, mark)) // of what was never stopped
	run(pauseScript(command, mark, time.Hour))
	becomes("it was not stopped", stopped)
	first, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	if env, err := os.ReadFile("/proc/" + strings.TrimSpace(string(first)) + "/environ"); err != nil ||
		strings.Contains(string(env), execMark) {
		t.Errorf("who waits would be killed with what started it: %q, %v", env, err)
	}
	run(pauseScript(command, mark, time.Hour))
	becomes("two wait", gone(strings.TrimSpace(string(first))))
	second, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	run(resumeScript(command, mark))
	becomes("it was not resumed", goesOn)
	becomes("somebody still waits", gone(strings.TrimSpace(string(second))))
	run(pauseScript(command, mark, 3*time.Second)) // long enough to be seen on a busy machine
	becomes("it was not stopped again", stopped)
	becomes("its time was not kept", goesOn)
	if _, err := os.Stat(mark); !os.IsNotExist(err) {
		t.Errorf("a mark is left: %v", err)
	}
	for _, none := range []string{"true", "echo 0"} {
		out, err := exec.Command("sh", "-ec", pauseScript(none, mark, time.Hour)).CombinedOutput()
		if err == nil || string(out) != "no process\n" {
			t.Errorf("pausing none: %v, %q", err, out)
		}
		run(resumeScript(none, mark))
	}
}

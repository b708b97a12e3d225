package processes

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// box stands for the container of a component: a process with what runs there, and a folder in place of its cgroup.
type box struct {
	container
	cmd *exec.Cmd
}

// newBox makes a container with a limit of 32 MiB, in which nothing runs yet.
func newBox(t *testing.T) *box {
	t.Helper()
	dir := t.TempDir()
	b := &box{container: container{Socket: filepath.Join(dir, "sockets", "1.sock"), Cgroup: filepath.Join(dir, "cgroup")}}
	if err := os.MkdirAll(b.Cgroup, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(b.Cgroup, "memory.max"), "33554432\n")
	b.killed(t, 0)
	return b
}

func put(t *testing.T, at, text string) {
	t.Helper()
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// killed has the cgroup say how often the kernel has killed there.
func (b *box) killed(t *testing.T, times int) {
	t.Helper()
	put(t, filepath.Join(b.Cgroup, "memory.events"), fmt.Sprintf("low 0\nhigh 0\nmax 12\noom %d\noom_kill %d\noom_group_kill 0\n", times, times))
}

// start starts the container, as a kubelet does again and again.
func (b *box) start(t *testing.T) {
	t.Helper()
	b.cmd = exec.Command(os.Args[0], "contain", b.Socket)
	b.cmd.Stdout, b.cmd.Stderr = os.Stderr, os.Stderr
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.kill)
}

// begin starts the container, and returns once it answers. Where a supervisor waits for it, that one may be first, and
// nobody else is answered.
func (b *box) begin(t *testing.T) {
	t.Helper()
	b.start(t)
	for deadline := time.Now().Add(time.Minute); !b.answers(); time.Sleep(10 * time.Millisecond) { // another process begins
		if time.Now().After(deadline) {
			t.Fatal("the container doesn't answer")
		}
	}
}

// kill ends the container and all in it, as the kernel does by its cgroup.
func (b *box) kill() {
	_, _ = b.cmd.Process.Kill(), b.cmd.Wait() // one that has ended is fine
}

// moved runs a script, and then moves it to a container.
func (b *box) moved(t *testing.T, script string) (*supervising, *Component, running) {
	t.Helper()
	s := supervise(t, map[string]string{"one": script})
	s.order(t, orderStart+"one")
	s.until(t, "one", runs)
	if err := writeJSON(limitMark(s.home, "one"), b.container); err != nil {
		t.Fatal(err)
	}
	k := componentOf(s, "one")
	if err := k.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	one := s.until(t, "one", func(st state) bool { return runs(st) && st.Starts == 2 })
	if stat, err := statOf(one.PID); err != nil || stat.PPID != b.cmd.Process.Pid {
		t.Fatalf("the parent of its process is %d, %v; want the container's %d", stat.PPID, err, b.cmd.Process.Pid)
	}
	return s, k, one
}

// All that a supervisor does to a process of its own, it does to one in a container.
func TestAProcessInAContainer(t *testing.T) {
	b := newBox(t)
	b.begin(t)
	s, k, one := b.moved(t, "echo up in $HOME; exec sleep 1000")
	for deadline := time.Now().Add(time.Minute); !strings.HasSuffix(s.said(t, "one", "1.log"), "Z stderr F up in "+s.home+"\n"); time.Sleep(10 * time.Millisecond) { // its lines go through a pipe
		if time.Now().After(deadline) {
			t.Fatalf("its log is %q", s.said(t, "one", "1.log"))
		}
	}
	if id, err := k.Identity(t.Context(), true); err != nil || id.PID != one.PID || len(id.SHA256) != 64 {
		t.Errorf("it is %+v, %v", id, err)
	}
	if err := k.Pause(t.Context(), 50*time.Millisecond); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // the supervisor looks for it
		if stat, err := statOf(one.PID); err != nil || time.Now().After(deadline) {
			t.Fatalf("paused, it doesn't go on: %+v, %v", stat, err)
		} else if stat.State == "S" {
			break
		}
	}
	if err := one.signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	again := s.until(t, "one", func(st state) bool { return runs(st) && st.Starts == 3 })
	if e := again.Last; e == nil || e.Start != 1 || e.Code != 143 || e.OutOfMemory || e.Unsure || again.Restarts != 1 {
		t.Errorf("after a signal it is %+v, and ended with %+v", again, e)
	}
	if err := s.orders.Close(); err != nil {
		t.Fatal(err)
	}
	if err := again.awaitExit(t.Context()); err != nil {
		t.Error("it outlived its supervisor:", err)
	}
	for deadline := time.Now().Add(time.Minute); !b.answers(); time.Sleep(10 * time.Millisecond) { // it waits for its process
		if time.Now().After(deadline) {
			t.Fatal("the container doesn't take another supervisor")
		}
	}
}

// Where the kernel kills the component alone, as on cgroup v1, whoever runs it lives.
func TestAKillForMemoryInAContainer(t *testing.T) {
	b := newBox(t)
	b.begin(t)
	s, k, one := b.moved(t, "exec sleep 1000")
	b.killed(t, 1)
	if err := one.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	again := s.until(t, "one", func(st state) bool { return runs(st) && st.Starts == 3 })
	if e := again.Last; e == nil || e.Code != 137 || !e.OutOfMemory || e.Unsure || again.Restarts != 1 {
		t.Errorf("it is %+v, and ended with %+v", again, e)
	}
	if status, err := k.Status(t.Context()); err != nil || !status.LastOutOfMemory || status.LastCode != 137 {
		t.Errorf("its status is %+v, %v", status, err)
	}
	if err := again.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	down := s.until(t, "one", func(st state) bool { return !runs(st) })
	if e := down.Last; e == nil || e.Code != 137 || e.OutOfMemory {
		t.Errorf("a kill by somebody else is said to be %+v", e)
	}
}

// Where a container is killed whole, as on cgroup v2, the one who would have said how the component ended is killed with
// it. Its cgroup tells, for a moment; and if it doesn't, nobody knows.
func TestAContainerThatIsKilledWhole(t *testing.T) {
	for _, told := range []bool{true, false} {
		b := newBox(t)
		b.begin(t)
		s, k, one := b.moved(t, "exec sleep 1000")
		if told {
			b.killed(t, 2)
		}
		b.kill()
		if err := one.awaitExit(t.Context()); err != nil {
			t.Fatal("it outlived its container:", err)
		}
		down := s.until(t, "one", func(st state) bool { return !runs(st) })
		if e := down.Last; e == nil || e.Code != 137 || e.OutOfMemory != told || e.Unsure == told || down.Exit != "its container ended with it" {
			t.Errorf("it is %+v, and ended with %+v; the cgroup told: %v", down, e, told)
		}
		status, err := k.Status(t.Context())
		if told && (err != nil || !status.LastOutOfMemory) {
			t.Errorf("its status is %+v, %v", status, err)
		}
		if want := "how the one of "; !told && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "is not known")) {
			t.Errorf("its status is %+v, %v; want %q", status, err, want)
		}
		if now := s.until(t, "one", func(state) bool { return true }); now.Starts != 2 {
			t.Errorf("it was started %d times, the last one without its container", now.Starts)
		}
		b.start(t)
		again := s.until(t, "one", func(st state) bool { return runs(st) && st.Starts == 3 })
		if again.Restarts != 1 {
			t.Errorf("with its container back, it is %+v", again)
		}
	}
}

// A restart on purpose counts as none, even if the container is killed in the middle of it.
func TestAContainerThatIsKilledInARestart(t *testing.T) {
	b := newBox(t)
	b.begin(t)
	s, _, _ := b.moved(t, "exec sleep 1000")
	put(t, restartMark(s.home, "one"), "")
	b.kill()
	s.until(t, "one", func(st state) bool { return !runs(st) })
	b.start(t)
	again := s.until(t, "one", func(st state) bool { return runs(st) && st.Starts == 3 })
	if again.Restarts != 0 {
		t.Errorf("it is %+v", again)
	}
}

// A component gets a container with the limit that it is to have, which no other one has.
func TestAContainerIsTaken(t *testing.T) {
	b := newBox(t)
	if _, err := b.take(32 << 20); err == nil {
		t.Error("a container was taken in which nothing runs")
	}
	b.begin(t)
	if limit, err := b.take(64 << 20); err == nil || limit != 32<<20 || err.Error() != "it has another limit" {
		t.Errorf("for 64 MiB: %d, %v", limit, err)
	}
	if limit, err := b.take(32<<20 + 100); err != nil || limit != 32<<20 { // in whole pages
		t.Errorf("for 32 MiB and a bit: %d, %v", limit, err)
	}
	if _, err := b.take(32 << 20); err != errTaken {
		t.Errorf("for a second one: %v", err)
	}
	s := supervise(t, map[string]string{"one": "exec sleep 1000"})
	if err := writeJSON(limitMark(s.home, "one"), b.container); err != nil {
		t.Fatal(err)
	}
	if err := removeMemoryGroups(t.Context(), s.home, filepath.Base(s.home)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.take(32 << 20); err != nil {
		t.Errorf("after the cluster is gone: %v", err)
	}
	put(t, filepath.Join(b.Cgroup, "memory.max"), "max\n")
	if err := b.leave(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.take(32 << 20); err == nil || !strings.Contains(err.Error(), "the memory of the container isn't limited") {
		t.Errorf("without a limit: %v", err)
	}
}

// A container that has its processes' numbers to itself can't be used: another process would be taken for its own.
func TestAContainerWithNumbersOfItsOwn(t *testing.T) {
	c := container{Socket: filepath.Join(t.TempDir(), "1.sock")}
	in, err := net.Listen("unix", c.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	go func() {
		conn, err := in.Accept()
		if err == nil {
			err = errors.Join(json.NewEncoder(conn).Encode(greeting{PID: os.Getpid(), StartTicks: 1}), conn.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}()
	want := fmt.Sprintf("the containers don't share the numbers of their processes: %d is another one here", os.Getpid())
	if _, err := c.take(32 << 20); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The kernel's own kill, in a cgroup of this host that stands for the container's.
func TestTheKernelKillsInAContainer(t *testing.T) {
	if why := noMemoryLimits(); why != "" {
		t.Logf("nothing can be limited here: %s", why)
		return
	}
	b := newBox(t)
	name := fmt.Sprintf("/relapse-%d.container", os.Getpid())
	// The kernel kills the largest process: that has to be the component, also beside a program with the race detector.
	if err := makeMemoryGroup(name, 384<<20); err != nil {
		t.Fatal(err)
	}
	g, err := openMemoryGroup(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.kill()
		for deadline := time.Now().Add(time.Minute); g.remove() != nil; time.Sleep(10 * time.Millisecond) { // the kernel counts them for a moment
			if time.Now().After(deadline) {
				t.Error("its cgroup is still there")
				return
			}
		}
	})
	b.Cgroup = filepath.Join("/sys/fs/cgroup", name)
	if _, err := os.Stat(filepath.Join(b.Cgroup, "memory.max")); err != nil { // cgroup v1: a folder for each controller
		b.Cgroup = t.TempDir()
		if err := os.Symlink(filepath.Join("/sys/fs/cgroup/memory", name), filepath.Join(b.Cgroup, "memory")); err != nil {
			t.Fatal(err)
		}
	}
	b.begin(t)
	if err := g.add(b.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if limit, err := b.limit(); err != nil || limit != 384<<20 {
		t.Fatalf("the container has a limit of %d, %v", limit, err)
	}
	s, k, _ := b.moved(t, "[ -e eat ] || exec sleep 1000; exec tail /dev/zero") // which keeps a line in memory that never ends
	put(t, filepath.Join(s.home, "eat"), "")
	if err := k.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	killed := s.until(t, "one", func(st state) bool { return !runs(st) && st.Restarts == 1 })
	if e := killed.Last; e == nil || e.Code != 137 || !e.OutOfMemory || e.Unsure {
		t.Errorf("it is said to have ended with %+v", e)
	}
	if !b.answers() {
		t.Error("the container was killed with its component")
	}
}

package processes

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// supervising runs a supervisor over shell scripts in this process. It ends with the test, before its folder is removed.
type supervising struct {
	home   string
	orders *io.PipeWriter
	done   chan error
}

func supervise(t *testing.T, scripts map[string]string) *supervising {
	t.Helper()
	s := &supervising{home: filepath.Join(t.TempDir(), fmt.Sprintf("relapse-%d", os.Getpid())), done: make(chan error, 1)}
	var list []process
	for name, script := range scripts {
		logs := filepath.Join(s.home, "logs", name)
		if err := os.MkdirAll(logs, 0o700); err != nil {
			t.Fatal(err)
		}
		list = append(list, process{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Logs: logs})
	}
	if err := os.MkdirAll(filepath.Join(s.home, stateDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeJSON(filepath.Join(s.home, processesFile), list); err != nil {
		t.Fatal(err)
	}
	var read *io.PipeReader
	read, s.orders = io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.done <- Supervise(ctx, s.home, read)
	}()
	t.Cleanup(func() {
		if err := s.orders.Close(); err != nil {
			t.Error(err)
		}
		cancel() // one whose cluster is retained goes on without orders
		select {
		case <-over:
		case <-time.After(time.Minute):
			t.Error("the supervisor doesn't end")
		}
	})
	return s
}

func (s *supervising) order(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(s.orders, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// until waits for a state of a process that will do.
func (s *supervising) until(t *testing.T, name string, ok func(state) bool) running {
	t.Helper()
	one := running{name: name}
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		one = running{name: name}
		if err = readJSON(statePath(s.home, name), &one.state); err == nil && ok(one.state) {
			return one
		}
	}
	t.Fatalf("%s is %+v, %v", name, one.state, err)
	return one
}

func (s *supervising) said(t *testing.T, name, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.home, "logs", name, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func runs(s state) bool { return s.PID != 0 }

// A process that was killed comes back at once and counts a restart; when it ends again it waits. One that is
// restarted on purpose comes back at once and counts none.
func TestSupervisorStartsAgain(t *testing.T) {
	s := supervise(t, map[string]string{"one": "echo up; exec sleep 1000"})
	if _, err := os.Stat(statePath(s.home, "one")); err == nil {
		t.Fatal("it runs before it was asked for")
	}
	s.order(t, orderStart+"one")
	first := s.until(t, "one", runs)
	if err := first.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := s.until(t, "one", func(st state) bool { return runs(st) && st.Starts == 2 })
	if e := second.Last; e == nil || e.Start != 0 || e.Code != 137 || time.Since(e.At) > time.Minute {
		t.Errorf("the first is said to have ended with %+v, want code 137", e)
	}
	if second.Restarts != 1 || !second.alive() || first.alive() {
		t.Errorf("after a kill it is %+v, before %+v", second, first)
	}
	if err := second.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	down := s.until(t, "one", func(st state) bool { return !runs(st) })
	if down.Exit != "signal: killed" || down.Restarts != 1 {
		t.Errorf("killed again it is %+v, want it to wait", down)
	}
	if err := os.WriteFile(restartMark(s.home, "one"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	third := s.until(t, "one", runs)
	if third.Restarts != 1 || third.Starts != 3 || third.Exit != "" {
		t.Errorf("restarted on purpose it is %+v", third)
	}
	got := ""
	for deadline := time.Now().Add(time.Minute); got == "" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { // between two looks
		got = s.said(t, "one", "2.log")
	}
	if !strings.HasSuffix(got, "Z stderr F up\n") {
		t.Errorf("its third log is %q", got)
	}
}

// Whatever can't be run is described, and tried again.
func TestSupervisorSaysWhyAProcessDoesNotRun(t *testing.T) {
	s := supervise(t, map[string]string{"ends": "echo last words; exit 3", "done": "exit 0"})
	for name, exit := range map[string]string{"ends": "exit status 3", "done": "exit status 0"} {
		code := map[string]int{"ends": 3}[name]
		s.order(t, orderStart+name)
		one := s.until(t, name, func(st state) bool { return st.Exit != "" && st.Restarts == 1 })
		if one.Exit != exit || one.Last == nil || one.Last.Start != 1 || one.Last.Code != code {
			t.Errorf("%s: %+v, want %s", name, one.state, exit)
		}
	}
	if got := lastLines(filepath.Join(s.home, "logs", "ends"), 1, 5); got != "last words" {
		t.Errorf("its last lines are %q", got)
	}
}

func TestSupervisorOfABinaryForAnotherSystem(t *testing.T) {
	s := supervise(t, nil)
	s.order(t, orderRetain) // it must not end before the next one has its turn
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	sup := &supervisor{home: s.home, exits: make(chan exit)}
	p := &supervised{process: process{Name: "other", Path: other, Logs: t.TempDir()}}
	if err := sup.start(p); err != nil {
		t.Fatal(err)
	}
	if want := "starting it: fork/exec " + other + ": exec format error"; p.Exit != want || p.PID != 0 || p.Last.Code != -1 {
		t.Errorf("it is %+v, want %s", p.state, want)
	}
}

// A process that is stopped goes on when it is asked to, or by the supervisor when its time is over.
func TestPause(t *testing.T) {
	s := supervise(t, map[string]string{"one": "while :; do sleep 0.05; done"})
	k := componentOf(s, "one")
	s.order(t, orderStart+"one")
	first := s.until(t, "one", runs)
	until := func(stopped bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			id, err := k.Identity(t.Context(), false)
			if err == nil && id.PID == first.PID && id.Stopped == stopped {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("it is %+v, %v; want process %d, stopped: %v", id, err, first.PID, stopped)
			}
		}
	}
	if err := k.Resume(t.Context()); err != nil {
		t.Errorf("resuming what runs: %v", err)
	}
	for _, atMost := range []time.Duration{time.Hour, 3 * time.Second} { // long enough to be seen on a busy machine
		if err := k.Pause(t.Context(), atMost); err != nil {
			t.Fatal(err)
		}
		until(true)
		if atMost == time.Hour {
			if err := k.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		until(false)
		if _, err := os.Stat(pauseMark(s.home, "one")); !os.IsNotExist(err) {
			t.Errorf("a mark is left: %v", err)
		}
	}
}

func componentOf(s *supervising, name string) *Component {
	return &Component{n: &Node{c: &Cluster{name: filepath.Base(s.home), home: s.home}}, name: name, process: name}
}

// The user's own files are none of the components': their home is the cluster's folder.
func TestSupervisorGivesAHome(t *testing.T) {
	t.Setenv("KUBECONFIG", "mine")
	s := supervise(t, map[string]string{"one": "echo $HOME$KUBECONFIG; exec sleep 1000"})
	s.order(t, orderStart+"one")
	s.until(t, "one", runs)
	got := ""
	for deadline := time.Now().Add(20 * time.Second); got != s.home && time.Now().Before(deadline); {
		got = lastLines(filepath.Join(s.home, "logs", "one"), 1, 1)
	}
	if got != s.home {
		t.Errorf("its home is %q, want %s", got, s.home)
	}
}

// The end of its orders ends a supervisor and all that it runs; one whose cluster is retained goes on.
func TestSupervisorEndsWithItsOrders(t *testing.T) {
	for _, retained := range []bool{false, true} {
		s := supervise(t, map[string]string{"one": "trap '' TERM; echo up; while :; do sleep 0.05; done"})
		s.order(t, orderStart+"one")
		one := s.until(t, "one", runs)
		if retained {
			s.order(t, orderRetain)
		}
		if err := s.orders.Close(); err != nil {
			t.Fatal(err)
		}
		goesOn := time.Minute // on a busy machine the end takes a while
		if retained {
			goesOn = time.Second // there is nothing to wait for
		}
		select {
		case err := <-s.done:
			if retained || err != nil || one.alive() {
				t.Errorf("retained %v: it ended with %v, its process is alive: %v", retained, err, one.alive())
			}
		case <-time.After(goesOn):
			if !retained || !one.alive() {
				t.Errorf("retained %v: it goes on, its process is alive: %v", retained, one.alive())
			}
		}
		if err := one.kill(); err != nil {
			t.Error(err)
		}
	}
}

func TestFollowLogs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := followLogs(ctx, dir)
	for _, part := range []struct{ file, text string }{{"0.log", "a\n"}, {"0.log", "b\n"}, {"1.log", "c\n"}, {"1.log",
		"d\n"}} {
		write(part.file, part.text)
		got := make([]byte, 2)
		if _, err := io.ReadFull(r, got); err != nil || string(got) != part.text {
			t.Fatalf("read %q, %v; want %q", got, err, part.text)
		}
	}
	cancel()
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("after its context there is %q, %v", rest, err)
	}
}

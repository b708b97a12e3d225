package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// container is one of this pod's that runs one component, whose memory it limits. It is the content of the component's
// limitMark.
type container struct {
	Socket string `json:"socket"`           // of Contain there
	Cgroup string `json:"cgroup,omitempty"` // where its cgroup is seen; "" for as its own processes see it
}

// containerOf returns the container that a component is to run in; nil if it has none.
func containerOf(home, component string) (*container, error) {
	raw, err := os.ReadFile(limitMark(home, component))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(raw) == 0 { // or a cgroup that was made here
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &container{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("reading which container the %s runs in: %w", component, err)
	}
	return c, nil
}

// callTime is how long a container may take to answer. Its supervisor does nothing else meanwhile.
const callTime = 5 * time.Second

// call connects to what runs in the container, which has to answer soon. After the container was killed for its memory,
// nobody answers until it is there again.
func (c *container) call() (*net.UnixConn, *json.Decoder, greeting, error) {
	var hello greeting
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: c.Socket, Net: "unix"})
	if err != nil {
		return nil, nil, hello, err
	}
	in := json.NewDecoder(conn)
	err = conn.SetDeadline(time.Now().Add(callTime))
	if err == nil {
		err = in.Decode(&hello)
	}
	if err != nil {
		return nil, nil, hello, errors.Join(err, conn.Close())
	}
	return conn, in, hello, nil
}

// answers reports whether the container can start a process.
func (c *container) answers() bool {
	conn, _, _, err := c.call()
	return err == nil && conn.Close() == nil
}

// limit returns the limit of the container's memory. It fails if the processes there have other numbers here, by which
// they could not be told apart.
func (c *container) limit() (bytes int64, err error) {
	conn, _, hello, err := c.call()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	me, err := identify(hello.PID)
	if err == nil && me.StartTicks != hello.StartTicks {
		err = fmt.Errorf("%d is another one here", hello.PID)
	}
	if err != nil {
		return 0, fmt.Errorf("the containers don't share the numbers of their processes: %w", err)
	}
	g, err := c.group(hello.PID)
	if err != nil {
		return 0, err
	}
	return g.limit, g.events.Close()
}

// contained is a process that runs in another container of this pod.
type contained struct {
	running
	over  chan struct{} // closed once end is known
	ended error         // as exec.Cmd's Wait returns it
}

// start starts a process in the container. It returns once the process runs.
func (c *container) start(cmd *exec.Cmd, out *os.File) (*contained, error) {
	conn, in, hello, err := c.call()
	if err != nil {
		return nil, err
	}
	group, err := c.group(hello.PID)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	begun, err := func() (a answer, err error) {
		if group.before, err = group.kills(); err != nil {
			return a, err
		}
		if err := sendFile(conn, out); err != nil {
			return a, err
		}
		r := request{Path: cmd.Path, Args: cmd.Args[1:], Env: cmd.Env, Dir: cmd.Dir}
		if err := json.NewEncoder(conn).Encode(r); err != nil {
			return a, err
		}
		if err := in.Decode(&a); err != nil {
			return a, err
		}
		if a.Error != "" {
			return a, errors.New(a.Error)
		}
		return a, conn.SetDeadline(time.Time{})
	}()
	if err != nil {
		return nil, errors.Join(err, conn.Close(), group.events.Close())
	}
	p := &contained{over: make(chan struct{})}
	p.PID, p.StartTicks = begun.PID, begun.StartTicks
	go func() {
		defer close(p.over)
		p.ended = group.endOf(in)
		_, _ = conn.Close(), group.events.Close() // nothing was written since
	}()
	return p, nil
}

// identity returns what it has been told: the process may be gone already.
func (p *contained) identity() (pid int, startTicks int64, err error) {
	return p.PID, p.StartTicks, nil
}

func (p *contained) wait() error {
	<-p.over
	return p.ended
}

// elsewhereError says how a process ended in another container.
type elsewhereError struct {
	status      syscall.WaitStatus
	outOfMemory bool // the kernel killed there because of the limit
	lost        bool // its container ended with it, and so with whoever would have said how
}

// Error says it as exec.ExitError does.
func (e *elsewhereError) Error() string {
	switch {
	case e.lost:
		return "its container ended with it"
	case e.status.Signaled():
		return "signal: " + e.status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", e.status.ExitStatus())
}

// code returns the exit code. A container that ends whole is ended by SIGKILL.
func (e *elsewhereError) code() int {
	switch {
	case e.lost:
		return 128 + int(syscall.SIGKILL)
	case e.status.Signaled():
		return 128 + int(e.status.Signal())
	}
	return e.status.ExitStatus()
}

// containerGroup is the cgroup of another container, with which it limits its memory.
type containerGroup struct {
	events *os.File // counts the kernel's kills; it is open before the cgroup can be gone
	limit  int64
	before uint64 // kills before the process was started
}

// group opens the cgroup of the container that a process is in. Of both versions of cgroups, a container sees its own
// cgroup in place of the root.
func (c *container) group(pid int) (g *containerGroup, err error) {
	root := c.Cgroup
	if root == "" {
		root = fmt.Sprintf("/proc/%d/root/sys/fs/cgroup", pid)
	}
	limit, events := filepath.Join(root, "memory.max"), filepath.Join(root, "memory.events")
	if _, err := os.Stat(limit); errors.Is(err, fs.ErrNotExist) {
		limit = filepath.Join(root, "memory", "memory.limit_in_bytes")
		events = filepath.Join(root, "memory", "memory.oom_control")
	}
	raw, err := os.ReadFile(limit)
	if err != nil {
		return nil, err
	}
	g = &containerGroup{}
	if g.limit, err = strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err != nil {
		return nil, fmt.Errorf("the memory of the container isn't limited: %w", err)
	}
	g.events, err = os.Open(events)
	return g, err
}

// kills returns how often the kernel has killed in the container because of its limit.
func (g *containerGroup) kills() (uint64, error) {
	raw, err := io.ReadAll(io.NewSectionReader(g.events, 0, 1<<12))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strconv.ParseUint(strings.TrimSpace(count), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s doesn't count kills", g.events.Name())
}

// endOf waits for the end of a process, and asks at once whether the kernel killed for the limit: a container that was
// killed whole has its cgroup for a moment only.
func (g *containerGroup) endOf(in *json.Decoder) error {
	var a answer
	e := &elsewhereError{lost: in.Decode(&a) != nil || !a.Ended, status: a.Status}
	if now, err := g.kills(); err == nil && now > g.before {
		e.outOfMemory = true
	}
	if !e.lost && e.status == 0 {
		return nil
	}
	return e
}

// containersCome is how long the containers of a pod may take to answer: they are started before the one with the
// clusters, and may not listen yet.
const containersCome = time.Minute

// takenMark is the end of the name of a file beside a container's socket. Who makes it has the container.
const takenMark = ".taken"

// takeContainer makes the component's next process run in a container that has the limit and that no other component
// has.
func (k *Component) takeContainer(ctx context.Context, bytes int64) error {
	var seen []string
	var c *container
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, containersCome, true, func(context.Context) (bool, error) {
		sockets, err := filepath.Glob(filepath.Join(k.n.c.containers, "*.sock"))
		if err != nil {
			return false, err
		}
		seen = nil
		for _, socket := range sockets {
			one := &container{Socket: socket}
			limit, err := one.take(bytes)
			if err == nil {
				c = one
				return true, nil
			}
			seen = append(seen, fmt.Sprintf("%s: %d bytes, %v", filepath.Base(socket), limit, err))
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("no container with a limit of %d bytes is free (%s): %w", bytes, strings.Join(seen, "; "), err)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(limitMark(k.n.c.home, k.process), raw, 0o600)
}

var errTaken = errors.New("another component has it")

// take takes the container if it has the limit, which the kernel rounds down to whole pages.
func (c *container) take(bytes int64) (limit int64, err error) {
	mark, err := os.OpenFile(c.Socket+takenMark, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return 0, errTaken
	}
	if err != nil {
		return 0, err
	}
	if err = mark.Close(); err == nil {
		limit, err = c.limit()
	}
	if err == nil && (limit > bytes || bytes-limit >= int64(os.Getpagesize())) {
		err = errors.New("it has another limit")
	}
	if err != nil {
		return limit, errors.Join(err, c.leave())
	}
	return limit, nil
}

// leave lets another component have the container.
func (c *container) leave() error {
	if c == nil {
		return nil
	}
	_, err := takeMark(c.Socket + takenMark)
	return err
}

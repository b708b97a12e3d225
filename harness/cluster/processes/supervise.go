package processes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// The orders that a supervisor reads from its standard input, one a line. The supervisor ends at the end of that input,
// unless it was told that the cluster is retained.
const (
	orderRetain = "retain"
	orderStart  = "start " // and the name of a component
	orderRun    = "run "   // and a process as JSON, to add to those that it knows, and to start
)

// supervisorName is the supervisor's name among the cluster's processes.
const supervisorName = "supervisor"

// process is a component as the supervisor runs it.
type process struct {
	Name string   `json:"name"`
	Path string   `json:"path"`
	Args []string `json:"args"`
	Env  []string `json:"env,omitempty"`
	Logs string   `json:"logs"` // the folder of its log files, one for each start
}

// state is what the supervisor notes down about a process: PID 0 says that it doesn't run.
type state struct {
	PID        int     `json:"pid"`
	StartTicks int64   `json:"startTicks"`
	Starts     int     `json:"starts"`
	Restarts   int     `json:"restarts"` // those that nobody asked for
	Exit       string  `json:"exit,omitempty"`
	Last       *exited `json:"last,omitempty"` // how the latest process to end did so
}

// A process that exits is started again at once. If it exits again, it is started after a pause that doubles each time,
// as a kubelet does it. After a process has run for ranForLong, the pauses begin anew.
const (
	firstPause  = 10 * time.Second
	longestWait = 5 * time.Minute
	ranForLong  = 10 * time.Minute
)

// supervised is a process that the supervisor runs, and its state.
type supervised struct {
	process
	state
	cmd     *exec.Cmd
	child   child
	memory  memory
	started time.Time
	pause   time.Duration // before the next start
	due     time.Time     // when the next start is; zero while it runs, and before its first start
}

// supervisor runs the components of one cluster. It does so in one thread, because processes get their parent-death
// signal when the thread that started them ends.
type supervisor struct {
	home  string
	all   []*supervised
	exits chan exit
}

type exit struct {
	of  *supervised
	err error
}

// Supervise runs the components of the cluster in a folder. It follows the orders until ctx ends, or until they end and
// the cluster isn't retained. It returns when no component is left.
func Supervise(ctx context.Context, home string, orders io.Reader) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &supervisor{home: home, exits: make(chan exit)}
	var list []process
	if err := readJSON(filepath.Join(home, processesFile), &list); err != nil {
		return err
	}
	for _, p := range list {
		s.all = append(s.all, &supervised{process: p})
	}
	me, err := identify(os.Getpid())
	if err != nil {
		return err
	}
	if err := s.note(supervisorName, state{PID: me.PID, StartTicks: me.StartTicks}); err != nil {
		return err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(orders); in.Scan(); {
			lines <- in.Text()
		}
	}()
	return errors.Join(s.run(ctx, lines), s.stop())
}

// lookEvery is how often a supervisor looks for a component to start again, or to resume.
const lookEvery = 100 * time.Millisecond

func (s *supervisor) run(ctx context.Context, orders <-chan string) error {
	retained := false
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case order, more := <-orders:
			if !more && !retained {
				return nil
			}
			if !more {
				orders = nil
			}
			if name, ok := strings.CutPrefix(order, orderStart); ok {
				err = s.startNamed(name)
			}
			if text, ok := strings.CutPrefix(order, orderRun); ok {
				err = s.startNew(text)
			}
			retained = retained || order == orderRetain
		case e := <-s.exits:
			err = s.exited(e)
		case <-look.C:
			err = errors.Join(s.startDue(), s.resumeDue())
		}
		if err != nil {
			return err
		}
	}
}

func (s *supervisor) startNamed(name string) error {
	for _, p := range s.all {
		if p.Name == name && p.Starts == 0 {
			return s.start(p)
		}
	}
	return nil
}

func (s *supervisor) startNew(text string) error {
	p := &supervised{}
	if err := json.Unmarshal([]byte(text), &p.process); err != nil {
		return fmt.Errorf("reading the process to run: %w", err)
	}
	s.all = append(s.all, p)
	return s.start(p)
}

// startDue starts the processes that have waited long enough, or that are to be restarted at once.
func (s *supervisor) startDue() error {
	for _, p := range s.all {
		if p.due.IsZero() || !s.canStart(p) {
			continue
		}
		asked, err := takeMark(restartMark(s.home, p.Name))
		if err == nil && (asked || time.Now().After(p.due)) {
			if !asked {
				p.Restarts++
			}
			err = s.start(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resumeDue makes the processes go on whose pauseMark names a time that is over.
func (s *supervisor) resumeDue() error {
	for _, p := range s.all {
		mark := pauseMark(s.home, p.Name)
		until, err := os.ReadFile(mark)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if at, err := time.Parse(time.RFC3339Nano, string(until)); err == nil && time.Now().Before(at) {
			continue
		}
		if _, err := takeMark(mark); err != nil {
			return err
		}
		if p.PID != 0 {
			err = p.child.signal(syscall.SIGCONT)
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
	}
	return nil
}

// canStart reports whether a process could be started. One whose container has ended waits for it.
func (s *supervisor) canStart(p *supervised) bool {
	c, err := containerOf(s.home, p.Name)
	return err != nil || c == nil || c.answers()
}

// child is a process that was started, here or in another container.
type child interface {
	identity() (pid int, startTicks int64, err error)
	signal(sig os.Signal) error
	wait() error // as exec.Cmd's Wait
}

// own is a process of the supervisor's own.
type own struct{ *exec.Cmd }

func (o own) identity() (pid int, startTicks int64, err error) {
	id, err := identify(o.Process.Pid)
	return id.PID, id.StartTicks, err
}
func (o own) signal(sig os.Signal) error { return o.Process.Signal(sig) }
func (o own) wait() error                { return o.Wait() }

func (s *supervisor) start(p *supervised) error {
	log, err := os.OpenFile(
		filepath.Join(p.Logs, fmt.Sprintf("%d.log", p.Starts)),
		os.O_CREATE|os.O_WRONLY|os.O_EXCL,
		0o600,
	)
	if err != nil {
		return err
	}
	p.Starts++
	p.started, p.due = time.Now(), time.Time{}
	added, err := addedFlags(s.home, p.Name)
	if err != nil {
		return errors.Join(err, log.Close())
	}
	p.cmd = exec.Command(p.Path, cluster.WithFlags(p.Args, added)...)
	read, write, err := os.Pipe()
	if err != nil {
		return errors.Join(err, log.Close())
	}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = s.home, write, write
	// Neither the user's kubeconfig nor the user's home, where kwok reads files.
	p.cmd.Env = slices.Concat(
		os.Environ(),
		[]string{cluster.AccessVariable + "="},
		p.Env,
		[]string{"HOME=" + s.home},
	)
	p.cmd.SysProcAttr = withParent()
	err = p.begin(s.home, write)
	_ = write.Close() // the process has its own
	if err != nil {
		fmt.Fprintf(log, "%s stderr F starting it: %v\n", time.Now().UTC().Format(logTime), err)
		_, _ = read.Close(), log.Close()
		p.Last = p.endedWith(err)
		return s.recordExit(p, fmt.Errorf("starting it: %w", err))
	}
	child := p.child
	pid, ticks, err := child.identity() // it is there until it is waited for
	go func() {
		copyLog(log, read)
		_, _ = read.Close(), log.Close()
		s.exits <- exit{p, child.wait()}
	}()
	if err != nil {
		return err
	}
	p.PID, p.StartTicks, p.Exit = pid, ticks, ""
	return s.note(p.Name, p.state)
}

func (s *supervisor) exited(e exit) error {
	asked, err := takeMark(restartMark(s.home, e.of.Name))
	if err != nil {
		return err
	}
	e.of.Last = e.of.endedWith(e.err)
	if e.of.memory.ranOut() {
		e.of.Last.OutOfMemory = true
	}
	if asked && !s.canStart(e.of) { // its container ended, and has to be there again first
		asked, err = false, os.WriteFile(restartMark(s.home, e.of.Name), nil, 0o600)
		if err != nil {
			return err
		}
	}
	if asked {
		e.of.PID = 0
		return s.start(e.of)
	}
	if e.err == nil {
		e.err = errors.New("exit status 0")
	}
	return s.recordExit(e.of, e.err)
}

// recordExit notes down why a process doesn't run, and when it is started again.
func (s *supervisor) recordExit(p *supervised, err error) error {
	if time.Since(p.started) > ranForLong {
		p.pause = 0
	}
	p.PID, p.StartTicks, p.Exit = 0, 0, err.Error()
	p.due = time.Now().Add(p.pause)
	p.pause = min(max(2*p.pause, firstPause), longestWait)
	return s.note(p.Name, p.state)
}

// stop kills what runs and waits for it.
func (s *supervisor) stop() error {
	var errs []error
	for _, p := range s.all {
		if p.PID == 0 {
			continue
		}
		if err := p.child.signal(os.Kill); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
	}
	for slices.ContainsFunc(s.all, func(p *supervised) bool { return p.PID != 0 }) {
		(<-s.exits).of.PID = 0
	}
	return errors.Join(errs...)
}

// note writes a process's state for whoever asks.
func (s *supervisor) note(name string, st state) error {
	b, err := json.Marshal(st)
	if err != nil {
		return err
	}
	at := statePath(s.home, name)
	if err := os.WriteFile(at+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(at+".new", at)
}

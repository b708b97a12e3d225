package clustertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// AnswerFunc answers an HTTP path, its query included.
type AnswerFunc func(path string) ([]byte, error)

// Component is a process in memory. It implements cluster.Component.
type Component struct {
	node *Node
	name string

	mu      sync.Mutex
	id      cluster.Identity // PID 0 while it doesn't run
	binary  []byte
	answers map[string]AnswerFunc
	log     []string
	wake    chan struct{} // closed and replaced when something was logged
	ask     func(ctx context.Context, what string) error
	pauses  int
	resume  *time.Timer // at the end of the latest pause

	starts    int
	added     map[string]string // flags, by RestartWith
	arguments []string          // of the process
}

func newComponent(n *Node, name string, pid int) *Component {
	k := &Component{
		node:    n,
		name:    name,
		binary:  n.program(name),
		answers: map[string]AnswerFunc{},
		wake:    make(chan struct{}),
		id: cluster.Identity{
			PID:        pid,
			StartTicks: int64(pid),
			CPUTicks:   1,
			ArgStart:   argStart(int64(pid)),
			Randomize:  2,
			Limits:     cluster.CPULimits{Known: true, Cores: runtime.NumCPU()},
		},
	}
	k.Answer("/healthz", func(string) ([]byte, error) { return []byte("ok"), nil })
	k.arguments = k.commandLine()
	return k
}

// argStart returns the address of the arguments of a process that started at startTicks. Each start gives another
// address.
func argStart(startTicks int64) uint64 { return 0x7ffd_0000_0000 + uint64(startTicks)<<12 }

// Name returns the component's name.
func (k *Component) Name() string { return k.name }

// Node returns where it runs.
func (k *Component) Node() cluster.Node { return k.node }

// Abilities returns what can be done to a process in memory.
func (k *Component) Abilities() cluster.ComponentAbilities {
	return cluster.ComponentAbilities{Pause: k, Restart: k.Restart, Flags: k, Limit: k.limit}
}

// Answer makes f answer requests for path, with any query. A path without such a function answers 404. /healthz has one
// from the start.
func (k *Component) Answer(path string, f AnswerFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answers[path] = f
}

// Say makes path answer with a fixed text.
func (k *Component) Say(path, text string) {
	k.Answer(path, func(string) ([]byte, error) { return []byte(text), nil })
}

func (k *Component) answer(path string) ([]byte, error) {
	bare, _, _ := strings.Cut(path, "?")
	k.mu.Lock()
	f, pid := k.answers[bare], k.id.PID
	k.mu.Unlock()
	switch {
	case pid == 0:
		return nil, errors.New("connection refused")
	case f == nil:
		return nil, errors.New("404 Not Found")
	}
	return f(path)
}

// Get returns the answer of the function that Answer was given for path.
func (k *Component) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	err := ctx.Err()
	var b []byte
	if err == nil {
		b, err = k.answer("/" + strings.TrimPrefix(path, "/"))
	}
	if err != nil {
		return nil, fmt.Errorf("asking the %s of %s: GET %s: %w", k.name, k.node.name, path, err)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// Log adds lines to the component's log; whoever follows it reads them at once.
func (k *Component) Log(lines ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log = append(k.log, lines...)
	close(k.wake)
	k.wake = make(chan struct{})
}

// Logs streams the lines so far and those to come, until ctx ends or the node is switched off.
func (k *Component) Logs(ctx context.Context) (io.ReadCloser, error) {
	if !k.node.powered() {
		return nil, fmt.Errorf(
			"following the log of %s on %s: the node is off",
			k.name,
			k.node.name,
		)
	}
	r, w := io.Pipe()
	stop := context.AfterFunc(ctx, func() { w.Close() })
	go func() {
		defer stop()
		for at := 0; ; {
			k.mu.Lock()
			lines, wake := k.log[at:], k.wake
			k.mu.Unlock()
			for _, line := range lines {
				if _, err := io.WriteString(w, line+"\n"); err != nil {
					return // the reader was closed, or ctx ended
				}
			}
			at += len(lines)
			if !k.node.powered() {
				w.CloseWithError(
					fmt.Errorf(
						"following the log of %s on %s: it ended by itself",
						k.name,
						k.node.name,
					),
				)
				return
			}
			select {
			case <-ctx.Done():
				w.Close() // here too, because the deferred stop may come before AfterFunc has run
				return
			case <-wake:
			}
		}
	}()
	return r, nil
}

// Signal ends the process by SIGKILL, SIGTERM and SIGQUIT, and ignores other signals. Another process takes its place,
// with a count of restarts that is one higher, as under a supervisor.
func (k *Component) Signal(ctx context.Context, sig os.Signal, of cluster.Identity) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	k.mu.Lock()
	running := k.id.PID != 0 && (of.PID == 0 || k.id.Same(of))
	k.mu.Unlock()
	if !running {
		return fmt.Errorf(
			"sending %v to the %s of %s: %w",
			sig,
			k.name,
			k.node.name,
			cluster.ErrNoProcess,
		)
	}
	if sig == syscall.SIGKILL || sig == syscall.SIGTERM || sig == syscall.SIGQUIT {
		k.start(true)
	}
	return nil
}

// OnAct makes Pause, Resume, Restart, RestartWith, Added and Identity call f first, with "pause", "resume", "restart",
// "flags" or "identity". If f returns an error,
// so does the call, and nothing is done.
func (k *Component) OnAct(f func(ctx context.Context, what string) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ask = f
}

func (k *Component) asked(ctx context.Context, what string) error {
	k.mu.Lock()
	f := k.ask
	k.mu.Unlock()
	if err := ctx.Err(); err != nil || f == nil {
		return err
	}
	return f(ctx, what)
}

// Pause marks the process as stopped until atMost is over. Nothing else changes: the component goes on answering.
func (k *Component) Pause(ctx context.Context, atMost time.Duration) error {
	if err := k.asked(ctx, "pause"); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.id.PID == 0 {
		return fmt.Errorf("pausing the %s of %s: no process", k.name, k.node.name)
	}
	k.pauses++
	k.id.Stopped = true
	if k.resume != nil {
		k.resume.Stop()
	}
	k.resume = time.AfterFunc(atMost, k.goOn)
	return nil
}

// Resume marks the process as not stopped.
func (k *Component) Resume(ctx context.Context) error {
	if err := k.asked(ctx, "resume"); err != nil {
		return err
	}
	k.goOn()
	return nil
}

func (k *Component) goOn() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.id.Stopped = false
	if k.resume != nil {
		k.resume.Stop()
	}
}

// Pauses returns how often the process was stopped, and whether it is stopped now.
func (k *Component) Pauses() (ever int, now bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pauses, k.id.Stopped
}

// Starts returns how often a process was started in place of another.
func (k *Component) Starts() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.starts
}

// Restart replaces the process by another one, on purpose: the count of restarts stays.
func (k *Component) Restart(ctx context.Context) error {
	if err := k.asked(ctx, "restart"); err != nil {
		return err
	}
	if !k.node.powered() {
		return fmt.Errorf("restarting the %s of %s: the node is off", k.name, k.node.name)
	}
	k.start(false)
	return nil
}

// limit replaces the process as Restart does. Nothing is limited.
func (k *Component) limit(ctx context.Context, _ string) error { return k.Restart(ctx) }

// Identity returns which process runs now, or an error if none does.
func (k *Component) Identity(ctx context.Context, digest bool) (cluster.Identity, error) {
	if err := k.asked(ctx, "identity"); err != nil {
		return cluster.Identity{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.id.PID == 0 {
		return cluster.Identity{}, fmt.Errorf(
			"identifying the %s of %s: no process",
			k.name,
			k.node.name,
		)
	}
	id := k.id
	if digest {
		sum := sha256.Sum256(k.binary)
		id.SHA256 = hex.EncodeToString(sum[:])
	}
	return id, nil
}

func (k *Component) start(unasked bool) {
	binary := k.node.program(k.name)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.binary = binary
	k.id.StartTicks++
	k.starts++
	k.id.Stopped = false
	k.arguments = k.commandLine()
	k.id.PID, k.id.ArgStart = int(k.id.StartTicks), argStart(k.id.StartTicks)
	if unasked {
		k.id.Restarts++
	}
}

func (k *Component) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.id.PID = 0
	close(k.wake) // followers of the log look at the power again
	k.wake = make(chan struct{})
}

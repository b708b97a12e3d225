package clustertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// ExecFunc runs a command of a node. stdin is never nil. An error stands for an exit code other than 0; Exec adds
// stdout to it.
type ExecFunc func(ctx context.Context, stdin io.Reader, argv []string) (stdout []byte, err error)

// Node is a node in memory. It implements cluster.Node.
type Node struct {
	name    string
	spec    cluster.NodeSpec
	cluster *Cluster

	mu         sync.Mutex
	on         bool
	booted     time.Time
	ended      time.Time // when it was switched off last
	offs       int
	power      func(ctx context.Context, on bool) error
	network    network
	files      map[string][]byte
	programs   map[string][]byte
	handlers   map[string]ExecFunc
	running    []string // command lines
	components []*Component
}

// Name returns the name of the Node object.
func (n *Node) Name() string { return n.name }

// Role returns the topology's role.
func (n *Node) Role() string { return n.spec.Role }

// Arm returns the topology's arm.
func (n *Node) Arm() string { return n.spec.Arm }

// Objects returns the name of the Node object.
func (n *Node) Objects() []string { return []string{n.name} }

// Abilities returns commands, a power switch and a network.
func (n *Node) Abilities() cluster.NodeAbilities {
	return cluster.NodeAbilities{Commands: n, Power: n, Network: n}
}

// Folder returns where a component's own files would be.
func (n *Node) Folder(component string) string { return "/var/lib/relapse/" + component }

// Handle makes f run the command argv0. It takes precedence over the built-in commands: echo, cat, sleep, pgrep.
func (n *Node) Handle(argv0 string, f ExecFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handlers[argv0] = f
}

// Exec runs a command that was given to Handle, or a built-in one. Any other is not found. Exec fails while the power
// is off.
func (n *Node) Exec(ctx context.Context, stdin io.Reader, argv ...string) ([]byte, error) {
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	line := strings.Join(argv, " ")
	f, err := n.begin(ctx, argv, line)
	if err != nil {
		return nil, fmt.Errorf("executing %q on node %s: %w", argv, n.name, err)
	}
	out, err := f(ctx, stdin, argv)
	n.end(line)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		return out, nil
	}
	err = fmt.Errorf("executing %q on node %s: %w", argv, n.name, err)
	if said := strings.TrimSpace(string(out)); said != "" {
		err = fmt.Errorf("%w; it printed: %s", err, said)
	}
	return out, err
}

// Look runs Exec with text for stdin.
func (n *Node) Look(ctx context.Context, stdin []byte, argv ...string) ([]byte, error) {
	return n.Exec(ctx, bytes.NewReader(stdin), argv...)
}

func (n *Node) begin(ctx context.Context, argv []string, line string) (ExecFunc, error) {
	if len(argv) == 0 {
		return nil, errors.New("no command")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.on {
		return nil, errors.New("the node is off")
	}
	f := n.handlers[argv[0]]
	if f == nil {
		f = map[string]ExecFunc{"echo": echo, "cat": n.cat, "sleep": sleep, "pgrep": n.pgrep}[argv[0]]
	}
	if f == nil {
		return nil, fmt.Errorf("%s: command not found", argv[0])
	}
	n.running = append(n.running, line)
	return f, nil
}

func (n *Node) end(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.Index(n.running, line); i >= 0 {
		n.running = slices.Delete(n.running, i, i+1)
	}
}

func echo(_ context.Context, _ io.Reader, argv []string) ([]byte, error) {
	return []byte(strings.Join(argv[1:], " ") + "\n"), nil
}

// cat prints files that were installed; with no argument it copies its input.
func (n *Node) cat(_ context.Context, stdin io.Reader, argv []string) ([]byte, error) {
	if len(argv) == 1 {
		return io.ReadAll(stdin)
	}
	var out bytes.Buffer
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, path := range argv[1:] {
		b, ok := n.files[path]
		if !ok {
			return out.Bytes(), fmt.Errorf(
				"exit status 1: cat: %s: No such file or directory",
				path,
			)
		}
		out.Write(b)
	}
	return out.Bytes(), nil
}

func sleep(ctx context.Context, _ io.Reader, argv []string) ([]byte, error) {
	d, err := time.ParseDuration(argv[1] + "s")
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(d):
		return nil, nil
	}
}

// pgrep acts as pgrep -f for the commands that run by way of Exec, and leaves itself out.
func (n *Node) pgrep(_ context.Context, _ io.Reader, argv []string) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out bytes.Buffer
	for i, line := range n.running {
		if !strings.HasPrefix(line, "pgrep") && strings.Contains(line, argv[len(argv)-1]) {
			fmt.Fprintln(&out, 1000+i)
		}
	}
	if out.Len() == 0 {
		return nil, errors.New("exit status 1")
	}
	return out.Bytes(), nil
}

// program returns the program that a component is started from. Where the topology gave it none, that is its name.
func (n *Node) program(name string) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.programs[name]; len(b) > 0 {
		return b
	}
	return []byte(name)
}

// Install replaces a program that was installed at creation.
func (n *Node) Install(_ context.Context, component, source string) error {
	b, err := os.ReadFile(source)
	if err != nil {
		return fmt.Errorf(
			"installing %s as the %s of node %s: %w",
			source,
			component,
			n.name,
			err,
		)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.programs[component]; !ok {
		return fmt.Errorf(
			"installing %s as the %s of node %s: only what the topology installed can be replaced",
			source,
			component,
			n.name,
		)
	}
	n.programs[component] = b
	return nil
}

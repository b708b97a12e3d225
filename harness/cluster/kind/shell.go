package kind

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// mostShells is the largest number of shells in a node: one for each of the collectors that look at the same time.
const mostShells = 4

// shells are the open shells in a cluster's nodes, which run one command after the other. Starting a shell costs the
// engine more than most commands.
type shells struct {
	mu   sync.Mutex
	free map[string][]*shell // by node
	all  map[string]int
}

// Look runs the command in a shell that stays open in the node. If ctx ends first, the command, what it started and the
// shell are killed. If all shells are taken or the shell breaks, Exec runs the command.
func (n *Node) Look(ctx context.Context, stdin []byte, argv ...string) ([]byte, error) {
	s := n.shell()
	if s == nil {
		return n.exec(ctx, stdin, argv)
	}
	mark := rand.Text()
	done := make(chan struct{})
	var a answered
	go func() { defer close(done); a = s.run(mark, stdin, argv) }()
	select {
	case <-done:
	case <-ctx.Done():
		s.end()
		<-done
	}
	switch {
	case ctx.Err() != nil && a.err != nil:
		n.killMarked(ctx, mark)
		a.err = ctx.Err()
	case a.err != nil: // the shell failed, not the command
		n.give(s, false)
		return n.exec(ctx, stdin, argv)
	case a.code != 0:
		a.err = fmt.Errorf("exit status %d", a.code)
	}
	n.give(s, a.code >= 0)
	if a.err == nil {
		return a.out, nil
	}
	return a.out, n.failed(argv, a.err, a.said, a.out)
}

// exec runs Exec with text for stdin.
func (n *Node) exec(ctx context.Context, stdin []byte, argv []string) ([]byte, error) {
	if stdin == nil {
		return n.Exec(ctx, nil, argv...)
	}
	return n.Exec(ctx, bytes.NewReader(stdin), argv...)
}

// shell returns a shell that nobody uses, or a new one. It returns nil if the node has mostShells in use, or if none
// can be started.
func (n *Node) shell() *shell {
	all := &n.c.shells
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.free == nil {
		all.free, all.all = map[string][]*shell{}, map[string]int{}
	}
	for len(all.free[n.name]) > 0 {
		last := len(all.free[n.name]) - 1
		s := all.free[n.name][last]
		all.free[n.name] = all.free[n.name][:last]
		if s.alive() {
			return s
		}
		all.all[n.name]--
	}
	if all.all[n.name] >= mostShells {
		return nil
	}
	s, err := newShell(n.c.p.docker.Path, n.name)
	if err != nil {
		return nil // Exec fails for the same reason, and says so
	}
	all.all[n.name]++
	return s
}

// give puts a shell back among the free ones, or ends it if it is no longer whole.
func (n *Node) give(s *shell, whole bool) {
	all := &n.c.shells
	all.mu.Lock()
	defer all.mu.Unlock()
	if whole {
		all.free[n.name] = append(all.free[n.name], s)
		return
	}
	s.end()
	all.all[n.name]--
}

// shell is one shell in a node. It ends with its standard input: when end is called, when this process is gone, or when
// the node is.
type shell struct {
	in        io.Writer
	out, said *bufio.Reader
	over      chan struct{} // closed when it has ended
	end       context.CancelFunc
}

func newShell(docker, node string) (*shell, error) {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, docker, "exec", "--interactive", node, "sh")
	in, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	outs, out := io.Pipe()
	saids, said := io.Pipe()
	cmd.Stdout, cmd.Stderr = out, said
	cmd.WaitDelay = time.Second // output that nobody reads must not hide that the shell has ended
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	s := &shell{
		in:   in,
		out:  bufio.NewReaderSize(outs, 64<<10),
		said: bufio.NewReader(saids),
		over: make(chan struct{}),
	}
	s.end = func() {
		cancel()
		_ = outs.Close() // whoever writes must not wait for a reader any more
		_ = saids.Close()
	}
	go func() {
		defer close(s.over)
		err := fmt.Errorf("the shell in the node ended: %w", orEOF(cmd.Wait()))
		out.CloseWithError(err)
		said.CloseWithError(err)
		cancel()
	}()
	return s, nil
}

func orEOF(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

func (s *shell) alive() bool {
	select {
	case <-s.over:
		return false
	default:
		return true
	}
}

// answered is the result of a command. If the shell failed, err says why and code is -1.
type answered struct {
	out, said []byte
	code      int
	err       error
}

// run runs a command and reads its output up to a line that begins with mark, which no command can know.
func (s *shell) run(mark string, stdin []byte, argv []string) answered {
	if _, err := io.WriteString(s.in, request(mark, stdin, argv)); err != nil {
		return answered{code: -1, err: err}
	}
	var said []byte
	var saidErr error
	read := make(chan struct{})
	go func() { defer close(read); said, _, saidErr = until(s.said, mark) }()
	out, last, err := until(s.out, mark)
	<-read
	if err == nil {
		err = saidErr
	}
	code, notNumber := strconv.Atoi(last)
	if err == nil {
		err = notNumber
	}
	if err != nil {
		return answered{code: -1, err: err}
	}
	return answered{out: out, said: said, code: code}
}

// request returns the text that makes the shell run a command in a subshell, whose environment has the mark. After the
// output the shell prints the mark and the exit status.
func request(mark string, stdin []byte, argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = quote(a)
	}
	in, from := "", " </dev/null"
	if stdin != nil {
		in, from = "printf %s "+quote(string(stdin))+" | ", ""
	}
	return fmt.Sprintf("%s(export %s=%s; exec %s)%s\nprintf '\\n%s %%d\\n' $?; printf '\\n%s 0\\n' >&2\n",
		in, execMark, mark, strings.Join(words, " "), from, mark, mark)
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// until reads up to the line that begins with mark. It returns the text before that line, without the last newline, and
// what the line says after the mark.
func until(r *bufio.Reader, mark string) (before []byte, last string, err error) {
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return nil, "", err
		}
		if said, ok := bytes.CutPrefix(line, []byte(mark+" ")); ok {
			return bytes.TrimSuffix(before, []byte("\n")), strings.TrimSpace(string(said)), nil
		}
		before = append(before, line...)
	}
}

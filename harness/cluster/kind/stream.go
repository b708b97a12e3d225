package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
)

// lifeline is a script that runs its arguments for as long as its own standard input is open. The engine closes that
// when its client is gone, even if the client, or this process, was killed. The command itself it would leave running.
const lifeline = `exec 3<&0
( cat >/dev/null; kill -KILL $$ ) <&3 >/dev/null 2>&1 &
exec 3<&-
exec "$@" </dev/null`

// stream starts a command in the node and returns what it prints. The command ends when ctx ends or the reader is
// closed.
func (n *Node) stream(ctx context.Context, argv ...string) (io.ReadCloser, error) {
	fail := func(err error) (io.ReadCloser, error) {
		return nil, fmt.Errorf("streaming from %q on node %s: %w", argv, n.name, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	args := append([]string{"exec", "--interactive", n.name, "sh", "-c", lifeline, "sh"}, argv...)
	s := &stream{cmd: exec.CommandContext(ctx, n.c.p.docker.Path, args...), ctx: ctx, cancel: cancel,
		what: fmt.Sprintf("%q on node %s", argv, n.name)}
	s.cmd.Stderr = &s.stderr
	hold, err := s.cmd.StdinPipe()
	if err != nil {
		cancel()
		return fail(err)
	}
	s.hold = hold
	if s.Reader, err = s.cmd.StdoutPipe(); err != nil {
		cancel()
		return fail(err)
	}
	if err := s.cmd.Start(); err != nil {
		cancel()
		return fail(err)
	}
	return s, nil
}

type stream struct {
	io.Reader
	cmd    *exec.Cmd
	ctx    context.Context
	cancel context.CancelFunc
	hold   io.Closer
	stderr bytes.Buffer
	what   string

	once sync.Once
	err  error
}

// Read returns io.EOF if the stream was ended on purpose, and another error if the command ended first.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err == nil || n > 0 {
		return n, nil
	}
	asked := s.ctx.Err() != nil
	s.finish(asked)
	switch {
	case asked:
		return 0, io.EOF
	case s.err != nil:
		return 0, fmt.Errorf(
			"streaming from %s: %w: %s",
			s.what,
			s.err,
			strings.TrimSpace(s.stderr.String()),
		)
	case errors.Is(err, io.EOF):
		return 0, fmt.Errorf("streaming from %s: it ended by itself", s.what)
	}
	return 0, err
}

// Close ends the stream, and the command in the node.
func (s *stream) Close() error {
	s.finish(true)
	return nil
}

func (s *stream) finish(kill bool) {
	s.once.Do(func() {
		defer s.cancel()
		_ = s.hold.Close()
		if kill {
			s.cancel()
		}
		s.err = s.cmd.Wait()
	})
}

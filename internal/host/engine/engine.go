// Package engine deals with the container engine that clusters run on. It finds out whether the engine is there and can
// run privileged nodes, and mends it where a host's bounded capabilities prevent that.
package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

var (
	// ErrNoCLI says that the engine's command-line client isn't on PATH.
	ErrNoCLI = errors.New("no docker command on PATH")
	// ErrNoDaemon says that the client is there and its daemon doesn't answer.
	ErrNoDaemon = errors.New("the docker daemon doesn't answer")
)

// answerTime is how long a healthy daemon may take to say its version.
const answerTime = 20 * time.Second

// Engine runs an engine's command-line client.
type Engine struct {
	Name string // "docker"
	Path string // the client's absolute path, or its name on PATH
}

// CommandError is the failure of a client command.
type CommandError struct {
	Args   []string // the whole command line, the program's name first
	Stderr string   // the command's standard error, trimmed
	Err    error    // *exec.ExitError, or the context's error
}

// Error returns the command line, how the command ended, and its standard error.
func (e *CommandError) Error() string {
	msg := fmt.Sprintf("running `%s`: %v", strings.Join(e.Args, " "), e.Err)
	if e.Stderr != "" {
		msg += ": " + e.Stderr
	}
	return msg
}

// Unwrap returns how the command ended.
func (e *CommandError) Unwrap() error { return e.Err }

// Detect finds the engine on PATH and asks its daemon for a version. Its error
// wraps ErrNoCLI or ErrNoDaemon and says what to install or to start.
func Detect(ctx context.Context) (*Engine, error) {
	path, err := exec.LookPath("docker")
	if err != nil {
		return nil, fmt.Errorf("%w: install it (on Debian: `apt-get install -y docker.io`)", ErrNoCLI)
	}
	e := &Engine{Name: "docker", Path: path}
	ask, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if _, err := e.Output(ask, "version", "--format", "{{.Server.Version}}"); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: start it (`systemctl start docker`, or `dockerd` as root), and check DOCKER_HOST and `docker context ls`: %w", ErrNoDaemon, err)
	}
	return e, nil
}

// OnDemand is this host's engine, which is looked for at each call of a method. If there is no engine, the method
// returns an error.
type OnDemand struct{}

// Output runs Engine.Output.
func (OnDemand) Output(ctx context.Context, args ...string) ([]byte, error) {
	e, err := Detect(ctx)
	if err != nil {
		return nil, err
	}
	return e.Output(ctx, args...)
}

// Stream runs Engine.Stream.
func (OnDemand) Stream(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	e, err := Detect(ctx)
	if err != nil {
		return err
	}
	return e.Stream(ctx, in, out, args...)
}

// Output runs the client with args and returns its standard output. A failure
// is a *CommandError.
func (e *Engine) Output(ctx context.Context, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := e.Stream(ctx, nil, &out, args...)
	return out.Bytes(), err
}

// Stream runs the client with args, in as its standard input (nil for none)
// and out as its standard output (nil to discard). A failure is a
// *CommandError that carries standard error.
func (e *Engine) Stream(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, e.Path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &stderr
	cmd.WaitDelay = 5 * time.Second // a grandchild may hold the pipes after a cancel
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err() // "signal: killed" hides that we did it
	}
	return &CommandError{Args: append([]string{e.Name}, args...), Stderr: strings.TrimSpace(stderr.String()), Err: err}
}

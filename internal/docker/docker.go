// Package docker runs docker's command-line client.
package docker

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
	// ErrNoCLI says that the client isn't on PATH.
	ErrNoCLI = errors.New("no docker command on PATH")
	// ErrNoDaemon says that the client is there and its daemon doesn't answer.
	ErrNoDaemon = errors.New("the docker daemon doesn't answer")
)

// answerTime is how long a healthy daemon may take to say its version.
const answerTime = 20 * time.Second

// Client runs the command-line client.
type Client struct {
	Path string // its absolute path, or its name on PATH
}

// CommandError is the failure of a command of the client.
type CommandError struct {
	Args   []string // without the client's name
	Stderr string   // the command's standard error, trimmed
	Err    error    // *exec.ExitError, or the context's error
}

// Error returns the command line, how the command ended, and its standard error.
func (e *CommandError) Error() string {
	msg := fmt.Sprintf("running `docker %s`: %v", strings.Join(e.Args, " "), e.Err)
	if e.Stderr != "" {
		msg += ": " + e.Stderr
	}
	return msg
}

// Unwrap returns how the command ended.
func (e *CommandError) Unwrap() error { return e.Err }

// Detect finds the client on PATH and asks its daemon for a version. Its error wraps ErrNoCLI or ErrNoDaemon and says
// what to install or to start.
func Detect(ctx context.Context) (*Client, error) {
	path, err := exec.LookPath("docker")
	if err != nil {
		return nil, noCLI()
	}
	c := &Client{Path: path}
	ask, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if _, err := c.Output(ask, "version", "--format", "{{.Server.Version}}"); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf(
			"%w: start it (`systemctl start docker`, or `dockerd` as root), and check DOCKER_HOST and `docker context ls`: %w",
			ErrNoDaemon,
			err,
		)
	}
	return c, nil
}

func noCLI() error {
	return fmt.Errorf("%w: install it (on Debian: `apt-get install -y docker.io`)", ErrNoCLI)
}

// OnDemand is a Client that each call of a method looks for anew. If there is none, the method returns Detect's error.
type OnDemand struct{}

// Output runs Client.Output.
func (OnDemand) Output(ctx context.Context, args ...string) ([]byte, error) {
	c, err := Detect(ctx)
	if err != nil {
		return nil, err
	}
	return c.Output(ctx, args...)
}

// Stream runs Client.Stream.
func (OnDemand) Stream(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	c, err := Detect(ctx)
	if err != nil {
		return err
	}
	return c.Stream(ctx, in, out, args...)
}

// Output runs the client with args and returns its standard output. A failure is a *CommandError.
func (c *Client) Output(ctx context.Context, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := c.Stream(ctx, nil, &out, args...)
	return out.Bytes(), err
}

// Stream runs the client with args, in as its standard input (nil for none) and out as its standard output (nil to
// discard). A failure is a *CommandError that carries standard error.
func (c *Client) Stream(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &stderr
	cmd.WaitDelay = 5 * time.Second // a grandchild may hold the pipes after a cancel
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound):
		return noCLI()
	case ctx.Err() != nil:
		err = ctx.Err() // "signal: killed" hides that we did it
	}
	return &CommandError{Args: args, Stderr: strings.TrimSpace(stderr.String()), Err: err}
}

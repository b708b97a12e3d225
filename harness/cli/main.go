// Package cli is relapse's command line. A program with kinds of its own links them and calls Main.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	_ "github.com/kube-relapse/relapse/scenarios"
)

// Main runs the command line with the arguments of this process, and returns its exit code.
func Main() int {
	klog.LogToStderr(false) // client-go's messages about its rate limits don't belong in a run's output
	klog.SetOutput(io.Discard)
	ctx, stop := interruptible(os.Stderr)
	defer stop()
	err := newRootCmd().ExecuteContext(ctx)
	return report(os.Stderr, ctx, err)
}

// interruptible returns a context that ends with the first interrupt. A second interrupt only prints a line, because
// the clean-up goes on to its end, within its own time limits.
func interruptible(w io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for sig := range signals {
			if ctx.Err() == nil {
				fmt.Fprintf(w, "\n%s: stopping, and removing what was made\n", sig)
				cancel()
				continue
			}
			fmt.Fprintf(w, "\n%s: still removing what was made; if this is killed, relapse clean does the rest\n", sig)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// report prints the error with its hint and returns the exit code.
func report(w io.Writer, ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	var e *exitError
	if !errors.As(err, &e) {
		e = &exitError{code: exitOwnFailure, err: err}
	}
	if ctx.Err() != nil {
		said := errors.New("interrupted")
		if more := withoutInterrupt(err); more != nil { // an error of the clean-up must not get lost
			said = fmt.Errorf("interrupted: %w", more)
		}
		e = &exitError{code: exitInterrupted, err: said, hint: e.hint}
	}
	if e.err != nil {
		fmt.Fprintln(w, "error:", e.err)
	}
	if e.hint != "" {
		fmt.Fprintln(w, "hint:", e.hint)
	}
	return e.code
}

// withoutInterrupt returns the parts of an error that are not the interrupt itself, or nil if there are none.
func withoutInterrupt(err error) error {
	var e *exitError
	if errors.As(err, &e) {
		err = e.err
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, part := range joined.Unwrap() {
			rest = append(rest, withoutInterrupt(part))
		}
		return errors.Join(rest...)
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

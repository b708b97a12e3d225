// Command relapse brings back a known Kubernetes illness on purpose, in the real component, to prove that a cure works.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(relapse()) }

// relapse runs the command line and is its exit code. The context ends with the first interrupt; a second one changes nothing, so
// that what is being undone stays undone.
func relapse() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newRootCmd().ExecuteContext(ctx)
	return report(os.Stderr, ctx, err)
}

// report prints what went wrong and returns the exit code.
func report(w io.Writer, ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	var e *exitError
	if !errors.As(err, &e) {
		e = &exitError{code: exitOwnFailure, err: err}
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		e = &exitError{code: exitInterrupted, err: errors.New("interrupted"), hint: e.hint}
	}
	if e.err != nil {
		fmt.Fprintln(w, "error:", e.err)
	}
	if e.hint != "" {
		fmt.Fprintln(w, "hint:", e.hint)
	}
	return e.code
}

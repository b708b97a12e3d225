// Package cli is relapse's command line. A program with kinds of its own links them and calls Main.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/internal/printing"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// Main runs the command line with the arguments of this process, and returns its exit code.
func Main() int {
	klog.LogToStderr(false) // client-go's messages about its rate limits don't belong in a run's output
	klog.SetOutput(io.Discard)
	ctx, stop := interruptible(context.Background(), os.Stderr)
	defer stop()
	return Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// Run runs the command line with the given arguments, and returns its exit code. When ctx ends, it removes what it made,
// and returns as for an interrupt.
func Run(ctx context.Context, args []string, out, errs io.Writer) int {
	root := newRootCmd()
	root.SetArgs(args)
	// Cobra says that a flag is deprecated on what is set here, and on stderr otherwise: it would spoil JSON on stdout.
	if out != os.Stdout {
		root.SetOut(out)
	}
	root.SetErr(errs)
	cmd, err := root.ExecuteContextC(ctx)
	return finish(ctx, cmd, err)
}

// interruptible returns a context that ends with the first interrupt. A second interrupt only prints a line, because
// the clean-up goes on to its end, within its own time limits.
func interruptible(ctx context.Context, w io.Writer) (context.Context, func()) {
	var leaves leaving
	ctx, cancel := context.WithCancel(context.WithValue(ctx, leavingKey{}, &leaves))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for sig := range signals {
			what := leaves.Load()
			switch {
			case ctx.Err() == nil && what != nil:
				fmt.Fprintf(w, "\n%s: stopping; %s goes on\n", sig, *what)
			case ctx.Err() == nil:
				fmt.Fprintf(w, "\n%s: stopping, and removing what was made\n", sig)
			case what != nil:
				fmt.Fprintf(w, "\n%s: still stopping; %s goes on\n", sig, *what)
			default:
				fmt.Fprintf(
					w,
					"\n%s: still removing what was made; if this is killed, relapse clean does the rest\n",
					sig,
				)
			}
			cancel()
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// leaving names what goes on after an interrupt; nil if nothing does, because what was made is removed.
type leaving = atomic.Pointer[string]

type leavingKey struct{}

// leaves has an interrupt say, from now on, that something goes on; "" is for nothing.
func leaves(ctx context.Context, what string) {
	l, ok := ctx.Value(leavingKey{}).(*leaving)
	switch {
	case ok && what == "":
		l.Store(nil)
	case ok:
		l.Store(&what)
	}
}

// finish prints a command's error with its hint, and below them the last line if the command has one and the error is
// no wrong usage. It returns the exit code.
func finish(ctx context.Context, cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	var e *exitError
	if !errors.As(err, &e) {
		e = &exitError{code: exitOwnFailure, err: err}
	}
	if e.err == nil { // the verdict was printed, with the code in its last line
		return e.code
	}
	word := verdict.VerdictError
	if ctx.Err() != nil {
		said := errors.New("interrupted")
		if more := withoutInterrupt(err); more != nil { // an error of the clean-up must not get lost
			said = fmt.Errorf("interrupted: %w", more)
		}
		e, word = &exitError{code: exitInterrupted, err: said, hint: e.hint}, "interrupted"
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "error:", e.err)
	if e.hint != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "hint:", e.hint)
	}
	if cmd.Annotations[endsInVerdict] != "" && e.code != exitUsage {
		printLast(cmd, word, e.code)
	}
	return e.code
}

// endsInVerdict is the annotation of the commands whose output ends with the line "relapse: VERDICT (exit N)".
const endsInVerdict = "ends in a verdict"

// concluding marks a command that ends in a verdict.
func concluding(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{endsInVerdict: "yes"}
	return cmd
}

// printLast prints the last line of a command that ends in a verdict. Where the command prints for programs, the line
// goes to stderr.
func printLast(cmd *cobra.Command, v verdict.Verdict, code int) {
	w := cmd.OutOrStdout()
	if output := cmd.Flag("output"); output != nil && output.Value.String() != string(printing.Text) {
		w = cmd.ErrOrStderr()
	}
	fmt.Fprintln(w, judge.LastLine(v, code))
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

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/trial"
)

// What failed while a run was broken off is said, and the interrupt itself isn't said twice.
func TestAnInterruptHidesNoOtherError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	left := &trial.LiftError{Err: errors.New("recovering slow in fixed: the proxy doesn't answer")}
	const last = "relapse: interrupted (exit 130)\n"
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"nothing else", context.Canceled, "error: interrupted\n"},
		{"a fault that was not lifted", errors.Join(context.Canceled, left),
			"error: interrupted: a fault may still be in force: recovering slow in fixed: the proxy doesn't answer\n"},
		{"with a hint", hinted(errors.Join(errors.Join(fmt.Errorf("building: %w", context.Canceled), left), nil), "relapse clean"),
			"error: interrupted: a fault may still be in force: recovering slow in fixed: the proxy doesn't answer\nhint: relapse clean\n"},
		{"something else alone", errors.New("disk full"), "error: interrupted: disk full\n"},
	} {
		var said, out bytes.Buffer
		cmd := concluding(&cobra.Command{})
		cmd.SetErr(&said)
		cmd.SetOut(&out)
		if code := finish(ctx, cmd, c.err); code != exitInterrupted || said.String() != c.want || out.String() != last {
			t.Errorf("%s: exit %d, said %q and %q, want %q and %q", c.name, code, said.String(), out.String(), c.want, last)
		}
	}
}

// A verdict that was printed stands, also if an interrupt comes after it; wrong usage has no last line, nor has a command
// that ends in no verdict.
func TestTheLastLine(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	ends, other := concluding(&cobra.Command{}), &cobra.Command{}
	for _, c := range []struct {
		name string
		ctx  context.Context
		cmd  *cobra.Command
		err  error
		code int
		want string
	}{
		{"a failure", t.Context(), ends, errors.New("disk full"), 4, "relapse: Error (exit 4)\n"},
		{"wrong usage", t.Context(), ends, usage(errors.New("no such flag"), ""), 64, ""},
		{"a verdict before the interrupt", interrupted, ends, exitWith(1), 1, ""},
		{"success", t.Context(), ends, nil, 0, ""},
		{"a command without a verdict", t.Context(), other, errors.New("disk full"), 4, ""},
		{"an interrupted command without a verdict", interrupted, other, context.Canceled, 130, ""},
	} {
		var said, out bytes.Buffer
		c.cmd.SetErr(&said)
		c.cmd.SetOut(&out)
		if code := finish(c.ctx, c.cmd, c.err); code != c.code || out.String() != c.want {
			t.Errorf("%s: exit %d, the last line is %q; want %d and %q", c.name, code, out.String(), c.code, c.want)
		}
	}
}

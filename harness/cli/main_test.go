package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/kube-relapse/relapse/harness/trial"
)

// What failed while a run was broken off is said, and the interrupt itself isn't said twice.
func TestAnInterruptHidesNoOtherError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	left := &trial.LiftError{Err: errors.New("recovering slow in fixed: the proxy doesn't answer")}
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
		var said bytes.Buffer
		if code := report(&said, ctx, c.err); code != exitInterrupted || said.String() != c.want {
			t.Errorf("%s: exit %d, said %q, want %q", c.name, code, said.String(), c.want)
		}
	}
}

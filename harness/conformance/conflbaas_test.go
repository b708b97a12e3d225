package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/fixtures/control/controltest"
)

// lbaasSide is the real load balancer API. A node of the suite starts one when it is first needed.
type lbaasSide struct{ dir, bin, address string }

func newLBaaSSide(t *testing.T, dir string) (*lbaasSide, error) {
	bin, err := lbaas()
	if err != nil {
		return nil, err
	}
	address, err := controltest.Free()
	if err != nil {
		return nil, err
	}
	l := &lbaasSide{dir, bin, address}
	return l, controltest.Start(t, exec.Command(bin, "serve", "--listen", address, "--control", l.path("sock")))
}

func (l *lbaasSide) path(name string) string { return filepath.Join(l.dir, "lbaas-"+name) }

// runLBaaS runs the API's program as the node would, after the node's hook.
func (c *criNode) runLBaaS(ctx context.Context, stdin io.Reader, argv []string) ([]byte, error) {
	if err := c.hooked(ctx, argv); err != nil {
		return nil, err
	}
	l, err := c.lbaas()
	if err != nil {
		return nil, err
	}
	return l.run(ctx, stdin, argv)
}

// run runs the program with the node's own socket and address.
func (l *lbaasSide) run(ctx context.Context, stdin io.Reader, argv []string) ([]byte, error) {
	args := slices.Clone(argv[1:])
	switch args[0] {
	case "ctl":
		args = slices.Insert(args, 1, "--control", l.path("sock"))
	case "probe":
		args = append(args, "--address", l.address)
	}
	return controltest.Run(exec.CommandContext(ctx, l.bin, args...), stdin)
}

// lbaasOf returns a client of a node's API that bypasses the hook.
func lbaasOf(t *testing.T, n *criNode) *control.LBaaSClient {
	t.Helper()
	l, err := n.lbaas()
	if err != nil {
		t.Fatal(err)
	}
	return control.NewLBaaSClient(func(ctx context.Context, args []string, stdin []byte) ([]byte, error) {
		return l.run(ctx, bytes.NewReader(stdin), args)
	})
}

// lbaasSlow returns a function that tells whether an answer takes the delay.
func lbaasSlow(delay time.Duration) func(*testing.T, *criNode) bool {
	return func(t *testing.T, n *criNode) bool {
		p, err := lbaasOf(t, n).Probe(t.Context(), patience)
		if err != nil || !p.Well() {
			t.Fatalf("%s, %v", p, err)
		}
		return time.Duration(p.Took) >= delay
	}
}

// lbaasArmed counts the armings of a node's API, and lists those that are still armed.
func lbaasArmed(t *testing.T, n *criNode) (ever int, armed []string) {
	t.Helper()
	s, err := lbaasOf(t, n).State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Arms {
		if r.EndedAt == nil {
			armed = append(armed, fmt.Sprintf("%+v", r))
		}
	}
	return len(s.Arms), armed
}

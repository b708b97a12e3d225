package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
)

// lbaasSide is the real load balancer API. A node of the suite starts one when it is first asked for.
type lbaasSide struct{ dir, bin, address string }

func newLBaaSSide(t *testing.T, dir string) (*lbaasSide, error) {
	bin, err := lbaas()
	if err != nil {
		return nil, err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &lbaasSide{dir, bin, free.Addr().String()}
	free.Close()
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: l.path("notify"), Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	defer notify.Close()
	cmd := exec.Command(bin, "serve", "--listen", l.address, "--control", l.path("sock"))
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+l.path("notify"))
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait() // it was killed: that is its error
	})
	if err := notify.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	message := make([]byte, 64)
	if n, err := notify.Read(message); err != nil || string(message[:n]) != "READY=1" {
		return nil, fmt.Errorf("the load balancer API said %q, %v, want READY=1", message[:n], err)
	}
	return l, nil
}

func (l *lbaasSide) path(name string) string { return filepath.Join(l.dir, "lbaas-"+name) }

// runLBaaS is the API's program as the node runs it.
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

// run is the program on the node's own places.
func (l *lbaasSide) run(ctx context.Context, stdin io.Reader, argv []string) ([]byte, error) {
	args := slices.Clone(argv[1:])
	switch args[0] {
	case "ctl":
		args = slices.Insert(args, 1, "--control", l.path("sock"))
	case "probe":
		args = append(args, "--address", l.address)
	}
	cmd := exec.CommandContext(ctx, l.bin, args...)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &said
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("%w: %s", err, said.String())
	}
	return out.Bytes(), nil
}

// lbaasOf is the client of a node's API, past the hook.
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

// lbaasSlow reports whether an answer takes the delay.
func lbaasSlow(delay time.Duration) func(*testing.T, *criNode) bool {
	return func(t *testing.T, n *criNode) bool {
		p, err := lbaasOf(t, n).Probe(t.Context(), patience)
		if err != nil || !p.Well() {
			t.Fatalf("%s, %v", p, err)
		}
		return time.Duration(p.Took) >= delay
	}
}

// lbaasArmed counts what was ever armed in a node's API, and lists what still is.
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

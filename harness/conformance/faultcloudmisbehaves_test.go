package conformance_test

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/fixtures/control/controltest"
)

func init() {
	faults.add(faultCase{lay: layLBaaS}, "cloudMisbehaves")
}

// layLBaaS gives each worker a load balancer API and its program. The nodes' hooks are called before the program runs.
func layLBaaS(t *testing.T, w *world) sight {
	t.Helper()
	all := map[*criNode]*lbaasSide{}
	for _, n := range w.nodes {
		l, err := newLBaaSSide(t, n.dir)
		if err != nil {
			t.Fatal(err)
		}
		all[n] = l
		n.handle(control.LBaaSBinaryPath, l.run)
	}
	return sight{
		armed:   func(t *testing.T, n *criNode) (int, []string) { return all[n].armed(t) },
		inForce: func(t *testing.T, n *criNode) bool { return all[n].slow(t) },
	}
}

// lbaas builds the load balancer API once.
var lbaas = once("lbaas")

// lbaasSide is the real load balancer API of a node.
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

// run runs the program with the node's own socket and address.
func (l *lbaasSide) run(ctx context.Context, stdin io.Reader, argv []string) ([]byte, error) {
	return runFixture(ctx, stdin, l.bin, argv, []string{"--control", l.path("sock")}, []string{"--address", l.address})
}

// client returns a client of the API that bypasses the node's hook.
func (l *lbaasSide) client() *control.LBaaSClient {
	return control.NewLBaaSClient(func(ctx context.Context, args []string, stdin []byte) ([]byte, error) {
		return l.run(ctx, bytes.NewReader(stdin), args)
	})
}

// slow tells whether an answer takes the fault's delay.
func (l *lbaasSide) slow(t *testing.T) bool {
	t.Helper()
	p, err := l.client().Probe(t.Context(), controltest.Patience)
	if err != nil || !p.Well() {
		t.Fatalf("%s, %v", p, err)
	}
	return time.Duration(p.Took) >= time.Second
}

// armed counts the armings of the API, and lists those that are still armed.
func (l *lbaasSide) armed(t *testing.T) (ever int, armed []string) {
	t.Helper()
	s, err := l.client().State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return armedOf(s.Arms)
}

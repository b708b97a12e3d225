package conformance_test

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/fixtures/control/controltest"
)

func init() {
	faults.add(faultCase{name: "extender", lay: layExtenders,
		spec: `{"extender":{"verbs":["filter"]},"rules":[{"answer":{"NodeNames":[],"FailedNodes":{"a":"$(arm)"}}}]}`}, "webhook")
}

// layExtenders gives each worker an extender of kube-scheduler. The nodes' hooks are called before its program runs.
func layExtenders(t *testing.T, w *world) sight {
	t.Helper()
	all := map[*criNode]*extenderSide{}
	for _, n := range w.nodes {
		x, err := newExtenderSide(t, n.dir)
		if err != nil {
			t.Fatal(err)
		}
		all[n] = x
		n.handle(control.ExtenderBinaryPath, x.run)
	}
	return sight{
		armed:   func(t *testing.T, n *criNode) (int, []string) { return all[n].armed(t) },
		inForce: func(t *testing.T, n *criNode) bool { return all[n].refuses(t) },
	}
}

// schedulerExtender builds the extender once.
var schedulerExtender = once("scheduler-extender")

// extenderSide is the real extender of a node.
type extenderSide struct{ dir, bin, address string }

func newExtenderSide(t *testing.T, dir string) (*extenderSide, error) {
	bin, err := schedulerExtender()
	if err != nil {
		return nil, err
	}
	address, err := controltest.Free()
	if err != nil {
		return nil, err
	}
	x := &extenderSide{dir, bin, address}
	return x, controltest.Start(t, exec.Command(bin, "serve", "--listen", address, "--control", x.socket()))
}

func (x *extenderSide) socket() string { return filepath.Join(x.dir, "x-sock") }

// run runs the program with the node's own socket and address.
func (x *extenderSide) run(ctx context.Context, stdin io.Reader, argv []string) ([]byte, error) {
	place := []string{"--control", x.socket()}
	if argv[1] == "probe" {
		place = []string{"--address", x.address}
	}
	args := append(append([]string{argv[1]}, place...), argv[2:]...)
	return controltest.Run(exec.CommandContext(ctx, x.bin, args...), stdin)
}

func (x *extenderSide) client() *control.ExtenderClient {
	return control.NewExtenderClient(func(ctx context.Context, args []string, stdin []byte) ([]byte, error) {
		return x.run(ctx, bytes.NewReader(stdin), args)
	})
}

// refuses tells whether a pod gets the answer of the rule. Without the rule, its node must stay.
func (x *extenderSide) refuses(t *testing.T) bool {
	t.Helper()
	p, err := x.client().Probe(t.Context(), control.ExtenderFilter, `{"Pod":{"metadata":{"name":"p"}},"NodeNames":["a"]}`, controltest.Patience)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(p.Body, `"FailedNodes":{"a":"`+arm+`"}`) {
		return true
	}
	if p.Err == "" && !strings.Contains(p.Body, `"NodeNames":["a"]`) { // an error is an endpoint that has ended
		t.Errorf("it answers %+v", p)
	}
	return false
}

// armed counts the armings of the extender, and lists those that are still armed.
func (x *extenderSide) armed(t *testing.T) (ever int, armed []string) {
	t.Helper()
	s, err := x.client().State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return armedOf(s.Arms)
}

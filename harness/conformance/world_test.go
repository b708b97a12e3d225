package conformance_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/kubernetes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/fixtures/control/controltest"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// arm is the arm of the first worker, and other that of the second.
const (
	arm   = "vulnerable"
	other = "fixed"
)

// world is a cluster in memory. Its workers have the real interposer in front of a container runtime in memory.
type world struct {
	*clustertest.Cluster
	nodes  []*criNode    // the workers
	builds []fault.Build // of their kubelets, of which each runs the first
}

// criNode is a worker with a runtime and an interposer. hook, if set, is called before each action on the node. Its
// error is the action's.
type criNode struct {
	*clustertest.Node
	dir     string
	bin     string
	runtime *memoryRuntime
	cri     runtimeapi.RuntimeServiceClient
	serving *exec.Cmd

	mu   sync.Mutex
	hook func(ctx context.Context, argv []string) error
}

// newWorld starts a control plane and two workers. All of it ends with the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	for _, program := range []string{"one", "two"} {
		b := fault.Build{Path: filepath.Join(t.TempDir(), program), Digest: fmt.Sprintf("%x", sha256.Sum256([]byte(program)))}
		if err := os.WriteFile(b.Path, []byte(program), 0o700); err != nil {
			t.Fatal(err)
		}
		w.builds = append(w.builds, b)
	}
	programs := map[string]string{"kubelet": w.builds[0].Path}
	w.Cluster = clustertest.New("conformance", cluster.Topology{Nodes: []cluster.NodeSpec{
		{Name: "control-plane", Role: cluster.ControlPlane}, {Name: "worker", Role: cluster.Worker, Arm: arm, Programs: programs},
		{Name: "worker2", Role: cluster.Worker, Arm: other, Programs: programs},
	}})
	t.Cleanup(w.Close)
	bin, err := interposer()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"worker", "worker2"} {
		w.nodes = append(w.nodes, newCRINode(t, w.Node(name), bin))
	}
	return w
}

func newCRINode(t *testing.T, n *clustertest.Node, bin string) *criNode {
	t.Helper()
	dir, err := os.MkdirTemp("", "cri") // a socket's path may have 107 bytes, and the test's own directory is longer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &criNode{Node: n, dir: dir, bin: bin, runtime: newMemoryRuntime()}
	l, err := net.Listen("unix", c.path("runtime.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, c.runtime)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	c.serve(t)
	c.handle(control.BinaryPath, c.run)
	conn, err := grpc.NewClient("unix:"+c.path("cri.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(control.MaxAnswer)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c.cri = runtimeapi.NewRuntimeServiceClient(conn)
	return c
}

func (c *criNode) path(name string) string { return filepath.Join(c.dir, name) }

// serve starts the interposer and returns when the interposer reports that it is ready.
func (c *criNode) serve(t *testing.T) {
	t.Helper()
	c.serving = exec.Command(c.bin, "serve", "--listen", c.path("cri.sock"), "--control", c.path("control.sock"), "--containerd", "unix:"+c.path("runtime.sock"))
	if err := controltest.Start(t, c.serving); err != nil {
		t.Fatal(err)
	}
}

// kill ends the interposer with SIGKILL, as an out-of-memory killer would.
func (c *criNode) kill() {
	if c.serving.ProcessState == nil {
		c.serving.Process.Kill()
		c.serving.Wait() // the error is that it was killed
	}
}

// intercept sets the hook, or removes it if hook is nil.
func (c *criNode) intercept(hook func(ctx context.Context, argv []string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hook = hook
}

func (c *criNode) hooked(ctx context.Context, argv []string) error {
	c.mu.Lock()
	hook := c.hook
	c.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(ctx, argv)
}

// handle makes f run a program on the node, after the node's hook.
func (c *criNode) handle(program string, f clustertest.ExecFunc) {
	c.Handle(program, func(ctx context.Context, stdin io.Reader, argv []string) ([]byte, error) {
		if err := c.hooked(ctx, argv); err != nil {
			return nil, err
		}
		return f(ctx, stdin, argv)
	})
}

// run runs the interposer's program as the node would, with the node's own sockets.
func (c *criNode) run(ctx context.Context, stdin io.Reader, argv []string) ([]byte, error) {
	return runFixture(ctx, stdin, c.bin, argv, []string{"--control", c.path("control.sock")}, []string{"--listen", c.path("cri.sock")})
}

// runFixture runs a fixture's program as a node would. The commands ctl and probe get the flags ctl and probe, so that
// they reach the node's own sockets and addresses.
func runFixture(ctx context.Context, stdin io.Reader, bin string, argv, ctl, probe []string) ([]byte, error) {
	args := argv[1:]
	switch args[0] {
	case "ctl":
		args = slices.Concat(args[:1], ctl, args[1:])
	case "probe":
		args = slices.Concat(args, probe) // at the end, because the last of two equal flags counts
	}
	return controltest.Run(exec.CommandContext(ctx, bin, args...), stdin)
}

// client returns a client of the interposer that bypasses the hook.
func (c *criNode) client() *control.Client {
	return control.NewClient(func(ctx context.Context, args []string, stdin []byte) ([]byte, error) {
		return c.run(ctx, bytes.NewReader(stdin), args)
	})
}

// armedOf counts the armings of a fixture, and lists those that are still armed.
func armedOf[A interface{ Armed() bool }](arms []A) (ever int, armed []string) {
	for _, a := range arms {
		if a.Armed() {
			armed = append(armed, fmt.Sprintf("%+v", a))
		}
	}
	return len(arms), armed
}

// newCounts returns a count for each worker.
func newCounts(w *world) map[*criNode]*atomic.Int64 {
	counts := map[*criNode]*atomic.Int64{}
	for _, n := range w.nodes {
		counts[n] = &atomic.Int64{}
	}
	return counts
}

// tester is the user agent that tells the suite's own requests from those of the kind under test.
const tester = "the-tester"

// testerOf returns the suite's own client of a cluster's API server.
func testerOf(t *testing.T, c *clustertest.Cluster) *kubernetes.Clientset {
	t.Helper()
	cfg := c.RESTConfig()
	cfg.QPS, cfg.UserAgent = -1, tester
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// built holds the folders of the programs that were built. TestMain removes them.
var built sync.Map

func TestMain(m *testing.M) {
	code := m.Run()
	built.Range(func(dir, _ any) bool {
		os.RemoveAll(dir.(string))
		return true
	})
	os.Exit(code)
}

// interposer builds the CRI interposer once.
var interposer = once("cri-interposer")

// once returns a function that builds a fixture when it is first called, and returns the program's path.
func once(fixture string) func() (string, error) {
	return sync.OnceValues(func() (string, error) { return program(fixture) })
}

// program builds a fixture and returns the program's path.
func program(fixture string) (string, error) {
	dir, err := os.MkdirTemp("", fixture)
	if err != nil {
		return "", err
	}
	built.Store(dir, true)
	bin := filepath.Join(dir, fixture)
	if out, err := exec.Command("go", "build", "-o", bin, "../../fixtures/"+fixture).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", fixture, err, out)
	}
	return bin, nil
}

// events collects the events of a stream.
type events struct {
	mu  sync.Mutex
	all []event.Event
}

func (e *events) Emit(one event.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, one)
}

// of returns the nodes that events of a type are about, sorted.
func (e *events) of(typ string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []string
	for _, one := range e.all {
		if one.Type == typ {
			out = append(out, fmt.Sprint(one.Fields["node"]))
		}
	}
	slices.Sort(out)
	return out
}

// message returns what the last event of a type says, "" if there was none.
func (e *events) message(typ string) (said string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range e.all {
		if one.Type == typ {
			said = one.Message
		}
	}
	return said
}

func newBundle(t *testing.T) *bundle.Writer {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func phaseEvent(phase string) event.Event { return event.Event{Type: event.Phase, Message: phase} }

var errBroken = errors.New("broken on purpose")

// names tells whether an error is errBroken, or an API server's answer that contains errBroken's text.
func names(err error) bool { return err != nil && strings.Contains(err.Error(), errBroken.Error()) }

func reported(id string) bool { return strings.HasPrefix(id, control.IDPrefix) }

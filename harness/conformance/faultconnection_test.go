package conformance_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/fixtures/control/controltest"
)

func init() {
	faults.add(faultCase{lay: func(t *testing.T, w *world) sight {
		e := layEtcd(t, w)
		return sight{armed: e.armed, inForce: e.slow}
	}}, "latency")
	faults.add(faultCase{lay: func(t *testing.T, w *world) sight {
		e := layEtcd(t, w)
		return sight{armed: e.armed, inForce: e.silent, beside: e.slow}
	}}, "outage")
	faults.add(faultCase{lay: func(t *testing.T, w *world) sight {
		e := layEtcd(t, w)
		return sight{armed: e.armed, inForce: e.narrow}
	}}, "bandwidth")
}

// etcds holds the etcd of each worker.
type etcds map[*criNode]*etcdSide

// layEtcd gives each worker an etcd and the program of its proxy. The nodes' hooks are called before the program runs.
func layEtcd(t *testing.T, w *world) etcds {
	t.Helper()
	all := etcds{}
	for _, n := range w.nodes {
		e, err := newEtcdSide(t, n.dir)
		if err != nil {
			t.Fatal(err)
		}
		all[n] = e
		n.handle(etcd.BinaryPath(), e.run)
	}
	return all
}

// connectionProxy builds the proxy once.
var connectionProxy = once("connection-proxy")

// etcd is the connection on which the faults are tried.
var etcd = control.Connections["etcd"]

// etcdSide is a fake etcd that answers only for its health and its metrics, behind the real proxy.
type etcdSide struct {
	dir, bin, address string // the proxy's address
	etcd              *httptest.Server
	client            *http.Client
}

func newEtcdSide(t *testing.T, dir string) (*etcdSide, error) {
	bin, err := connectionProxy()
	if err != nil {
		return nil, err
	}
	e := &etcdSide{dir: dir, bin: bin}
	e.etcd, err = controltest.Etcd(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == etcd.Bulk {
			w.Write(make([]byte, 20_000))
			return
		}
		io.WriteString(w, `{"health":"true"}`)
	}, e.path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(e.etcd.Certificate())
	e.client = &http.Client{Timeout: 4 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: e.etcd.TLS.Certificates}}}
	t.Cleanup(e.client.CloseIdleConnections)
	return e, e.serve(t)
}

func (e *etcdSide) path(name string) string { return filepath.Join(e.dir, "etcd-"+name) }

// serve starts the proxy and returns when the proxy reports that it is ready.
func (e *etcdSide) serve(t *testing.T) (err error) {
	if e.address, err = controltest.Free(); err != nil {
		return err
	}
	return controltest.Start(t, exec.Command(e.bin, "serve", "--connection", etcd.Name, "--listen", e.address,
		"--control", e.path("sock"), "--upstream", e.etcd.Listener.Addr().String()))
}

// run runs the proxy's program with the node's own socket, addresses and certificates.
func (e *etcdSide) run(ctx context.Context, stdin io.Reader, argv []string) ([]byte, error) {
	return runFixture(ctx, stdin, e.bin, argv, []string{"--control", e.path("sock")}, []string{
		"--through", e.address, "--direct", e.etcd.Listener.Addr().String(), "--cert", e.path("cert"), "--key", e.path("key"), "--ca", e.path("ca"),
	})
}

// ask makes one request through the proxy. It uses an open connection if there is one.
func (e *etcdSide) ask(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+e.address+path, nil)
	if err != nil {
		return err
	}
	answer, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// slow tells whether answers take the latency on a connection that was used before. It fails the test if there is no
// answer.
func (all etcds) slow(t *testing.T, n *criNode) bool {
	t.Helper()
	if err := all[n].ask(t.Context(), etcd.Path); err != nil {
		t.Fatal(err)
	}
	return slow(t, func() error { return all[n].ask(t.Context(), etcd.Path) })
}

// narrow tells whether many bytes take long, on a connection that was used before. It fails the test if they don't come.
func (all etcds) narrow(t *testing.T, n *criNode) bool {
	t.Helper()
	if err := all[n].ask(t.Context(), etcd.Path); err != nil {
		t.Fatal(err)
	}
	return slow(t, func() error { return all[n].ask(t.Context(), etcd.Bulk) })
}

// silent tells whether a request gets no answer.
func (all etcds) silent(t *testing.T, n *criNode) bool {
	return all[n].ask(t.Context(), etcd.Path) != nil
}

// armed counts the armings of a node's proxy, and lists those that are still armed.
func (all etcds) armed(t *testing.T, n *criNode) (ever int, armed []string) {
	t.Helper()
	c := control.NewConnectionClient(func(ctx context.Context, args []string, stdin []byte) ([]byte, error) {
		return all[n].run(ctx, bytes.NewReader(stdin), args)
	}, etcd)
	s, err := c.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return armedOf(s.Arms)
}

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
	for _, c := range []struct{ fault, spec string }{{"latency", `"latency":"250ms"`}, {"outage", `"connections":"keep"`},
		{"bandwidth", `"rate":"50k"`}} {
		for of, lay := range map[string]func(*testing.T, *world) servers{"": layEtcd, "kubelet-apiserver": layAPIServer, "apiserver-webhook": layWays} {
			one := faultCase{name: of, lay: func(t *testing.T, w *world) sight { return lay(t, w).sight(c.fault) }}
			if of != "" {
				one.spec = `{"connection":"` + of + `",` + c.spec + `}`
			}
			faults.add(one, c.fault)
		}
	}
}

// servers holds what each worker's proxy leads to.
type servers map[*criNode]*serverSide

// sight is how a fault is seen at the proxies.
func (all servers) sight(fault string) sight {
	s := sight{armed: all.armed, inForce: all.slow}
	switch fault {
	case "outage":
		s.inForce, s.beside = all.silent, all.slow
	case "bandwidth":
		s.inForce = all.narrow
	}
	return s
}

func layEtcd(t *testing.T, w *world) servers { return layProxied(t, w, etcd) }

// layAPIServer puts an API server behind the proxy of each worker's kubelet.
func layAPIServer(t *testing.T, w *world) servers {
	return layProxied(t, w, control.Connections["kubelet-apiserver"])
}

// layProxied gives each worker a server and the program of the proxy before it. The nodes' hooks are called before the
// program runs.
func layProxied(t *testing.T, w *world, of control.Connection) servers {
	t.Helper()
	all := servers{}
	for _, n := range w.nodes {
		e, err := newServerSide(t, n.dir, of)
		if err != nil {
			t.Fatal(err)
		}
		all[n] = e
		n.handle(of.BinaryPath(), e.run)
	}
	return all
}

// connectionProxy builds the proxy once.
var connectionProxy = once("connection-proxy")

// etcd is the connection that all clusters have.
var etcd = control.Connections["etcd"]

// serverSide is a fake server that answers only a probe, behind the real proxy.
type serverSide struct {
	of                control.Connection
	dir, bin, address string // the proxy's address
	server            *httptest.Server
	client            *http.Client
	serving           *exec.Cmd // the proxy, where servers come and go
}

func newServerSide(t *testing.T, dir string, of control.Connection) (*serverSide, error) {
	bin, err := connectionProxy()
	if err != nil {
		return nil, err
	}
	e := &serverSide{of: of, dir: dir, bin: bin}
	e.server, err = controltest.Etcd(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == of.Bulk {
			w.Write(make([]byte, 20_000))
			return
		}
		io.WriteString(w, "{"+of.Healthy+"}")
	}, e.path)
	if err != nil {
		return nil, err
	}
	e.trust(t, e.server.Certificate(), e.server.TLS.Certificates)
	return e, e.serve(t)
}

// trust makes the client, which trusts a server and has certificates of its own.
func (e *serverSide) trust(t *testing.T, server *x509.Certificate, own []tls.Certificate) {
	roots := x509.NewCertPool()
	roots.AddCert(server)
	e.client = &http.Client{Timeout: 4 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: own}}}
	t.Cleanup(e.client.CloseIdleConnections)
}

func (e *serverSide) path(name string) string { return filepath.Join(e.dir, "proxy-"+name) }

// serve starts the proxy and returns when the proxy reports that it is ready.
func (e *serverSide) serve(t *testing.T) (err error) {
	if e.address, err = controltest.Free(); err != nil {
		return err
	}
	return controltest.Start(t, exec.Command(e.bin, "serve", "--connection", e.of.Name, "--listen", e.address,
		"--control", e.path("sock"), "--upstream", e.server.Listener.Addr().String()))
}

// run runs the proxy's program with the node's own socket, addresses and certificates.
func (e *serverSide) run(ctx context.Context, stdin io.Reader, argv []string) ([]byte, error) {
	if e.of.Ways { // it knows the addresses itself
		place := []string{"--control", e.path("sock")}
		return runFixture(ctx, stdin, e.bin, argv, place, place)
	}
	return runFixture(ctx, stdin, e.bin, argv, []string{"--control", e.path("sock")}, []string{
		"--through", e.address, "--direct", e.server.Listener.Addr().String(), "--cert", e.path("cert"), "--key", e.path("key"), "--ca", e.path("ca"),
	})
}

// control returns a client of the proxy that bypasses the node's hook.
func (e *serverSide) control() *control.ConnectionClient {
	return control.NewConnectionClient(func(ctx context.Context, args []string, stdin []byte) ([]byte, error) {
		return e.run(ctx, bytes.NewReader(stdin), args)
	}, e.of)
}

// ask makes one request through the proxy. It uses an open connection if there is one.
func (e *serverSide) ask(ctx context.Context, path string) error {
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
func (all servers) slow(t *testing.T, n *criNode) bool {
	t.Helper()
	if err := all[n].ask(t.Context(), all[n].of.Path); err != nil {
		t.Fatal(err)
	}
	return slow(t, func() error { return all[n].ask(t.Context(), all[n].of.Path) })
}

// narrow tells whether many bytes take long, on a connection that was used before. It fails the test if they don't come.
func (all servers) narrow(t *testing.T, n *criNode) bool {
	t.Helper()
	if err := all[n].ask(t.Context(), all[n].of.Path); err != nil {
		t.Fatal(err)
	}
	return slow(t, func() error { return all[n].ask(t.Context(), all[n].of.Bulk) })
}

// silent tells whether a request gets no answer.
func (all servers) silent(t *testing.T, n *criNode) bool {
	return all[n].ask(t.Context(), all[n].of.Path) != nil
}

// armed counts the armings of a node's proxy, and lists those that are still armed.
func (all servers) armed(t *testing.T, n *criNode) (ever int, armed []string) {
	t.Helper()
	s, err := all[n].control().State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return armedOf(s.Arms)
}

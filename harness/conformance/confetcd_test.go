package conformance_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/fixtures/control/controltest"
)

// etcdSide is a fake etcd that answers only /health, behind the real etcd proxy. A node of the suite starts one when
// it is first needed.
type etcdSide struct {
	dir, bin, address string // the proxy's address
	etcd              *httptest.Server
	client            *http.Client
}

func newEtcdSide(t *testing.T, dir string) (*etcdSide, error) {
	bin, err := etcdProxy()
	if err != nil {
		return nil, err
	}
	e := &etcdSide{dir: dir, bin: bin}
	e.etcd, err = controltest.Etcd(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"health":"true"}`) }, e.path)
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
	return controltest.Start(t, exec.Command(e.bin, "serve", "--listen", e.address, "--control", e.path("sock"), "--etcd", e.etcd.Listener.Addr().String()))
}

// runEtcd runs the etcd proxy's program as the node would, after the node's hook.
func (c *criNode) runEtcd(ctx context.Context, stdin io.Reader, argv []string) ([]byte, error) {
	if err := c.hooked(ctx, argv); err != nil {
		return nil, err
	}
	e, err := c.etcd()
	if err != nil {
		return nil, err
	}
	return e.run(ctx, stdin, argv)
}

// run runs the proxy's program with the node's own socket, addresses and certificates.
func (e *etcdSide) run(ctx context.Context, stdin io.Reader, argv []string) ([]byte, error) {
	args := slices.Clone(argv[1:])
	switch args[0] {
	case "ctl":
		args = slices.Insert(args, 1, "--control", e.path("sock"))
	case "probe":
		args = append(args, "--through", e.address, "--direct", e.etcd.Listener.Addr().String(),
			"--cert", e.path("cert"), "--key", e.path("key"), "--ca", e.path("ca"))
	}
	return controltest.Run(exec.CommandContext(ctx, e.bin, args...), stdin)
}

// ask makes one request through the proxy and returns how long it took. It uses an open connection if there is one.
func (e *etcdSide) ask(ctx context.Context) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+e.address+"/health", nil)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	answer, err := e.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return time.Since(began), err
}

// etcdOf returns a node's etcd.
func etcdOf(t *testing.T, n *criNode) *etcdSide {
	t.Helper()
	e, err := n.etcd()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// etcdSlow tells whether answers take the latency on a connection that was used before.
func etcdSlow(t *testing.T, n *criNode) bool {
	e := etcdOf(t, n)
	if _, err := e.ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 { // any answer of a loaded machine may be slow; under the latency all are
		took, err := e.ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took < least {
			return false
		}
	}
	return true
}

// etcdSilent tells whether a request gets no answer.
func etcdSilent(t *testing.T, n *criNode) bool {
	_, err := etcdOf(t, n).ask(t.Context())
	return err != nil
}

// etcdArmed counts the armings of a node's etcd proxy, and lists those that are still armed.
func etcdArmed(t *testing.T, n *criNode) (ever int, armed []string) {
	t.Helper()
	e := etcdOf(t, n)
	c := control.NewEtcdClient(func(ctx context.Context, args []string, stdin []byte) ([]byte, error) {
		return e.run(ctx, bytes.NewReader(stdin), args)
	})
	s, err := c.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Arms {
		if r.Armed() {
			armed = append(armed, fmt.Sprintf("%+v", r))
		}
	}
	return len(s.Arms), armed
}

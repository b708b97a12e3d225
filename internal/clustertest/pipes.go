package clustertest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
)

// pipes is a listener within the process. A synctest bubble knows that a goroutine which waits for one of its
// connections is waiting. A goroutine that waits for a socket keeps the bubble's clock from going on.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Accept returns the server's end of the next connection.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close makes dial refuse connections.
func (p *pipes) Close() error {
	p.close.Do(func() { close(p.closed) })
	return nil
}

// Addr returns the address that URLs have for a host. Nobody looks it up, because clients use dial.
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6443} }

// dial returns the client's end of a new connection.
func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// start starts a server that is reached through the pipes.
func (p *pipes) start(h http.Handler) *httptest.Server {
	s := &httptest.Server{Listener: p, Config: &http.Server{Handler: h}}
	s.Start()
	return s
}

// lead makes the clients of c use the pipes, and no proxy from the environment.
func (p *pipes) lead(c *rest.Config) *rest.Config {
	c.Dial = p.dial
	c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	return c
}

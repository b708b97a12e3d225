// Package webhook has what faults that imitate admission and conversion webhooks are made of: a server that an API server
// can call, the registration of admission webhooks, rules by which a webhook answers in its protocol, and the record of
// what it answered.
package webhook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// Server is an HTTPS server that API servers call.
type Server struct {
	listen string // where it listens, 127.0.0.1:1234
	called string // where API servers call it
	ca     []byte // in PEM, of the server's certificate
	server *http.Server
	end    func()
}

// Serve starts a server on a free port of an address. It runs until Close.
func Serve(address string, handler http.Handler) (*Server, error) {
	certificate, ca, err := selfSigned(address)
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(address, "0"),
		&tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return nil, err
	}
	over, end := context.WithCancel(context.Background())
	at := listener.Addr().String()
	s := &Server{listen: at, called: at, ca: ca}
	s.server = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
		// A request ends with the server, so that no handler waits for what can't come any more.
		BaseContext: func(net.Listener) context.Context { return over },
	}
	// First close: a webhook that has stopped hanging must not be reached.
	s.end = sync.OnceFunc(func() { _ = s.server.Close(); end() })
	go s.server.Serve(listener) //nolint:errcheck // it ends with Close
	return s, nil
}

// Close ends the server and all its connections.
func (s *Server) Close() { s.end() }

// Address returns where the server listens, as host:port.
func (s *Server) Address() string { return s.listen }

// Through makes API servers that are told of the server from now on call it at another address, which leads to it.
func (s *Server) Through(address string) { s.called = address }

// Client returns how an API server reaches a path of the server.
func (s *Server) Client(path string) admissionv1.WebhookClientConfig {
	url := "https://" + s.called + path
	return admissionv1.WebhookClientConfig{URL: &url, CABundle: s.ca}
}

// loopback is where the proxy listens through which an API server may be led to a server.
const loopback = "127.0.0.1"

// selfSigned returns a certificate for an address and for loopback that is its own authority, and that authority in PEM.
func selfSigned(address string) (out tls.Certificate, ca []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return out, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IPAddresses:           []net.IP{net.ParseIP(address), net.ParseIP(loopback)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return out, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), nil
}

package kinds

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// The paths of the webhooks that a server has.
const (
	annotatesFirst = "/annotates-first"
	annotatesLast  = "/annotates-last"
	hangs          = "/hangs"
)

// webhookServer answers an API server's admission reviews.
type webhookServer struct {
	url   string // https://127.0.0.1:1234
	ca    []byte // in PEM, of the server's certificate
	held  atomic.Int64
	close func()
}

// serveWebhooks starts a server on a free port of an address, which runs until close. Each answer has this number of
// audit annotations; the webhook that hangs doesn't answer. record is called for each review, at the time that Review
// explains.
func serveWebhooks(address string, annotations int, record func(bundle.Review)) (*webhookServer, error) {
	certificate, ca, err := selfSigned(address)
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(address, "0"), &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return nil, err
	}
	s := &webhookServer{url: "https://" + listener.Addr().String(), ca: ca}
	over, end := context.WithCancel(context.Background())
	text := annotated(annotations)
	mux := http.NewServeMux()
	for path, mutating := range map[string]bool{annotatesFirst: true, annotatesLast: false} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			one := bundle.Review{Mutating: mutating, Annotations: annotations}
			if object, ok := allow(w, r, text); ok {
				one.Object, one.Time = object, time.Now().UTC()
				record(one)
			}
		})
	}
	mux.HandleFunc("POST "+hangs, func(_ http.ResponseWriter, r *http.Request) {
		one := bundle.Review{Time: time.Now().UTC()}
		review, err := readReview(r)
		_, _ = io.Copy(io.Discard, r.Body) // an unread body would hide from the server that the client leaves
		if one.Object = review.object(); err == nil {
			record(one)
		}
		s.held.Add(1)
		select {
		case <-r.Context().Done():
		case <-over.Done():
		}
		panic(http.ErrAbortHandler) // no answer
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	s.close = func() { _ = server.Close(); end() } // first close: a webhook that has stopped hanging must not be reached
	go server.Serve(listener)                      //nolint:errcheck // it ends with close
	return s, nil
}

// annotated returns n members of a JSON object, as text.
func annotated(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k%05d":"v"`, i)
	}
	return b.String()
}

// review is the part of an API server's request that is read.
type review struct {
	Request struct {
		UID       string `json:"uid"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"request"`
}

func (r review) object() string { return r.Request.Namespace + "/" + r.Request.Name }

func readReview(r *http.Request) (out review, err error) {
	err = json.NewDecoder(r.Body).Decode(&out)
	return out, err
}

// allow answers a review, and returns the object of the review. ok says that the whole answer was written.
func allow(w http.ResponseWriter, r *http.Request, annotations string) (object string, ok bool) {
	of, err := readReview(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return "", false
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,`+
		`"allowed":true,"auditAnnotations":{%s}}}`, of.Request.UID, annotations)
	return of.object(), err == nil
}

// selfSigned returns a certificate for an address that is its own authority, and that authority in PEM.
func selfSigned(address string) (out tls.Certificate, ca []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return out, nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.ParseIP(address)}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return out, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), nil
}

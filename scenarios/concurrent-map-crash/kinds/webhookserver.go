package kinds

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/webhook"
)

// The paths of the webhooks that a server has.
const (
	annotatesFirst = "/annotates-first"
	annotatesLast  = "/annotates-last"
	hangs          = "/hangs"
)

// webhookServer answers an API server's admission reviews.
type webhookServer struct {
	*webhook.Server
	held   atomic.Int64
	record *webhook.Record
}

// serveWebhooks starts a server on a free port of an address, which runs until close. Each answer has this number of
// audit annotations; the webhook that hangs doesn't answer. Each review is recorded, at the time that Review explains.
func serveWebhooks(address string, annotations int, record *webhook.Record) (*webhookServer, error) {
	s := &webhookServer{record: record}
	text := annotated(annotations)
	mux := http.NewServeMux()
	for path, mutating := range map[string]bool{annotatesFirst: true, annotatesLast: false} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			one := bundle.Review{Mutating: mutating, Annotations: annotations}
			if object, ok := allow(w, r, text); ok {
				one.Object, one.Time = object, time.Now().UTC()
				record.Add(one)
			}
		})
	}
	mux.HandleFunc("POST "+hangs, func(_ http.ResponseWriter, r *http.Request) {
		one := bundle.Review{Time: time.Now().UTC()}
		review, err := readReview(r)
		_, _ = io.Copy(io.Discard, r.Body) // an unread body would hide from the server that the client leaves
		if one.Object = review.object(); err == nil {
			record.Add(one)
		}
		s.held.Add(1)
		<-r.Context().Done()        // the API server gave up, or the server was closed
		panic(http.ErrAbortHandler) // no answer
	})
	var err error
	s.Server, err = webhook.Serve(address, mux)
	return s, err
}

// close ends the server, and then its record.
func (s *webhookServer) close() {
	s.Close()
	s.record.End()
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

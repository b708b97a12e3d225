package load

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// send makes the round's calls, at its rate or all at once. written gets the time at which each request was written,
// answers each answer; answers is closed after the last one. When ctx ends, send makes no further calls. A slow reader
// doesn't block it.
func (p *progress) send(ctx context.Context) (written <-chan time.Time, answers <-chan bundle.Call) {
	w, a := make(chan time.Time, p.spec.Calls), make(chan bundle.Call, p.spec.Calls)
	round, began := p.out.Round, time.Now()
	go func() {
		defer close(a)
		var calls sync.WaitGroup
		defer calls.Wait()
		for i := range p.spec.Calls {
			if p.spec.Rate > 0 {
				due := began.Add(time.Duration(float64(i) / p.spec.Rate * float64(time.Second)))
				_ = wait(ctx, time.Until(due)) // the end of ctx is seen next
			}
			if ctx.Err() != nil {
				return
			}
			calls.Go(func() { a <- p.call(ctx, round, i, w) })
		}
	}()
	return w, a
}

// call makes the i-th call of a round and waits for its answer. The call is one request, without a retry. The time at
// which the request was written goes to written, at most once.
func (o *objects) call(ctx context.Context, round, i int, written chan<- time.Time) bundle.Call {
	ctx, cancel := context.WithTimeout(ctx, o.spec.Timeout.Duration)
	defer cancel()
	var once sync.Once
	wrote := func() { once.Do(func() { written <- time.Now() }) }
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			wrote()
		}
	}})
	verb, to := o.request(i)
	c := bundle.Call{Load: o.Name, Round: round, Time: time.Now().UTC(), Verb: verb, Path: to.Path}
	code, err := o.ask(ctx, http.MethodDelete, to, nil)
	c.Code, c.Done = code, time.Now().UTC()
	if err != nil {
		c.Error, c.GaveUp = err.Error(), code == 0 && ctx.Err() != nil
	}
	if code != 0 {
		wrote() // over HTTP/2 an answer may overtake the news of its request
	}
	return c
}

// request returns the verb and the URL of the i-th call. The verb is the API server's word for the request.
func (o *objects) request(i int) (verb string, to *url.URL) {
	req := o.typed.CoreV1().RESTClient().Delete()
	if o.spec.By == ByNamespaceController {
		return "DELETE", req.Resource("namespaces").Name(o.namespace(i)).URL()
	}
	return "DELETECOLLECTION", req.Namespace(o.namespace(0)).Resource("configmaps").URL()
}

// ask sends one request, with a body in JSON or none, and reads the whole answer. Code 0 means that there was no
// answer. The error is the transport's, or the message of an answer other than 2xx. client-go's own request would
// repeat some requests, and keep every deleted object in memory.
func (c *client) ask(ctx context.Context, method string, to *url.URL, body []byte) (code int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if body != nil {
		req.Header.Set("Content-Type", runtime.ContentTypeJSON)
	}
	req.Header.Set("Accept", runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON)
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 300 {
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	said, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return resp.StatusCode, err
	}
	if obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(said, nil, nil); err == nil {
		return resp.StatusCode, apierrors.FromObject(obj)
	}
	return resp.StatusCode, errors.New(strings.TrimSpace(string(said)))
}

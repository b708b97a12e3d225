package loads

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// send makes the round's calls, at its rate or all at once. written gets the time at which each request was written,
// answers each answer; answers is closed after the last one. When ctx ends, send makes no further calls. A slow reader
// doesn't block it.
func (p *progress) send(
	ctx context.Context,
) (written <-chan time.Time, answers <-chan bundle.Call) {
	w, round := make(chan time.Time, p.spec.Calls), p.out.Round
	return w, paced(
		ctx,
		p.spec.Calls,
		p.spec.Rate,
		0,
		func(i int) bundle.Call { return p.call(ctx, round, i, w) },
	)
}

// call makes the i-th call of a round and waits for its answer. The call is one request, without a retry. The time at
// which the request was written goes to written, at most once.
func (o *objects) call(ctx context.Context, round, i int, written chan<- time.Time) bundle.Call {
	var once sync.Once
	wrote := func() { once.Do(func() { written <- time.Now() }) }
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			wrote()
		}
	}})
	verb, to := o.request(i)
	c := o.answer(
		ctx,
		bundle.Call{Load: o.Name, Round: round, Verb: verb, Path: to.Path},
		o.spec.Timeout.Duration,
		request{method: http.MethodDelete, to: to},
	)
	if c.Code != 0 {
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

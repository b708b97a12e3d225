package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// patience is a transport that waits for a host's answer for a limited time. It doesn't ask a host again that let the
// time pass. Within an answer, nothing may come for six times as long.
type patience struct {
	next  http.RoundTripper
	limit time.Duration

	mu     sync.Mutex
	silent map[string]bool // hosts
}

var errSilent = errors.New("it didn't answer in time")

// RoundTrip sends a request, and returns once the answer begins.
func (p *patience) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	silent := p.silent[r.URL.Host]
	p.mu.Unlock()
	if silent {
		return nil, fmt.Errorf("%s isn't asked again in this run: %w", r.URL.Host, errSilent)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(p.limit, func() { cancel(errSilent) })
	answer, err := p.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		timer.Stop()
		if errors.Is(context.Cause(ctx), errSilent) {
			p.mu.Lock()
			p.silent[r.URL.Host] = true
			p.mu.Unlock()
			err = fmt.Errorf("%s didn't answer within %s", r.URL.Host, p.limit)
		}
		cancel(nil)
		return nil, err
	}
	timer.Stop()
	answer.Body = &body{
		answer.Body,
		ctx,
		cancel,
		time.AfterFunc(6*p.limit, func() { cancel(errStalled) }),
		6 * p.limit,
	}
	return answer, nil
}

var errStalled = errors.New("its answer broke off: nothing came any more")

// body is an answer's, which is given up if nothing comes for a while.
type body struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
}

// Read reads what came.
func (b *body) Read(to []byte) (int, error) {
	b.timer.Reset(b.limit)
	n, err := b.ReadCloser.Read(to)
	b.timer.Stop() // who reads may take their time
	if err != nil && errors.Is(context.Cause(b.ctx), errStalled) {
		err = errStalled
	}
	return n, err
}

// Close ends the request.
func (b *body) Close() error {
	b.timer.Stop()
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

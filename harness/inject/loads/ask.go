package loads

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// request is one request to the API server.
type request struct {
	method string
	to     *url.URL
	body   []byte            // JSON unless a header says otherwise; nil for none
	header map[string]string // in place of the headers that every request has
	opened func()            // called when an answer of success begins; may be nil
}

// errTimeUp is the cause of the end of a call that took longer than the load lets it.
var errTimeUp = errors.New("the time that the load gives a call was up")

// refusal is what the API server said in an answer other than 2xx.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// answer sends a request, waits for the end of its answer for a time, and completes the record of the call.
func (c *client) answer(
	ctx context.Context,
	one bundle.Call,
	within time.Duration,
	r request,
) bundle.Call {
	limited, cancel := context.WithTimeoutCause(ctx, within, errTimeUp)
	defer cancel()
	one.Time = time.Now().UTC()
	code, err := c.ask(limited, r)
	one.Code, one.Done = code, time.Now().UTC()
	if err == nil {
		return one
	}
	one.Error = err.Error()
	if _, answered := errors.AsType[refusal](err); answered {
		one.Reason = string(apierrors.ReasonForError(err))
		return one
	}
	one.GaveUp = limited.Err() != nil
	one.LoadEnded = one.GaveUp && !errors.Is(context.Cause(limited), errTimeUp)
	return one
}

// ask sends one request and reads the whole answer. Code 0 means that there was no answer. The error is the
// transport's, or a refusal. client-go's own request would repeat some requests, and keep every deleted object in
// memory.
func (c *client) ask(ctx context.Context, r request) (code int, err error) {
	req, err := http.NewRequestWithContext(ctx, r.method, r.to.String(), bytes.NewReader(r.body))
	if err != nil {
		return 0, err
	}
	if r.body != nil {
		req.Header.Set("Content-Type", runtime.ContentTypeJSON)
	}
	req.Header.Set("Accept", runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON)
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 300 {
		if r.opened != nil && bundle.Success(resp.StatusCode) {
			r.opened()
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	said, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return resp.StatusCode, err
	}
	if obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(said, nil, nil); err == nil {
		return resp.StatusCode, refusal{apierrors.FromObject(obj)}
	}
	return resp.StatusCode, refusal{errors.New(strings.TrimSpace(string(said)))}
}

// Package collect reads from a live cluster the evidence that the rules of relapse match need. It uses the user's own
// kubeconfig, makes GET requests only, and keeps to a budget. It leaves a folder that relapse match reads.
package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// Budget bounds the load on the cluster. A request that would exceed it is not made, and is reported.
type Budget struct {
	Requests   int           // how many in all
	Bytes      int64         // of all answers together
	Answer     int64         // bytes of one answer; the rest is cut off
	Goroutines int           // larger processes get no debug=2 request: it stops them for longer the more they have
	Nodes      int           // how many nodes are asked for their kubelets
	Pause      time.Duration // between two requests
	Timeout    time.Duration // of one request
}

// Default is a light load for any cluster that works.
var Default = Budget{
	Requests:   200,
	Bytes:      512 << 20,
	Answer:     64 << 20,
	Goroutines: 20_000,
	Nodes:      10,
	Pause:      200 * time.Millisecond,
	Timeout:    time.Minute,
}

// Request is one GET request, and its result.
type Request struct {
	Path   string `json:"path"`
	File   string `json:"file"` // where the answer goes, below the folder
	Why    string `json:"why"`
	Code   int    `json:"code,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	Millis int64  `json:"millis,omitempty"`
	Error  string `json:"error,omitempty"` // why there is no answer, or not all of it
}

// Options say what to collect. Zero fields of the budget take their value from Default.
type Options struct {
	Config     *rest.Config
	Dir        string   // must be missing or empty
	Components []string // whose evidence the rules need, by name
	Budget     Budget
	Log        func(Request) // called for each request that was made, or left out; may be nil
}

// requestsFile lists the requests, one a line.
const requestsFile = "requests.jsonl"

type collector struct {
	Options
	client *http.Client
	base   *url.URL
	made   int
	bytes  int64
	last   time.Time
	record *os.File
}

// Run collects the evidence. The error is a folder that can't be written, a cluster that doesn't answer at all, or the
// context's error. A request that fails is only logged and recorded.
func Run(ctx context.Context, o Options) (err error) {
	o.Budget = o.Budget.orDefault()
	config := rest.CopyConfig(o.Config)
	config.UserAgent = "relapse-collect"
	c := &collector{Options: o}
	if c.client, err = rest.HTTPClientFor(config); err != nil {
		return err
	}
	if c.base, _, err = rest.DefaultServerUrlFor(config); err != nil {
		return err
	}
	if entries, err := os.ReadDir(o.Dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("collecting to %s: it isn't empty", o.Dir)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	c.record, err = os.OpenFile(
		filepath.Join(o.Dir, requestsFile),
		os.O_CREATE|os.O_EXCL|os.O_WRONLY,
		0o600,
	)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.record.Close()) }()
	return c.all(ctx)
}

func (b Budget) orDefault() Budget {
	or := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	or(&b.Requests, Default.Requests)
	or(&b.Goroutines, Default.Goroutines)
	or(&b.Nodes, Default.Nodes)
	if b.Bytes == 0 {
		b.Bytes = Default.Bytes
	}
	if b.Answer == 0 {
		b.Answer = Default.Answer
	}
	if b.Pause == 0 {
		b.Pause = Default.Pause
	}
	if b.Timeout == 0 {
		b.Timeout = Default.Timeout
	}
	return b
}

// get makes a request if the budget allows it, and writes the answer to the request's file without secrets. It returns
// nil for an answer whose status isn't 200. The error is the context's, or that the answer can't be redacted or
// written.
func (c *collector) get(ctx context.Context, r Request) ([]byte, error) {
	body, err := c.ask(ctx, &r)
	if err == nil && r.Error == "" || len(body) > 0 {
		clean, bad := bundle.Redact(body)
		if bad != nil {
			return nil, fmt.Errorf("leaving out secrets of %s: %w", r.Path, bad)
		}
		body = clean
		to := filepath.Join(c.Dir, filepath.FromSlash(path.Clean("/"+r.File)))
		if bad := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, body, 0o600)); bad != nil {
			return nil, bad
		}
	}
	if r.Code != http.StatusOK {
		body = nil
	}
	return body, errors.Join(err, c.note(r))
}

func (c *collector) ask(ctx context.Context, r *Request) ([]byte, error) {
	switch {
	case c.made >= c.Budget.Requests:
		r.Error = fmt.Sprintf("not made: there were %d requests already", c.made)
		return nil, nil
	case c.bytes >= c.Budget.Bytes:
		r.Error = fmt.Sprintf("not made: there are %d bytes of answers already", c.bytes)
		return nil, nil
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(c.Budget.Pause - time.Since(c.last)):
	}
	c.made++
	began := time.Now()
	defer func() { c.last, r.Millis = time.Now(), time.Since(began).Milliseconds() }()
	within, cancel := context.WithTimeout(ctx, c.Budget.Timeout)
	defer cancel()
	p, query, _ := strings.Cut(r.Path, "?")
	to := *c.base
	to.Path, to.RawQuery = path.Join("/", to.Path, p), query
	req, err := http.NewRequestWithContext(within, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		r.Error = err.Error()
		return nil, ctx.Err()
	}
	defer resp.Body.Close()
	r.Code = resp.StatusCode
	most := min(c.Budget.Answer, c.Budget.Bytes-c.bytes)
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if int64(len(body)) > most {
		body, r.Error = body[:most], fmt.Sprintf("cut off after %d bytes", most)
	}
	if err != nil {
		r.Error = err.Error()
	}
	r.Bytes = int64(len(body))
	c.bytes += r.Bytes
	if r.Code != http.StatusOK && r.Error == "" {
		r.Error = fmt.Sprintf("%d: %.200s", r.Code, bytes.TrimSpace(body))
		body = nil
	}
	return body, ctx.Err()
}

// stacks asks a process for its goroutines: first how many there are and, if they are few enough, then for each one
// with its state.
func (c *collector) stacks(ctx context.Context, count, each Request) error {
	counted, err := c.get(ctx, count)
	if err != nil || counted == nil {
		return err
	}
	d, err := goroutine.Read(bytes.NewReader(counted))
	switch {
	case err != nil:
		each.Error = "not made: " + err.Error()
	case d.Total > c.Budget.Goroutines:
		each.Error = fmt.Sprintf(
			"not made: there are %d goroutines, over %d, and it would stop the process for long",
			d.Total,
			c.Budget.Goroutines,
		)
	default:
		_, err := c.get(ctx, each)
		return err
	}
	return c.note(each)
}

// note logs and records a request, whether it was made or not.
func (c *collector) note(r Request) error {
	if c.Log != nil {
		c.Log(r)
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = c.record.Write(append(line, '\n'))
	}
	return err
}

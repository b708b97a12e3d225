// Package collect takes from a live cluster what the rules of relapse match need: with the user's own kubeconfig, by
// GET only, within a budget. What it leaves is a folder that relapse match reads.
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

// Budget bounds the load on the cluster. A request that would exceed it isn't made, and is told.
type Budget struct {
	Requests   int           // in all
	Bytes      int64         // of answers in all
	Answer     int64         // bytes of one answer; what is over is cut off
	Goroutines int           // debug=2 stops a process for longer the more it has; larger ones aren't asked
	Nodes      int           // whose kubelets are asked
	Pause      time.Duration // between two requests
	Timeout    time.Duration // of one
}

// Default is little for any cluster that works.
var Default = Budget{Requests: 200, Bytes: 512 << 20, Answer: 64 << 20, Goroutines: 20_000, Nodes: 10,
	Pause: 200 * time.Millisecond, Timeout: time.Minute}

// Request is one GET, and what became of it.
type Request struct {
	Path   string `json:"path"`
	File   string `json:"file"` // where the answer goes, below the folder
	Why    string `json:"why"`
	Code   int    `json:"code,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	Millis int64  `json:"millis,omitempty"`
	Error  string `json:"error,omitempty"` // why there is no answer, or not all of it
}

// Options say what is collected. Zero fields of the budget are Default's.
type Options struct {
	Config     *rest.Config
	Dir        string   // which must not be there yet, or be empty
	Components []string // whose evidence the rules need
	Budget     Budget
	Log        func(Request) // told of each one that was made, or left out; nil for none
}

// RequestsFile lists the requests, one a line.
const RequestsFile = "requests.jsonl"

type collector struct {
	Options
	client *http.Client
	base   *url.URL
	made   int
	bytes  int64
	last   time.Time
	record *os.File
}

// Run collects. The error is a folder that can't be written, a cluster that doesn't answer at all, or the context's;
// a request that fails is told and recorded.
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
	c.record, err = os.OpenFile(filepath.Join(o.Dir, RequestsFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
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

// get makes a request, if the budget allows it, and keeps the answer without its secrets. The answer is nil where there
// was none, and the error is the context's or that of the disk.
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

// stacks asks a process for its goroutines: how many there are, and if they are few enough each with its state.
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
		each.Error = fmt.Sprintf("not made: there are %d goroutines, over %d, and it would stop the process for long",
			d.Total, c.Budget.Goroutines)
	default:
		_, err := c.get(ctx, each)
		return err
	}
	return c.note(each)
}

// note tells and records a request that was made, or that isn't.
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

package webhook

import (
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Hook is one path of an Endpoint.
type Hook struct {
	Path     string
	Protocol Protocol
	Name     string // in the record
	Rules    Rules
	Shows    bool // its requests, or those that its protocol knows, only show that the endpoint is asked
}

// Endpoint answers API servers by rules, and records what became of each request.
type Endpoint struct {
	*Server
	arm       string
	record    *Record
	hooks     []*hook
	answering sync.RWMutex // held for reading by each request that is recorded
}

// hook is a Hook that can be asked.
type hook struct {
	Hook
	rules []*compiled
	seen  atomic.Int64
}

// bulk is the length in bytes of what a probe reads many bytes of, again and again if it wants more.
const bulk = 50_000

// Start starts an endpoint on a free port of an address, which runs until Close. It also answers a probe, without a record.
func Start(address, arm string, record *Record, hooks ...Hook) (*Endpoint, error) {
	e := &Endpoint{arm: arm, record: record}
	mux := http.NewServeMux()
	for _, h := range hooks {
		rules, err := h.Rules.compile()
		if err != nil {
			return nil, err
		}
		one := &hook{Hook: h, rules: rules}
		e.hooks = append(e.hooks, one)
		mux.HandleFunc("POST "+h.Path, func(w http.ResponseWriter, r *http.Request) { e.serve(one, w, r) })
	}
	mux.HandleFunc("GET "+control.WebhookHealth, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "well") })
	mux.HandleFunc("GET "+control.WebhookBulk, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, bulk)) })
	var err error
	e.Server, err = Serve(address, mux)
	return e, err
}

// Close ends the endpoint and all its connections, and then its record, which has what became of each request.
func (e *Endpoint) Close() {
	e.Server.Close()
	e.answering.Lock()
	defer e.answering.Unlock()
	e.record.End()
}

// Seen counts, for each hook that shows it, the requests that only show that the endpoint is asked. Neither the rules nor
// the record see those requests.
func (e *Endpoint) Seen() (out []int64) {
	for _, h := range e.hooks {
		if h.Shows {
			out = append(out, h.seen.Load())
		}
	}
	return out
}

// serve answers a request, and records what became of it if the rules see it.
func (e *Endpoint) serve(h *hook, w http.ResponseWriter, r *http.Request) {
	e.answering.RLock()
	defer e.answering.RUnlock()
	asked := time.Now().UTC()
	body, err := io.ReadAll(r.Body) // what is left unread would hide from the server that the client leaves
	var q question
	if err == nil {
		q, err = h.Protocol.read(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if h.Shows && q.shows {
		h.seen.Add(1)
		_ = write(w, decide(nil, q, e.arm))
		return
	}
	one := q.review
	one.Asked, one.Webhook = asked, h.Name
	e.answer(w, r, one, q, decide(h.rules, q, e.arm))
}

// answer does what was decided about a request.
func (e *Endpoint) answer(w http.ResponseWriter, r *http.Request, one bundle.Review, q question, does reply) {
	one.Rule = does.rule
	if does.err != nil {
		one.Error = does.err.Error()
	}
	if does.never {
		<-r.Context().Done() // the client gave up, or the endpoint ended
		e.add(one, bundle.ReviewNever)
		panic(http.ErrAbortHandler) // no answer
	}
	if !wait(r, does.delay) {
		e.add(one, bundle.ReviewLeft)
		panic(http.ErrAbortHandler)
	}
	if does.close {
		e.add(one, bundle.ReviewClosed)
		panic(http.ErrAbortHandler) // it closes the connection
	}
	// Who has the whole answer may leave before it is recorded, so only the time before it tells who has left.
	if left := r.Context().Err(); left != nil || write(w, does) != nil {
		e.add(one, bundle.ReviewLeft)
		return
	}
	one.Code = does.code
	if does.code == http.StatusOK {
		q.told(does.body, &one)
	}
	e.add(one, bundle.ReviewAnswered)
}

func (e *Endpoint) add(one bundle.Review, outcome string) {
	one.Outcome, one.Time = outcome, time.Now().UTC()
	e.record.Add(one)
}

// wait waits, and tells whether the client is still there.
func wait(r *http.Request, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-timer.C:
		return true
	}
}

func write(w http.ResponseWriter, does reply) error {
	if does.code == http.StatusOK {
		w.Header().Set("Content-Type", "application/json")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(does.body))) // without it the end would come after the handler's
	w.WriteHeader(does.code)
	if _, err := w.Write(does.body); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush() // an answer in a buffer isn't written yet
}

package webhook

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// The paths of an Admission.
const (
	Path     = "/review" // answers by the rules
	SeenPath = "/seen"   // allows everything, and counts what it was asked: the rules never see those requests
)

// Admission is an admission webhook that answers by rules.
type Admission struct {
	*Server
	name, arm string
	mutating  bool
	rules     []*compiled
	record    *Record
	seen      atomic.Int64
	answering sync.RWMutex // held for reading by each request at Path
}

// ServeAdmission starts an admission webhook on a free port of an address, which runs until Close. name is the fault's.
func ServeAdmission(address, name, arm string, mutating bool, rules Rules, record *Record) (*Admission, error) {
	a := &Admission{name: name, arm: arm, mutating: mutating, record: record}
	for i, r := range rules {
		c, err := compileRule(r)
		if err != nil {
			return nil, fmt.Errorf("rules[%d]: %w", i, err)
		}
		a.rules = append(a.rules, c)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Path, a.review)
	mux.HandleFunc("POST "+SeenPath, func(w http.ResponseWriter, r *http.Request) {
		of, err := readReview(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a.seen.Add(1)
		_ = write(w, decide(nil, of, ""))
	})
	var err error
	a.Server, err = Serve(address, mux)
	return a, err
}

// Close ends the webhook and all its connections, and then its record, which has what became of each request.
func (a *Admission) Close() {
	a.Server.Close()
	a.answering.Lock()
	defer a.answering.Unlock()
	a.record.End()
}

// Seen counts the requests at SeenPath.
func (a *Admission) Seen() int64 { return a.seen.Load() }

// review is an AdmissionReview as the rules see it.
type review struct {
	Version string
	Request json.RawMessage

	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Operation string `json:"operation"`
	Resource  struct {
		Group    string `json:"group"`
		Resource string `json:"resource"`
	} `json:"resource"`
	UserInfo struct {
		Username string `json:"username"`
	} `json:"userInfo"`
}

// readReview reads all of a request's body: what is left unread would hide from the server that the client leaves.
func readReview(r *http.Request) (out review, err error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return out, err
	}
	var whole struct {
		APIVersion string          `json:"apiVersion"`
		Request    json.RawMessage `json:"request"`
	}
	if err := json.Unmarshal(raw, &whole); err != nil {
		return out, fmt.Errorf("it is no AdmissionReview: %w", err)
	}
	if err := json.Unmarshal(whole.Request, &out); err != nil || out.UID == "" {
		return out, fmt.Errorf("it is no AdmissionReview with a request that has a uid")
	}
	out.Version, out.Request = whole.APIVersion, whole.Request
	return out, nil
}

// answer returns the AdmissionReview with a response.
func (r review) answer(raw json.RawMessage) ([]byte, error) {
	full, err := response(raw, r.UID)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"apiVersion": r.Version, "kind": "AdmissionReview", "response": full})
}

// review answers a review by the rules, and records what became of it.
func (a *Admission) review(w http.ResponseWriter, r *http.Request) {
	a.answering.RLock()
	defer a.answering.RUnlock()
	asked := time.Now().UTC()
	of, err := readReview(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	one := bundle.Review{Asked: asked, Mutating: a.mutating, Webhook: a.name, UID: of.UID, Operation: of.Operation,
		Object: of.Namespace + "/" + of.Name, Resource: of.Resource.Resource}
	if of.Resource.Group != "" {
		one.Resource += "." + of.Resource.Group
	}
	does := decide(a.rules, of, a.arm)
	one.Rule = does.rule
	if does.err != nil {
		one.Error = does.err.Error()
	}
	if does.never {
		<-r.Context().Done() // the API server gave up, or the webhook ended
		a.add(one, bundle.ReviewNever)
		panic(http.ErrAbortHandler) // no answer
	}
	if !wait(r, does.delay) {
		a.add(one, bundle.ReviewLeft)
		panic(http.ErrAbortHandler)
	}
	if does.close {
		a.add(one, bundle.ReviewClosed)
		panic(http.ErrAbortHandler) // it closes the connection
	}
	// Who has the whole answer may leave before it is recorded, so only the time before it tells who has left.
	if left := r.Context().Err(); left != nil || write(w, does) != nil {
		a.add(one, bundle.ReviewLeft)
		return
	}
	one.Code = does.code
	if does.code == http.StatusOK {
		one.Allowed, one.Annotations = told(does.body)
	}
	a.add(one, bundle.ReviewAnswered)
}

func (a *Admission) add(one bundle.Review, outcome string) {
	one.Outcome, one.Time = outcome, time.Now().UTC()
	a.record.Add(one)
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

// told returns what an answer says.
func told(body []byte) (allowed bool, annotations int) {
	var of struct {
		Response struct {
			Allowed          any            `json:"allowed"`
			AuditAnnotations map[string]any `json:"auditAnnotations"`
		} `json:"response"`
	}
	if json.Unmarshal(body, &of) != nil {
		return false, 0
	}
	allowed, _ = of.Response.Allowed.(bool)
	return allowed, len(of.Response.AuditAnnotations)
}

package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/celobject"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// Rule says which requests get which answer.
type Rule struct {
	When             string           `json:"when,omitempty" jsonschema:"a CEL expression over the request of the AdmissionReview or ConversionReview, or over the ExtenderArgs of kube-scheduler, as the variable request: request.operation == \"CREATE\". If not given, the rule is for every request"`
	OneIn            int              `json:"oneIn,omitempty" jsonschema:"of the requests for which when is true, the rule takes the n-th, the 2n-th and so on, and leaves the others to the rules below; default: 1, all of them"`
	Delay            *metav1.Duration `json:"delay,omitempty" jsonschema:"how long a request waits before it gets its answer, above 0"`
	Answer           json.RawMessage  `json:"answer,omitempty" placeholders:"arm,n,uid,namespace,name,operation,user,version" jsonschema:"the response, as JSON. Of an admission it has the fields of an AdmissionResponse; patch may also be a list of JSON patch operations. Of a conversion it has those of a ConversionResponse; without convertedObjects, the objects only get the desired apiVersion. Of an extender it is an ExtenderFilterResult or a HostPriorityList. In texts, $(uid) stands for the request's, $(arm) for the arm's name, and $(n) for the number of requests that the rule took before; of an admission $(namespace), $(name), $(operation) and $(user), of an extender the $(namespace) and $(name) of the pod, and of a conversion $(version), the desired apiVersion, for the request's"`
	Compute          string           `json:"compute,omitempty" jsonschema:"the response as a CEL expression over request whose value is a map: {\"allowed\": request.name != \"x\"}"`
	Code             int              `json:"code,omitempty" jsonschema:"the HTTP error code of the answer: 400 to 599"`
	Merge            json.RawMessage  `json:"merge,omitempty" placeholders:"arm,n,uid,namespace,name,version" jsonschema:"of a conversion: a JSON merge patch to each of the request's objects, which get the desired apiVersion first. In texts, $(namespace) and $(name) stand for the object's; the other words are those of answer"`
	AuditAnnotations int              `json:"auditAnnotations,omitempty" jsonschema:"how many audit annotations the response of an admission has in addition to its own, 0 to 50000: k00000, k00001 and so on; default: 0"`
	Never            bool             `json:"never,omitempty" jsonschema:"whether the request never gets an answer: the connection stays open until the API server gives up"`
	Close            bool             `json:"close,omitempty" jsonschema:"whether the connection is closed without an answer"`
}

// Rules are asked in order; the first one that takes a request says what becomes of it. A request that no rule takes gets
// the usual answer of its protocol.
type Rules []Rule

// Validate refuses rules that can't be followed in a protocol. Each error is one of the field rules[0] or of what is in
// it.
func (all Rules) Validate(p Protocol) error {
	if len(all) == 0 {
		return errors.New("rules is empty (want at least one, such as {never: true})")
	}
	var errs []error
	for i, r := range all {
		at := fmt.Sprintf("rules[%d]", i)
		note := func(field string, err error) {
			for _, one := range kinds.Each(err) {
				errs = append(errs, Within(at+field, one))
			}
		}
		note("", r.validate())
		note("", p.valid(r))
		_, err := r.condition()
		note(".when", err)
		_, err = r.computed()
		note(".compute", err)
		if r.When == "" && r.OneIn <= 1 && i < len(all)-1 {
			note(
				"",
				errors.New(
					"it takes every request, so that the rules below it are never asked (want when or oneIn, "+
						"or the rule at the end)",
				),
			)
		}
	}
	return errors.Join(errs...)
}

// Within returns an error as one of a field, or of what is in it.
func Within(at string, err error) error {
	if inner, ok := err.(*kinds.FieldError); ok {
		return &kinds.FieldError{Field: at + "." + inner.Field, Err: inner.Err}
	}
	return &kinds.FieldError{Field: at, Err: err}
}

func (r Rule) validate() error {
	if r.OneIn < 0 {
		return fmt.Errorf("oneIn is %d (want 1 or more)", r.OneIn)
	}
	if r.Delay != nil && r.Delay.Duration <= 0 {
		return fmt.Errorf("delay is %s (want above 0)", r.Delay.Duration)
	}
	if r.Code != 0 && (r.Code < 400 || r.Code > 599) {
		return fmt.Errorf("code is %d (want 400 to 599)", r.Code)
	}
	ways := 0
	for _, way := range []bool{r.Answer != nil, r.Compute != "", r.Merge != nil, r.Code != 0, r.Never, r.Close} {
		if way {
			ways++
		}
	}
	switch {
	case ways > 1:
		return errors.New("it has several answers (want one of answer, compute, merge, code, never and close)")
	case r.Never && r.Delay != nil:
		return errors.New("delay has no meaning with never (want one of them)")
	case ways == 0 && r.Delay == nil && r.AuditAnnotations == 0:
		return errors.New("it has no answer (want answer, compute, code, never, close or delay)")
	}
	return nil
}

// condition compiles when; nil if there is none.
func (r Rule) condition() (*celobject.Program, error) {
	if r.When == "" {
		return nil, nil
	}
	return celobject.CompileAs("request", r.When)
}

// computed compiles compute; nil if there is none.
func (r Rule) computed() (*celobject.Program, error) {
	if r.Compute == "" {
		return nil, nil
	}
	return celobject.CompileMap("request", r.Compute)
}

// compiled is a rule that can be asked. It counts the requests.
type compiled struct {
	Rule
	when, compute *celobject.Program
	annotations   string // as many as the rule says, as members of a JSON object

	mu         sync.Mutex
	met, taken int
}

// compile returns the rules as they can be asked.
func (all Rules) compile() (out []*compiled, err error) {
	for i, r := range all {
		c, err := compileRule(r)
		if err != nil {
			return nil, fmt.Errorf("rules[%d]: %w", i, err)
		}
		out = append(out, c)
	}
	return out, nil
}

func compileRule(r Rule) (*compiled, error) {
	when, err := r.condition()
	if err != nil {
		return nil, fmt.Errorf("when: %w", err)
	}
	compute, err := r.computed()
	if err != nil {
		return nil, fmt.Errorf("compute: %w", err)
	}
	return &compiled{
		Rule:        r,
		when:        when,
		compute:     compute,
		annotations: annotations(r.AuditAnnotations),
	}, nil
}

// takes tells whether the rule takes a request, and how many it took before.
func (c *compiled) takes(request json.RawMessage) (yes bool, before int, err error) {
	if c.when != nil {
		if yes, err = c.when.Holds(request); err != nil || !yes {
			return false, 0, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.met++; c.met%max(c.OneIn, 1) != 0 {
		return false, 0, nil
	}
	c.taken++
	return true, c.taken - 1, nil
}

// reply is what becomes of a request.
type reply struct {
	rule         int // from 1; 0 if none took it
	delay        time.Duration
	never, close bool
	code         int
	body         []byte
	err          error // why a rule could not be followed
}

// failed is the reply where a rule could not be followed. To guess what its author wanted would give an answer that
// nobody asked for; so the API server gets an error.
func failed(rule int, err error) reply {
	return reply{
		rule: rule,
		code: http.StatusInternalServerError,
		err:  err,
		body: []byte(err.Error()),
	}
}

// decide returns what becomes of a request.
func decide(rules []*compiled, q question, arm string) reply {
	for i, c := range rules {
		yes, n, err := c.takes(q.request)
		if err != nil {
			return failed(i+1, fmt.Errorf("rules[%d].when: %w", i, err))
		}
		if !yes {
			continue
		}
		out := reply{rule: i + 1, never: c.Never, close: c.Close, code: http.StatusOK}
		if c.Delay != nil {
			out.delay = c.Delay.Duration
		}
		if c.Code != 0 {
			out.code, out.body = c.Code, []byte("the webhook answers so")
			return out
		}
		words := maps.Clone(q.words)
		words["arm"], words["n"] = arm, n
		var response json.RawMessage
		switch {
		case c.compute != nil:
			response, err = c.compute.Map(q.request)
		case c.Answer != nil:
			response, err = kinds.Expand(c.Answer, words)
		}
		if err == nil {
			out.body, err = q.answer(c, response, words)
		}
		if err != nil {
			return failed(i+1, fmt.Errorf("rules[%d]: the answer: %w", i, err))
		}
		return out
	}
	body, err := q.answer(&compiled{}, nil, q.words)
	if err != nil {
		return failed(0, err)
	}
	return reply{code: http.StatusOK, body: body}
}

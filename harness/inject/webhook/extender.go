package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// The verbs that an extender of kube-scheduler can have rules for.
const (
	Filter     = bundle.ReviewFilter
	Prioritize = bundle.ReviewPrioritize
)

// Extender is the protocol of an extender of kube-scheduler, for one verb. What no rule says changes nothing: all nodes
// stay as they came, and each gets the score 0.
type Extender struct {
	Verb  string // Filter or Prioritize
	Shows string // the value of ShowsLabel of a pod that only shows that the extender is asked
}

// extenderWords are the words of an extender's answers.
var extenderWords = []string{"arm", "n", "uid", "namespace", "name"}

func (x Extender) read(body []byte) (question, error) {
	var of struct {
		Pod struct {
			Metadata struct {
				Namespace string            `json:"namespace"`
				Name      string            `json:"name"`
				UID       string            `json:"uid"`
				Labels    map[string]string `json:"labels"`
			} `json:"metadata"`
		}
		NodeNames []string
	}
	if err := json.Unmarshal(body, &of); err != nil {
		return question{}, fmt.Errorf("it is no request of kube-scheduler's: %w", err)
	}
	pod := of.Pod.Metadata
	q := question{
		request: body,
		shows:   pod.Labels[ShowsLabel] == x.Shows,
		words:   map[string]any{"uid": pod.UID, "namespace": pod.Namespace, "name": pod.Name},
		review: bundle.Review{
			UID:       pod.UID,
			Operation: x.Verb,
			Resource:  "pods",
			Object:    pod.Namespace + "/" + pod.Name,
			Objects:   len(of.NodeNames),
		},
		told: toldExtender,
	}
	q.answer = func(_ *compiled, response json.RawMessage, _ map[string]any) ([]byte, error) {
		if response == nil {
			return x.neutral(of.NodeNames)
		}
		return response, x.fits(response)
	}
	return q, nil
}

// score is kube-scheduler's HostPriority.
type score struct {
	Host  string
	Score int64
}

// filtered is kube-scheduler's ExtenderFilterResult, for an extender that is told the names of nodes.
type filtered struct {
	NodeNames                  []string
	FailedNodes                map[string]string `json:",omitempty"`
	FailedAndUnresolvableNodes map[string]string `json:",omitempty"`
	Error                      string            `json:",omitempty"`
}

func (x Extender) neutral(nodes []string) ([]byte, error) {
	if x.Verb == Filter {
		return json.Marshal(filtered{NodeNames: nodes})
	}
	out := []score{}
	for _, name := range nodes {
		out = append(out, score{Host: name})
	}
	return json.Marshal(out)
}

// fits returns an error if kube-scheduler couldn't read a response to the verb.
func (x Extender) fits(response json.RawMessage) error {
	var into any = &filtered{}
	wants := "an object with NodeNames, FailedNodes, FailedAndUnresolvableNodes or Error"
	if x.Verb == Prioritize {
		into, wants = &[]score{}, "a list of objects with Host and Score"
	}
	d := json.NewDecoder(bytes.NewReader(response))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("it is no answer to %s: %w (want %s)", x.Verb, err, wants)
	}
	return nil
}

// valid refuses an answer that kube-scheduler couldn't read, and what other protocols have.
func (x Extender) valid(r Rule) error {
	var errs []error
	for field, given := range map[string]bool{"auditAnnotations": r.AuditAnnotations != 0, "merge": r.Merge != nil} {
		if given {
			errs = append(
				errs,
				&kinds.FieldError{
					Field: field,
					Err:   errors.New("it has no meaning in an extender's answer"),
				},
			)
		}
	}
	if r.Compute != "" && x.Verb == Prioritize {
		errs = append(errs, &kinds.FieldError{Field: "compute", Err: errors.New("its value is a map, and the answer to prioritize is a list (want answer)")})
	}
	if r.Answer != nil {
		err := x.fits(r.Answer)
		if err == nil {
			err = refers(r.Answer, extenderWords...)
		}
		if err != nil {
			errs = append(errs, &kinds.FieldError{Field: "answer", Err: err})
		}
	}
	return errors.Join(errs...)
}

// toldExtender completes the record: an answer to filter with an error or without a node doesn't allow the pod anywhere.
func toldExtender(body []byte, into *bundle.Review) {
	if into.Operation != Filter {
		into.Allowed = true
		return
	}
	var of filtered
	into.Allowed = json.Unmarshal(body, &of) == nil && of.Error == "" && len(of.NodeNames) > 0
}

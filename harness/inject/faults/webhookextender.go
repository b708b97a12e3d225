package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/webhook"
)

// Extender says what an extender of kube-scheduler answers by the rules.
type Extender struct {
	Verbs []string `json:"verbs" jsonschema:"what is answered by the rules: filter or prioritize, or both if each rule fits both"`
}

func (x Extender) validate() error {
	if len(x.Verbs) == 0 {
		return errors.New("verbs is empty (want verbs: [filter])")
	}
	for i, verb := range x.Verbs {
		switch {
		case verb == "bind":
			return errors.New(
				"verbs has bind, to which no answer is neutral: an extender that binds takes the binding from " +
					"kube-scheduler, in every phase (want some of " + strings.Join(
					control.ExtenderVerbs,
					", ",
				) + ")",
			)
		case !slices.Contains(control.ExtenderVerbs, verb) || slices.Contains(x.Verbs[:i], verb):
			return fmt.Errorf(
				"verbs has %q (want some of %s, each once)",
				verb,
				strings.Join(control.ExtenderVerbs, ", "),
			)
		}
	}
	return nil
}

// Proof returns, for an extender, the check that a rule took what kube-scheduler asked it: that it answers the harness by
// the rules says nothing of kube-scheduler.
func (f *Webhook) Proof(name string) (kind string, spec json.RawMessage) {
	if f.Extender == nil {
		return "", nil
	}
	spec, err := json.Marshal(map[string]string{
		"expression": fmt.Sprintf(
			"webhookAnswers().exists(r, r.webhook == '%s' && r.rule > 0)",
			name,
		),
	})
	if err != nil { // it is text
		panic(err)
	}
	return "cel", spec
}

// extended makes a fault's webhook what kube-scheduler's extender on a node answers.
type extended struct {
	*Webhook
	fault.Target
	node   cluster.Node
	client *control.ExtenderClient
}

func newExtended(f *Webhook, t fault.Target, n cluster.Node) (registered, error) {
	client, err := seams.ExtenderOf(n)
	if err != nil {
		return nil, err
	}
	return extended{f, t, n, client}, nil
}

func (x extended) hooks() (out []webhook.Hook) {
	for _, verb := range x.Extender.Verbs {
		out = append(
			out,
			webhook.Hook{Path: "/" + verb, Name: x.Name, Rules: x.Rules, Shows: true,
				Protocol: webhook.Extender{Verb: verb, Shows: x.Name}},
		)
	}
	return out
}

// add makes the extender forward what it is asked to the endpoint.
func (x extended) add(ctx context.Context, e *webhook.Endpoint) error {
	to := e.Client("")
	_, err := x.client.Arm(
		ctx,
		Arm(x.Target),
		control.ExtenderForward{
			URL: *to.URL,
			CA:  string(to.CABundle),
			Filter: slices.Contains(
				x.Extender.Verbs,
				webhook.Filter,
			),
			Prioritize: slices.Contains(x.Extender.Verbs, webhook.Prioritize),
		},
	)
	if err == nil {
		x.armed.Store(x.node.Name(), true)
	}
	return err
}

// try asks the extender each verb, as kube-scheduler does, about a pod that isn't there. The code is that of the last one.
func (x extended) try(ctx context.Context) (code int, past bool, err error) {
	body, err := json.Marshal(map[string]any{
		"NodeNames": []string{x.node.Name()},
		"Pod": map[string]any{"metadata": map[string]any{
			"name":   "relapse-" + x.Name,
			"labels": map[string]string{webhook.ShowsLabel: x.Name},
		}},
	})
	if err != nil {
		return 0, false, err
	}
	for _, verb := range x.Extender.Verbs {
		p, err := x.client.Probe(ctx, verb, string(body), answerLimit)
		if err != nil {
			return 0, false, err
		}
		if code = p.Code; p.Err != "" {
			return code, false, errors.New(p.Err)
		}
		if code != http.StatusOK {
			return code, false, nil
		}
	}
	return code, true, nil
}

// remove makes the extender neutral again. An extender that knows nothing of what this process armed was started anew, and
// nobody knows for how long the fault was in force.
func (x extended) remove(ctx context.Context) (more bool, err error) {
	d, err := x.client.Disarm(
		ctx,
		control.Disarm{ID: x.Name, Owner: x.Run, Fault: control.FaultForward},
	)
	if err != nil {
		return false, err
	}
	_, armed := x.armed.LoadAndDelete(x.node.Name())
	if !armed || len(d.IDs) > 0 {
		return true, nil
	}
	s, err := x.client.State(ctx)
	if err == nil && !slices.ContainsFunc(s.Arms, func(r control.ExtenderRecord) bool { return r.ID == x.Name && r.Owner == x.Run }) {
		err = errors.New("the extender was started anew while the fault was in force, which ended it")
	}
	return true, err
}

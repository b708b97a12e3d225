// Package kinds has the kinds of the scenario concurrent-map-crash: the fault of an admission webhook that never
// answers, and checks of data races and of panics that the program recovered from.
package kinds

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/webhook"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "hangingWebhook",
		Doc: "Admission webhooks for the creation of ConfigMaps, one of which never answers.\n\n" +
			"A mutating webhook and a validating one allow every request at once, and each answers with " +
			"auditAnnotations audit annotations. A second validating webhook holds each request until the API server " +
			"gives up. The API server ignores that failure. It asks the webhooks only about the namespaces of one " +
			"load, and about relapse-<name>, where a dry run shows that the webhooks are in force. The harness's " +
			"process serves the webhooks, so they end with that process, or after the fault's time limit: the fault " +
			"phase's deadline plus 2m. An API server that can't reach the webhooks goes on without them. The " +
			"requests to the webhooks and their answers are recorded.",
		Example: "name: webhook\nkind: hangingWebhook\ntarget: {mode: all, selector: {component: kube-apiserver}}\n" +
			"spec: {load: creations, auditAnnotations: 8000}\n",
		Tested: `{"load":"creations","auditAnnotations":100}`,
		New:    func() fault.Fault { return &HangingWebhook{} },
	})
}

// HangingWebhook registers webhooks of which one never answers.
type HangingWebhook struct {
	Load             string `json:"load" refers:"load" jsonschema:"name of the load whose namespaces the webhooks are asked about"`
	AuditAnnotations int    `json:"auditAnnotations,omitempty" jsonschema:"audit annotations in each answer of the two other webhooks: 0 to 50000; default: 0"`

	mu      sync.Mutex
	serving map[string]*webhookServer // by node
}

// Needs returns what the fault requires: nothing but the API.
func (*HangingWebhook) Needs() fault.Needs { return fault.Needs{} }

// Makes returns the kind of artifact that the fault records: the webhooks' reviews.
func (*HangingWebhook) Makes() []bundle.Kind { return []bundle.Kind{bundle.Reviews} }

// Validate refuses webhooks that nobody asks, and more annotations than an answer of a webhook can hold.
func (f *HangingWebhook) Validate() error {
	if f.Load == "" {
		return errors.New("load is empty")
	}
	if f.AuditAnnotations < 0 || f.AuditAnnotations > 50_000 {
		return fmt.Errorf("auditAnnotations is %d (want 0 to 50000)", f.AuditAnnotations)
	}
	return nil
}

// ForAll returns true: the API server asks the webhooks about the requests of all arms.
func (*HangingWebhook) ForAll() bool { return true }

// Modelled returns a sentence on what is imitated.
func (f *HangingWebhook) Modelled() []string {
	return []string{fmt.Sprintf("the webhooks are the harness's own: two that answer with %d audit annotations each, and "+
		"one that never answers", f.AuditAnnotations)}
}

// Inject registers the webhooks and returns once the API server was seen to wait for the one that hangs.
func (f *HangingWebhook) Inject(ctx context.Context, t fault.Target) error {
	return onWebhooks(ctx, t, func(ctx context.Context, n cluster.Node, r webhook.Registration) error {
		if err := r.MakeNamespace(ctx); err != nil {
			return err
		}
		s, err := f.serve(ctx, t, n)
		if err != nil {
			return err
		}
		if err := f.register(ctx, r, s); err != nil {
			return err
		}
		before := s.held.Load()
		if err := webhook.Await(ctx, func(ctx context.Context) (bool, error) {
			code := r.DryRun(ctx)
			return s.held.Load() > before, fmt.Errorf("a creation without effect was answered with %d", code)
		}); err != nil {
			return err
		}
		fault.Emit(t, event.FaultSeen, n, "the API server waits for a webhook that doesn't answer")
		return nil
	})
}

// Recover removes the webhooks and returns when they were seen to be gone.
func (f *HangingWebhook) Recover(ctx context.Context, t fault.Target) error {
	return onWebhooks(ctx, t, func(ctx context.Context, n cluster.Node, r webhook.Registration) error {
		if err := r.Remove(ctx); err != nil {
			return err
		}
		f.mu.Lock()
		s := f.serving[n.Name()]
		delete(f.serving, n.Name())
		f.mu.Unlock()
		if s != nil {
			s.close()
		}
		fault.Emit(t, event.FaultGone, n, "the webhooks are gone, and nobody serves them")
		return nil
	})
}

// serve returns the server for a node's API server, and starts it if there is none. It ends with the fault's time
// limit.
func (f *HangingWebhook) serve(ctx context.Context, t fault.Target, n cluster.Node) (*webhookServer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.serving[n.Name()]; s != nil {
		return s, nil
	}
	address, err := t.Cluster.CallableAddress(ctx)
	if err != nil {
		return nil, err
	}
	record, err := webhook.NewRecord(t.Writer, t.Arm, n.Name())
	if err != nil {
		return nil, err
	}
	s, err := serveWebhooks(address, f.AuditAnnotations, record)
	if err != nil {
		record.End()
		return nil, err
	}
	time.AfterFunc(t.Expires, s.close)
	if f.serving == nil {
		f.serving = map[string]*webhookServer{}
	}
	f.serving[n.Name()] = s
	return s, nil
}

// onWebhooks acts for all nodes of the target at once, and returns all errors.
func onWebhooks(ctx context.Context, t fault.Target,
	act func(context.Context, cluster.Node, webhook.Registration) error) error {
	client, err := fault.APIClient(t)
	if err != nil {
		return err
	}
	return fault.Each(t.Nodes, func(n cluster.Node) error {
		r := webhook.Registration{Client: client, Node: n.Name(), Fault: t.Name}
		if err := act(ctx, n, r); err != nil {
			return fmt.Errorf("%s: the webhooks for %s: %w", t.Name, n.Name(), err)
		}
		return nil
	})
}

// register registers the three webhooks.
func (f *HangingWebhook) register(ctx context.Context, r webhook.Registration, s *webhookServer) error {
	rules := []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}}}
	where := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: webhook.LoadLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{f.Load, r.Fault}}}}
	ignore, none, seconds := admissionv1.Ignore, admissionv1.SideEffectClassNone, int32(30)
	name := func(path string) string { return path[1:] + "." + r.Fault + ".relapse.dev" }
	mutating := []admissionv1.MutatingWebhook{{Name: name(annotatesFirst), ClientConfig: s.Client(annotatesFirst),
		Rules: rules, NamespaceSelector: where, FailurePolicy: &ignore, SideEffects: &none, TimeoutSeconds: &seconds,
		AdmissionReviewVersions: []string{"v1"}}}
	var validating []admissionv1.ValidatingWebhook
	for _, path := range []string{annotatesLast, hangs} {
		validating = append(validating, admissionv1.ValidatingWebhook{Name: name(path), ClientConfig: s.Client(path),
			Rules: rules, NamespaceSelector: where, FailurePolicy: &ignore, SideEffects: &none, TimeoutSeconds: &seconds,
			AdmissionReviewVersions: []string{"v1"}})
	}
	return r.Add(ctx, mutating, validating)
}

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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
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

// webhookSeen is how long the webhooks may take to be in force, or to be gone.
const webhookSeen = 60 * time.Second

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

// Modelled returns a sentence on what is imitated.
func (f *HangingWebhook) Modelled() []string {
	return []string{fmt.Sprintf("the webhooks are the harness's own: two that answer with %d audit annotations each, and "+
		"one that never answers", f.AuditAnnotations)}
}

// Inject registers the webhooks and returns once the API server was seen to wait for the one that hangs.
func (f *HangingWebhook) Inject(ctx context.Context, t fault.Target) error {
	return onWebhooks(ctx, t, func(ctx context.Context, h webhooks) error {
		if err := h.makeNamespace(ctx); err != nil {
			return err
		}
		s, err := f.serve(ctx, t, h)
		if err != nil {
			return err
		}
		if err := h.register(ctx, f.Load, s); err != nil {
			return err
		}
		before := s.held.Load()
		if err := h.await(ctx, func(ctx context.Context) (bool, error) {
			code := h.dryRun(ctx)
			return s.held.Load() > before, fmt.Errorf("a creation without effect was answered with %d", code)
		}); err != nil {
			return err
		}
		fault.Emit(t, event.FaultSeen, h.node, "the API server waits for a webhook that doesn't answer")
		return nil
	})
}

// Recover removes the webhooks and returns when they were seen to be gone.
func (f *HangingWebhook) Recover(ctx context.Context, t fault.Target) error {
	return onWebhooks(ctx, t, func(ctx context.Context, h webhooks) error {
		if err := h.unregister(ctx); err != nil {
			return err
		}
		f.mu.Lock()
		s := f.serving[h.node.Name()]
		delete(f.serving, h.node.Name())
		f.mu.Unlock()
		if s != nil {
			s.close()
		}
		fault.Emit(t, event.FaultGone, h.node, "the webhooks are gone, and nobody serves them")
		return nil
	})
}

// serve returns the server for a node's API server, and starts it if there is none. It ends with the fault's time
// limit.
func (f *HangingWebhook) serve(ctx context.Context, t fault.Target, h webhooks) (*webhookServer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.serving[h.node.Name()]; s != nil {
		return s, nil
	}
	address, err := t.Cluster.CallableAddress(ctx)
	if err != nil {
		return nil, err
	}
	record, end, err := recordReviews(t, h.node)
	if err != nil {
		return nil, err
	}
	s, err := serveWebhooks(address, f.AuditAnnotations, record)
	if err != nil {
		end()
		return nil, err
	}
	stop := s.close
	s.close = sync.OnceFunc(func() { stop(); end() })
	time.AfterFunc(t.Expires, s.close)
	if f.serving == nil {
		f.serving = map[string]*webhookServer{}
	}
	f.serving[h.node.Name()] = s
	return s, nil
}

// recordReviews returns a function that records a review, and a function that ends the record.
func recordReviews(t fault.Target, n cluster.Node) (record func(bundle.Review), end func(), err error) {
	if t.Writer == nil {
		return func(bundle.Review) {}, func() {}, nil
	}
	st, err := t.Writer.Stream(bundle.Meta{Kind: bundle.Reviews, Arm: t.Arm, Node: n.Name(), Time: time.Now().UTC()},
		"jsonl")
	if err != nil {
		return nil, nil, err
	}
	st.Alive(time.Now())
	var mu sync.Mutex
	ended := false
	record = func(r bundle.Review) {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			_ = st.JSON(r) // the writer keeps what failed, and doesn't seal
		}
	}
	return record, func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			ended = true
			st.Alive(time.Now())
			_ = st.Close()
		}
	}, nil
}

// webhooks registers webhooks with the API server of one node.
type webhooks struct {
	client kubernetes.Interface
	node   cluster.Node
	fault  string
}

// onWebhooks acts for all nodes of the target at once, and returns all errors.
func onWebhooks(ctx context.Context, t fault.Target, act func(context.Context, webhooks) error) error {
	client, err := fault.APIClient(t)
	if err != nil {
		return err
	}
	return fault.Each(t.Nodes, func(n cluster.Node) error {
		if err := act(ctx, webhooks{client, n, t.Name}); err != nil {
			return fmt.Errorf("%s: the webhooks for %s: %w", t.Name, n.Name(), err)
		}
		return nil
	})
}

func (h webhooks) name() string      { return "relapse-" + h.fault + "-" + h.node.Name() }
func (h webhooks) namespace() string { return "relapse-" + h.fault }

// loadLabel is the label that loads put on their namespaces.
const loadLabel = "relapse.dev/load"

func (h webhooks) makeNamespace(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace(),
		Labels: map[string]string{loadLabel: h.fault}}}
	_, err := h.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// register deletes both configurations and creates them anew: an old one leads to a server that may be gone.
func (h webhooks) register(ctx context.Context, load string, s *webhookServer) error {
	if err := h.unregister(ctx); err != nil {
		return err
	}
	one := func(path string) (string, admissionv1.WebhookClientConfig) {
		url := s.url + path
		return path[1:] + "." + h.fault + ".relapse.dev", admissionv1.WebhookClientConfig{URL: &url, CABundle: s.ca}
	}
	rules := []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}}}
	where := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: loadLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{load, h.fault}}}}
	ignore, none, seconds := admissionv1.Ignore, admissionv1.SideEffectClassNone, int32(30)
	meta := metav1.ObjectMeta{Name: h.name()}
	name, config := one(annotatesFirst)
	mutating := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.MutatingWebhook{{
		Name: name, ClientConfig: config, Rules: rules, NamespaceSelector: where, FailurePolicy: &ignore,
		SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"}}}}
	validating := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
	for _, path := range []string{annotatesLast, hangs} {
		name, config := one(path)
		validating.Webhooks = append(validating.Webhooks, admissionv1.ValidatingWebhook{
			Name: name, ClientConfig: config, Rules: rules, NamespaceSelector: where, FailurePolicy: &ignore,
			SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"}})
	}
	api := h.client.AdmissionregistrationV1()
	if _, err := api.MutatingWebhookConfigurations().Create(ctx, mutating, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := api.ValidatingWebhookConfigurations().Create(ctx, validating, metav1.CreateOptions{})
	return err
}

// unregister deletes both configurations and returns when they were seen to be gone.
func (h webhooks) unregister(ctx context.Context) error {
	api := h.client.AdmissionregistrationV1()
	return h.await(ctx, func(ctx context.Context) (bool, error) {
		_, m := api.MutatingWebhookConfigurations().Get(ctx, h.name(), metav1.GetOptions{})
		_, v := api.ValidatingWebhookConfigurations().Get(ctx, h.name(), metav1.GetOptions{})
		if apierrors.IsNotFound(m) && apierrors.IsNotFound(v) {
			return true, nil
		}
		if m == nil {
			m = api.MutatingWebhookConfigurations().Delete(ctx, h.name(), metav1.DeleteOptions{})
		}
		if v == nil {
			v = api.ValidatingWebhookConfigurations().Delete(ctx, h.name(), metav1.DeleteOptions{})
		}
		return false, errors.Join(m, v)
	})
}

// dryRun asks for a ConfigMap in a dry run, and returns the code of the answer; 0 if there was none.
func (h webhooks) dryRun(ctx context.Context) (code int) {
	h.client.CoreV1().RESTClient().Post().Namespace(h.namespace()).Resource("configmaps").
		Param("dryRun", metav1.DryRunAll).Param("timeout", "2s").Body(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "probe"}}).Do(ctx).StatusCode(&code)
	return code
}

// await calls seen until it is true. If the API server isn't there, it may come back; if it answers with an internal
// error, await gives up.
func (h webhooks) await(ctx context.Context, seen func(context.Context) (bool, error)) error {
	all := ctx
	ctx, cancel := context.WithTimeout(ctx, webhookSeen)
	defer cancel()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := seen(ctx)
		if ok {
			return nil
		}
		if apierrors.IsInternalError(err) {
			return err
		}
		select {
		case <-ctx.Done():
			if all.Err() != nil {
				return context.Cause(all)
			}
			return fmt.Errorf("not seen within %s: %w", webhookSeen, err)
		case <-tick.C:
		}
	}
}

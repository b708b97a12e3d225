package fault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/webhook"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[Fault]{
		Name: "webhook",
		Doc: "An admission webhook that answers by rules: with JSON, late, with an HTTP error, never, or by closing the " +
			"connection.\n\n" +
			"The first rule that takes a request says what becomes of it; a request that no rule takes is allowed. If " +
			"a rule's expression has no value for a request, as where a field isn't there, the API server gets the " +
			"HTTP error 500, and the record says why.\n\n" +
			"Each node of the target gets its own registration, so that several control planes would ask several " +
			"times: `mode: one` selects one of them. The API server also asks the webhook about ConfigMaps in " +
			"relapse-<name>, where dry runs show that it is in force and, later, that it is not; the rules don't see " +
			"those.\n\n" +
			"The harness's process serves the webhook, and removes it after the fault's time limit, the fault phase's " +
			"deadline plus 2m. If the process dies, the webhook dies with it: with `failurePolicy: Ignore` the API " +
			"server goes on without it, and with `Fail` it refuses the requests until the cluster is removed.\n\n" +
			"Each answer is recorded, with the rule that took the request. The check `cel` reads the record with " +
			"webhookAnswers().",
		Example: "name: slow-admission\nkind: webhook\ntarget: {mode: one, selector: {component: kube-apiserver}}\nspec:\n" +
			"  resources: [configmaps]\n  operations: [CREATE]\n  namespaces: [relapse-creations]\n  rules:\n" +
			"    - {when: request.name.endsWith(\"7\"), never: true}\n    - {oneIn: 3, code: 503}\n" +
			"    - {delay: 2s, answer: {allowed: false, status: {message: $(name) is refused}}}\n",
		Tested: `{"resources":["configmaps"],"rules":[{"answer":{"allowed":true,"auditAnnotations":{"arm":"$(arm)"}}}]}`,
		New: func() Fault {
			return &Webhook{Admission: validating, Groups: []string{"*"}, Operations: []string{"*"}, TimeoutSeconds: 10,
				FailurePolicy: string(admissionv1.Ignore)}
		},
	})
}

// Webhook registers an admission webhook.
type Webhook struct {
	Admission      string        `json:"admission,omitempty" jsonschema:"validating or mutating; default: validating"`
	Groups         []string      `json:"groups,omitempty" jsonschema:"the API groups of the resources, \"\" for the core group; default: all"`
	Resources      []string      `json:"resources" jsonschema:"the resources that the API server asks about, as in pods or pods/eviction; \"*\" is all"`
	Operations     []string      `json:"operations,omitempty" jsonschema:"the operations that the API server asks about: CREATE, UPDATE, DELETE and CONNECT; default: all"`
	Namespaces     []string      `json:"namespaces,omitempty" jsonschema:"the names of the namespaces that the API server asks about; if not given, all. Resources without a namespace are asked about in any case"`
	FailurePolicy  string        `json:"failurePolicy,omitempty" jsonschema:"what the API server does with a request about which the webhook doesn't answer as it should: Ignore or Fail; default: Ignore"`
	TimeoutSeconds int           `json:"timeoutSeconds,omitempty" jsonschema:"how long the API server waits for an answer, in seconds: 1 to 30; default: 10"`
	Rules          webhook.Rules `json:"rules" jsonschema:"what becomes of a request, in order; the first rule that takes a request counts"`

	mu      sync.Mutex
	serving map[string]*webhook.Admission // by node
}

const (
	validating = "validating"
	mutating   = "mutating"
)

var (
	admissions = []string{validating, mutating}
	operations = []string{"*", "CREATE", "UPDATE", "DELETE", "CONNECT"}
	policies   = []string{string(admissionv1.Ignore), string(admissionv1.Fail)}
)

// Needs returns what the fault requires: nothing but the API.
func (*Webhook) Needs() Needs { return Needs{} }

// Makes returns the kind of artifact that the fault records: what the webhook answered.
func (*Webhook) Makes() []bundle.Kind { return []bundle.Kind{bundle.Reviews} }

// Choices lists the kinds of admission, the operations and the failure policies.
func (*Webhook) Choices() map[string][]string {
	return map[string][]string{"admission": admissions, "operations": operations, "failurePolicy": policies}
}

// Validate refuses what an API server wouldn't register, and rules that can't be followed.
func (f *Webhook) Validate() error {
	var errs []error
	if !slices.Contains(admissions, f.Admission) {
		errs = append(errs, fmt.Errorf("admission is %q (want %s)", f.Admission, strings.Join(admissions, " or ")))
	}
	if len(f.Resources) == 0 {
		errs = append(errs, errors.New("resources is empty (want resources: [pods])"))
	}
	for _, o := range f.Operations {
		if !slices.Contains(operations, o) || o == "*" && len(f.Operations) > 1 {
			errs = append(errs, fmt.Errorf("operations has %q (want some of %s, or \"*\" alone)", o,
				strings.Join(operations[1:], ", ")))
		}
	}
	if !slices.Contains(policies, f.FailurePolicy) {
		errs = append(errs, fmt.Errorf("failurePolicy is %q (want %s)", f.FailurePolicy, strings.Join(policies, " or ")))
	}
	if f.TimeoutSeconds < 1 || f.TimeoutSeconds > 30 {
		errs = append(errs, fmt.Errorf("timeoutSeconds is %d (want 1 to 30)", f.TimeoutSeconds))
	}
	return errors.Join(append(errs, f.Rules.Validate())...)
}

// ForAll returns true: the API server asks the webhook about the requests of all arms.
func (*Webhook) ForAll() bool { return true }

// Describe says in words what is asked of the webhook.
func (f *Webhook) Describe() string {
	what := fmt.Sprintf("%s webhook for %s of %s, rules: %d", f.Admission, strings.Join(f.Operations, ", "),
		strings.Join(f.Resources, ", "), len(f.Rules))
	if len(f.Namespaces) > 0 {
		what += ", in " + strings.Join(f.Namespaces, ", ")
	}
	return what
}

// Modelled returns a sentence on what is imitated.
func (f *Webhook) Modelled() []string {
	return []string{fmt.Sprintf("the %s webhook for %s is the harness's own", f.Admission, strings.Join(f.Resources, ", "))}
}

// Inject registers the webhook and returns once the API server was seen to ask it.
func (f *Webhook) Inject(ctx context.Context, t Target) error {
	return onWebhook(t, func(n cluster.Node, r webhook.Registration) error {
		if err := r.MakeNamespace(ctx); err != nil {
			return err
		}
		s, err := f.serve(ctx, t, n, r)
		if err != nil {
			return err
		}
		if err := f.register(ctx, r, s); err != nil {
			return err
		}
		before := s.Seen()
		if err := webhook.Await(ctx, func(ctx context.Context) (bool, error) {
			code := r.DryRun(ctx)
			return s.Seen() > before, fmt.Errorf("a creation without effect was answered with %d, and the webhook was "+
				"not asked", code)
		}); err != nil {
			return err
		}
		Emit(t, event.FaultSeen, n, "the API server asks the webhook")
		return nil
	})
}

// Recover removes the webhook, and returns when the registration was seen to be gone. Where this process serves it, the
// API server was also seen not to ask it.
func (f *Webhook) Recover(ctx context.Context, t Target) error {
	return onWebhook(t, func(n cluster.Node, r webhook.Registration) error {
		if err := r.Remove(ctx); err != nil {
			return err
		}
		f.mu.Lock()
		s := f.serving[n.Name()]
		delete(f.serving, n.Name())
		f.mu.Unlock()
		if s != nil {
			defer s.Close()
			if err := unasked(ctx, r, s); err != nil {
				return err
			}
		}
		Emit(t, event.FaultGone, n, "the webhook is gone")
		return nil
	})
}

// unasked returns once a dry run got as far as the webhooks, and this one was not asked.
func unasked(ctx context.Context, r webhook.Registration, s *webhook.Admission) error {
	if err := r.MakeNamespace(ctx); err != nil {
		return err
	}
	return webhook.Await(ctx, func(ctx context.Context) (bool, error) {
		before := s.Seen()
		code := r.DryRun(ctx)
		got := bundle.Success(code) || code == http.StatusConflict // a conflict is found only after admission
		return got && s.Seen() == before, fmt.Errorf("its registration is gone; a creation without effect was answered "+
			"with %d, and the webhook was asked %d times", code, s.Seen()-before)
	})
}

// serve returns the server for a node's API server, and starts it if there is none. After the fault's time limit it
// removes the registration, and ends.
func (f *Webhook) serve(ctx context.Context, t Target, n cluster.Node, r webhook.Registration) (*webhook.Admission, error) {
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
	s, err := webhook.ServeAdmission(address, t.Name, t.Arm, f.Admission == mutating, f.Rules, record)
	if err != nil {
		record.End()
		return nil, err
	}
	time.AfterFunc(t.Expires, func() {
		f.mu.Lock()
		mine := f.serving[n.Name()] == s
		f.mu.Unlock()
		if mine {
			_ = r.Remove(context.Background()) // it gives up by itself; Recover will say what is in the way
		}
		s.Close()
	})
	if f.serving == nil {
		f.serving = map[string]*webhook.Admission{}
	}
	f.serving[n.Name()] = s
	return s, nil
}

// register registers the webhook, and in the same configuration the one that is seen: so both are in force at once.
func (f *Webhook) register(ctx context.Context, r webhook.Registration, s *webhook.Admission) error {
	name := func(path string) string { return path[1:] + "." + r.Fault + ".relapse.dev" }
	of := func(groups, resources, operations []string) []admissionv1.RuleWithOperations {
		rule := admissionv1.RuleWithOperations{Rule: admissionv1.Rule{APIGroups: groups, APIVersions: []string{"*"},
			Resources: resources}}
		for _, o := range operations {
			rule.Operations = append(rule.Operations, admissionv1.OperationType(o))
		}
		return []admissionv1.RuleWithOperations{rule}
	}
	where := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{r.Namespace()}}}}
	if len(f.Namespaces) > 0 {
		where.MatchExpressions = append(where.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: f.Namespaces})
	}
	ignore, policy := admissionv1.Ignore, admissionv1.FailurePolicyType(f.FailurePolicy)
	none, seconds := admissionv1.SideEffectClassNone, int32(f.TimeoutSeconds)
	all := []admissionv1.ValidatingWebhook{
		{Name: name(webhook.Path), ClientConfig: s.Client(webhook.Path), FailurePolicy: &policy, NamespaceSelector: where,
			Rules: of(f.Groups, f.Resources, f.Operations)},
		{Name: name(webhook.SeenPath), ClientConfig: s.Client(webhook.SeenPath), FailurePolicy: &ignore,
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{webhook.LoadLabel: r.Fault}},
			Rules:             of([]string{""}, []string{"configmaps"}, []string{"CREATE"})},
	}
	var changing []admissionv1.MutatingWebhook
	for i := range all {
		w := &all[i]
		w.SideEffects, w.TimeoutSeconds, w.AdmissionReviewVersions = &none, &seconds, []string{"v1"}
		changing = append(changing, admissionv1.MutatingWebhook{Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules,
			FailurePolicy: w.FailurePolicy, NamespaceSelector: w.NamespaceSelector, SideEffects: w.SideEffects,
			TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions})
	}
	if f.Admission == mutating {
		return r.Add(ctx, changing, nil)
	}
	return r.Add(ctx, nil, all)
}

// onWebhook acts for all nodes of the target at once, and returns all errors.
func onWebhook(t Target, act func(cluster.Node, webhook.Registration) error) error {
	client, err := APIClient(t)
	if err != nil {
		return err
	}
	return Each(t.Nodes, func(n cluster.Node) error {
		if err := act(n, webhook.Registration{Client: client, Node: n.Name(), Fault: t.Name}); err != nil {
			return fmt.Errorf("%s: the webhook for %s: %w", t.Name, n.Name(), err)
		}
		return nil
	})
}

package faults

import (
	"fmt"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/webhook"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "webhook",
		Doc: "Admission webhooks, the conversion webhook of a custom resource, or an extender of kube-scheduler, that answer by " +
			"rules: with JSON, late, with an HTTP error, never, or by closing the connection.\n\n" +
			"The first rule that takes a request says what becomes of it. A request that no rule takes is allowed, and " +
			"objects that no rule takes only get the desired apiVersion. If a rule's expression has no value for a request, as where a field isn't there, the API server gets the " +
			"HTTP error 500, and the record says why.\n\n" +
			"Each node of the target gets its own registration, so that several control planes would ask several " +
			"times: `mode: one` selects one of them. The API server also asks the webhook about ConfigMaps in " +
			"relapse-<name>, where dry runs show that it is in force and, later, that it is not; the rules don't see " +
			"those. With `webhooks`, there are several, which come into force one after the other, and all before the fault counts as injected: the " +
			"API server asks all mutating ones, in order, before the validating ones.\n\n" +
			"A conversion webhook is registered in the CustomResourceDefinition's spec.conversion, which gets back what " +
			"stood there: the fault keeps a copy in a ConfigMap of relapse-<name>. Dry runs that create `object` show " +
			"that the webhook is in force; the rules don't see those.\n\n" +
			"An extender needs the seam scheduler-extender, whose extender answers kube-scheduler by the rules while the fault is " +
			"in force: the request is kube-scheduler's ExtenderArgs, with request.Pod and request.NodeNames, and what no rule " +
			"takes changes nothing. It counts as in force once it answers a request of the harness's own so. That proves " +
			"nothing of kube-scheduler, so exposure has to rest on the record of what was asked.\n\n" +
			"The harness's process serves the webhook, and removes it after the fault's time limit, the fault phase's " +
			"deadline plus 2m. If the process dies, the webhook dies with it: with `failurePolicy: Ignore` the API " +
			"server goes on without it, and with `Fail`, or if a version of the resource has to be converted, it refuses the requests until the " +
			"fault is lifted or the cluster is removed.\n\n" +
			"With the seam apiserver-webhook, the API server reaches the webhook through a proxy on its node, in which " +
			"latency, outage and bandwidth of that connection act. A webhook that ends by its time limit ends its way through " +
			"the proxy, too, and an event says so; then the proxy refuses connections. If the harness's process dies, the " +
			"proxy closes each connection at once, and counts it, until its own time limit ends the way 15s after the fault's.\n\n" +
			"Each answer is recorded, with the rule that took the request. The check `cel` reads the record with " +
			"webhookAnswers().",
		Example: "name: slow-admission\nkind: webhook\ntarget: {mode: one, selector: {component: kube-apiserver}}\nspec:\n" +
			"  resources: [configmaps]\n  operations: [CREATE]\n  namespaces: [relapse-creations]\n  rules:\n" +
			"    - {when: request.name.endsWith(\"7\"), never: true}\n    - {oneIn: 3, code: 503}\n" +
			"    - {delay: 2s, answer: {allowed: false, status: {message: $(name) is refused}}}\n",
		Tested: `{"resources":["configmaps"],"webhooks":[{"name":"first","admission":"mutating","rules":[` + tested + `]},` +
			`{"name":"last","rules":[` + tested + `]}]}`,
		New: func() fault.Fault { return newWebhook() },
	})
}

func newWebhook() *Webhook {
	return &Webhook{
		Admission:      validating,
		Groups:         []string{"*"},
		Operations:     []string{"*"},
		TimeoutSeconds: 10,
		FailurePolicy:  string(admissionv1.Ignore),
	}
}

// tested is the rule of the webhooks in the conformance tests.
const tested = `{"answer":{"allowed":true,"auditAnnotations":{"arm":"$(arm)"}}}`

// Webhook registers webhooks.
type Webhook struct {
	Admission      string             `json:"admission,omitempty" jsonschema:"validating or mutating; default: validating"`
	Groups         []string           `json:"groups,omitempty" jsonschema:"the API groups of the resources, \"\" for the core group; default: all"`
	Resources      []string           `json:"resources,omitempty" jsonschema:"required but for a conversion: the resources that the API server asks about, as in pods or pods/eviction; \"*\" is all"`
	Operations     []string           `json:"operations,omitempty" jsonschema:"the operations that the API server asks about: CREATE, UPDATE, DELETE and CONNECT; default: all"`
	Namespaces     []string           `json:"namespaces,omitempty" jsonschema:"the names of the namespaces that the API server asks about; if not given, all. Resources without a namespace are asked about in any case"`
	FailurePolicy  string             `json:"failurePolicy,omitempty" jsonschema:"what the API server does with a request about which the webhook doesn't answer as it should: Ignore or Fail; default: Ignore"`
	TimeoutSeconds int                `json:"timeoutSeconds,omitempty" jsonschema:"how long the API server waits for an answer, in seconds: 1 to 30; default: 10"`
	Rules          webhook.Rules      `json:"rules,omitempty" jsonschema:"what becomes of a request, in order; the first rule that takes a request counts"`
	Conversion     *Conversion        `json:"conversion,omitempty" jsonschema:"what a conversion webhook converts; the fault is then no admission webhook"`
	Extender       *Extender          `json:"extender,omitempty" jsonschema:"what an extender of kube-scheduler answers by the rules; the fault is then no admission webhook"`
	Webhooks       []AdmissionWebhook `json:"webhooks,omitempty" jsonschema:"several webhooks, in order, in place of rules"`

	mu      sync.Mutex
	serving map[string]*webhook.Endpoint // by node
	armed   sync.Map                     // names of nodes whose extender this process armed, and of which it wasn't lifted since
	opened  sync.Map                     // see way
}

// AdmissionWebhook is one of several webhooks that are registered together.
type AdmissionWebhook struct {
	Name      string        `json:"name" jsonschema:"its name among the fault's: small letters, digits and hyphens. The API server knows it as NAME.FAULT.relapse.dev"`
	Admission string        `json:"admission,omitempty" jsonschema:"validating or mutating; default: the fault's"`
	Rules     webhook.Rules `json:"rules" jsonschema:"what becomes of a request that it is asked about"`
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

// Needs returns what the fault requires: an extender its seam, and a webhook nothing but the API.
func (f *Webhook) Needs() fault.Needs {
	if f.Extender != nil {
		return fault.Needs{Seams: []string{seams.SchedulerExtender}}
	}
	return fault.Needs{}
}

// MakesWebhooks reports whether the API server calls what the fault makes: kube-scheduler calls an extender.
func (f *Webhook) MakesWebhooks() bool { return f.Extender == nil }

// Makes returns the kind of artifact that the fault records: what the webhooks answered.
func (*Webhook) Makes() []bundle.Kind { return []bundle.Kind{bundle.Reviews} }

// Choices lists the kinds of admission, the operations and the failure policies.
func (*Webhook) Choices() map[string][]string {
	return map[string][]string{
		"admission":     admissions,
		"operations":    operations,
		"failurePolicy": policies,
	}
}

// ForAll returns true: an API server asks the webhooks about the requests of all arms, and kube-scheduler its extender
// about the pods of all.
func (*Webhook) ForAll() bool { return true }

// Converts returns the CustomResourceDefinition whose conversion webhook the fault is.
func (f *Webhook) Converts() (definition string) {
	if f.Conversion == nil {
		return ""
	}
	return f.Conversion.CRD
}

// Redefines reports whether the fault is the conversion webhook of a CustomResourceDefinition.
func (f *Webhook) Redefines(definition string) bool { return f.Converts() == definition }

// all returns the webhooks that are registered together.
func (f *Webhook) all() []AdmissionWebhook {
	if len(f.Webhooks) == 0 {
		return []AdmissionWebhook{{Name: "review", Admission: f.Admission, Rules: f.Rules}}
	}
	var out []AdmissionWebhook
	for _, w := range f.Webhooks {
		if w.Admission == "" {
			w.Admission = f.Admission
		}
		out = append(out, w)
	}
	return out
}

// Describe says in words what is asked of the webhooks.
func (f *Webhook) Describe() string {
	if f.Conversion != nil {
		return fmt.Sprintf("conversion webhook of %s, rules: %d", f.Conversion.CRD, len(f.Rules))
	}
	if f.Extender != nil {
		return fmt.Sprintf(
			"extender of kube-scheduler for %s, rules: %d",
			strings.Join(f.Extender.Verbs, ", "),
			len(f.Rules),
		)
	}
	var each []string
	for _, w := range f.all() {
		each = append(each, fmt.Sprintf("%s webhook%s", w.Admission, f.called(w)))
	}
	what := fmt.Sprintf(
		"%s for %s of %s",
		strings.Join(each, ", "),
		strings.Join(f.Operations, ", "),
		strings.Join(f.Resources, ", "),
	)
	if len(f.Webhooks) == 0 {
		what += fmt.Sprintf(", rules: %d", len(f.Rules))
	}
	if len(f.Namespaces) > 0 {
		what += ", in " + strings.Join(f.Namespaces, ", ")
	}
	return what
}

// called returns the name of one of several webhooks, with a space before it.
func (f *Webhook) called(w AdmissionWebhook) string {
	if len(f.Webhooks) == 0 {
		return ""
	}
	return " " + w.Name
}

// Modelled returns sentences on what is imitated.
func (f *Webhook) Modelled() (out []string) {
	if f.Conversion != nil {
		return []string{
			fmt.Sprintf("the conversion webhook of %s is the harness's own", f.Conversion.CRD),
		}
	}
	if f.Extender != nil {
		return []string{"the extender of kube-scheduler is the harness's own"}
	}
	for _, w := range f.all() {
		out = append(
			out,
			fmt.Sprintf("the %s webhook%s for %s is the harness's own", w.Admission, f.called(w),
				strings.Join(f.Resources, ", ")),
		)
	}
	return out
}

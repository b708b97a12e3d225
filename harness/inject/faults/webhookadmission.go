package faults

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/manifest"
	"github.com/kube-relapse/relapse/harness/inject/webhook"
)

// admission registers a fault's admission webhooks with one node's API server.
type admission struct {
	*Webhook
	webhook.Registration
}

// seen is the path of the webhook that shows that the others of its configuration are in force.
func seen(admission string) string { return "/seen-" + admission }

func (a admission) hooks() (out []webhook.Hook) {
	shown := map[string]bool{}
	for _, w := range a.all() {
		name := a.Fault
		if len(a.Webhooks) > 0 {
			name += "/" + w.Name
		}
		of := webhook.Admission{Mutating: w.Admission == mutating}
		out = append(
			out,
			webhook.Hook{Path: "/" + w.Name, Protocol: of, Name: name, Rules: w.Rules},
		)
		if !shown[w.Admission] {
			shown[w.Admission] = true
			out = append(out, webhook.Hook{Path: seen(w.Admission), Protocol: of, Shows: true})
		}
	}
	return out
}

// add registers the webhooks, and in the same configuration the one that is seen: so both are in force at once.
func (a admission) add(ctx context.Context, e *webhook.Endpoint) error {
	var first []admissionv1.MutatingWebhook
	var last []admissionv1.ValidatingWebhook
	where := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{a.Namespace()}}}}
	if len(a.Namespaces) > 0 {
		where.MatchExpressions = append(where.MatchExpressions, metav1.LabelSelectorRequirement{
			Key:      corev1.LabelMetadataName,
			Operator: metav1.LabelSelectorOpIn,
			Values:   a.Namespaces,
		})
	}
	for _, w := range a.all() {
		one := a.webhook(w.Name, "/"+w.Name, e, a.Groups, a.Resources, a.Operations)
		one.NamespaceSelector, one.FailurePolicy = where, new(admissionv1.FailurePolicyType(a.FailurePolicy))
		if w.Admission == mutating {
			first = append(first, asMutating(one))
		} else {
			last = append(last, one)
		}
	}
	shows := func(admission string) admissionv1.ValidatingWebhook {
		one := a.webhook(
			"seen",
			seen(admission),
			e,
			[]string{""},
			[]string{"configmaps"},
			[]string{"CREATE"},
		)
		one.NamespaceSelector = &metav1.LabelSelector{
			MatchLabels: map[string]string{manifest.LoadLabel: a.Fault},
		}
		one.FailurePolicy = new(admissionv1.Ignore)
		return one
	}
	if len(first) > 0 {
		first = append(first, asMutating(shows(mutating)))
	}
	if len(last) > 0 {
		last = append(last, shows(validating))
	}
	return a.Add(ctx, first, last)
}

// webhook returns a webhook without selector and policy.
func (a admission) webhook(
	name, path string,
	e *webhook.Endpoint,
	groups, resources, operations []string,
) admissionv1.ValidatingWebhook {
	rule := admissionv1.RuleWithOperations{
		Rule: admissionv1.Rule{APIGroups: groups, APIVersions: []string{"*"},
			Resources: resources},
	}
	for _, o := range operations {
		rule.Operations = append(rule.Operations, admissionv1.OperationType(o))
	}
	return admissionv1.ValidatingWebhook{Name: name + "." + a.Fault + ".relapse.dev", ClientConfig: e.Client(path),
		Rules: []admissionv1.RuleWithOperations{rule}, SideEffects: new(admissionv1.SideEffectClassNone),
		TimeoutSeconds: new(int32(a.TimeoutSeconds)), AdmissionReviewVersions: []string{"v1"}}
}

func asMutating(w admissionv1.ValidatingWebhook) admissionv1.MutatingWebhook {
	return admissionv1.MutatingWebhook{
		Name:                    w.Name,
		ClientConfig:            w.ClientConfig,
		Rules:                   w.Rules,
		FailurePolicy:           w.FailurePolicy,
		NamespaceSelector:       w.NamespaceSelector,
		SideEffects:             w.SideEffects,
		TimeoutSeconds:          w.TimeoutSeconds,
		AdmissionReviewVersions: w.AdmissionReviewVersions,
	}
}

func (a admission) try(ctx context.Context) (code int, past bool, err error) {
	if err := a.MakeNamespace(ctx); err != nil {
		return 0, false, err
	}
	code = a.DryRun(ctx)
	return code, bundle.Success(code) || code == http.StatusConflict, nil // a conflict is found only after admission
}

func (a admission) remove(ctx context.Context) (more bool, err error) { return true, a.Remove(ctx) }

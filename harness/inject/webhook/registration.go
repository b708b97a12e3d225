package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/inject/manifest"
)

// Seen is how long a registration may take to be in force, or to be gone.
const Seen = 60 * time.Second

// Registration is a fault's webhooks in an API server: at most one mutating and one validating configuration for each
// node, and a namespace in which dry runs show that they are in force.
type Registration struct {
	Client kubernetes.Interface
	Run    string // the run's id
	Node   string
	Fault  string
}

// Name returns the name of both configurations.
func (r Registration) Name() string { return "relapse-" + r.Fault + "-" + r.Node }

// Namespace returns the namespace of the dry runs.
func (r Registration) Namespace() string { return "relapse-" + r.Fault }

// MakeNamespace makes the namespace of the dry runs, if it isn't there.
func (r Registration) MakeNamespace(ctx context.Context) error {
	_, err := manifest.MakeNamespace(
		ctx,
		r.Client,
		r.Namespace(),
		manifest.LabelsOf(r.Run, r.Fault),
	)
	return err
}

// Add deletes both configurations and creates those that have webhooks: an old one leads to a server that may be gone.
func (r Registration) Add(ctx context.Context, mutating []admissionv1.MutatingWebhook,
	validating []admissionv1.ValidatingWebhook) error {
	if err := r.Remove(ctx); err != nil {
		return err
	}
	api, meta := r.Client.AdmissionregistrationV1(), metav1.ObjectMeta{Name: r.Name()}
	if len(mutating) > 0 {
		c := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: mutating}
		if _, err := api.MutatingWebhookConfigurations().Create(ctx, c, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if len(validating) == 0 {
		return nil
	}
	c := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: validating}
	_, err := api.ValidatingWebhookConfigurations().Create(ctx, c, metav1.CreateOptions{})
	return err
}

// Remove deletes both configurations and returns when they were seen to be gone.
func (r Registration) Remove(ctx context.Context) error {
	api := r.Client.AdmissionregistrationV1()
	return Await(ctx, func(ctx context.Context) (bool, error) {
		_, m := api.MutatingWebhookConfigurations().Get(ctx, r.Name(), metav1.GetOptions{})
		_, v := api.ValidatingWebhookConfigurations().Get(ctx, r.Name(), metav1.GetOptions{})
		if apierrors.IsNotFound(m) && apierrors.IsNotFound(v) {
			return true, nil
		}
		if m == nil {
			m = api.MutatingWebhookConfigurations().Delete(ctx, r.Name(), metav1.DeleteOptions{})
		}
		if v == nil {
			v = api.ValidatingWebhookConfigurations().
				Delete(ctx, r.Name(), metav1.DeleteOptions{})
		}
		return false, errors.Join(m, v)
	})
}

// DryRun asks for a ConfigMap in a dry run, and returns the code of the answer; 0 if there was none.
func (r Registration) DryRun(ctx context.Context) (code int) {
	r.Client.CoreV1().RESTClient().Post().Namespace(r.Namespace()).Resource("configmaps").
		Param("dryRun", metav1.DryRunAll).Param("timeout", "2s").Body(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "probe"}}).Do(ctx).StatusCode(&code)
	return code
}

// Await calls seen until it is true. If the API server isn't there, it may come back; if it answers with an internal
// error, Await gives up.
func Await(ctx context.Context, seen func(context.Context) (bool, error)) error {
	all := ctx
	ctx, cancel := context.WithTimeout(ctx, Seen)
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
			return fmt.Errorf("not seen within %s: %w", Seen, err)
		case <-tick.C:
		}
	}
}

package manifest

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The labels of what a load or fault makes. Their values are the run's id, and the load's or fault's name.
const (
	RunLabel  = "relapse.dev/run"
	LoadLabel = "relapse.dev/load"
)

// LabelsOf returns the labels of what a load or fault makes.
func LabelsOf(run, name string) map[string]string {
	return map[string]string{RunLabel: run, LoadLabel: name}
}

// NamespaceOf returns the namespace of objects of a load or fault that need one and name none.
func NamespaceOf(name, arm string) string { return "relapse-" + name + "-" + arm }

// MakeNamespace makes a namespace with labels. If there is one of that name already, that is returned as it is.
func MakeNamespace(
	ctx context.Context,
	api kubernetes.Interface,
	name string,
	labels map[string]string,
) (*corev1.Namespace, error) {
	all := api.CoreV1().Namespaces()
	made, err := all.Create(
		ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}},
		metav1.CreateOptions{},
	)
	if apierrors.IsAlreadyExists(err) {
		return all.Get(ctx, name, metav1.GetOptions{})
	}
	return made, err
}

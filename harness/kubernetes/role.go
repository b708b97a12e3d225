package kubernetes

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Role returns what a run's launcher may do in the namespace. Only where bundles don't go through the registry does it run
// commands in pods. Only where they go by a volume does it ask for the claim, and make a pod itself, which reads the volume.
// Pods themselves need nothing.
func Role(s JobSpec) *rbacv1.Role {
	pods := []string{"get", "list", "watch"}
	if s.Storage != "" {
		pods = append(pods, "create", "delete")
	}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "get", "list", "watch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: pods},
	}
	if s.runsCommands() {
		rules = append(
			rules,
			rbacv1.PolicyRule{
				APIGroups: []string{""},
				Resources: []string{"pods/exec"},
				Verbs:     []string{"create", "get"},
			},
		)
	}
	if s.Storage != "" {
		rules = append(
			rules,
			rbacv1.PolicyRule{
				APIGroups: []string{""},
				Resources: []string{"persistentvolumeclaims"},
				Verbs:     []string{"get"},
			},
		)
	}
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Name: "relapse", Namespace: s.Namespace},
		Rules:      rules,
	}
}

// runsCommands reports whether the bundles of a run come here by commands that run in pods.
func (s JobSpec) runsCommands() bool { return s.Storage != "" || s.Hold > 0 }

package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// manifests is the folder of a node's static pods.
const manifests = "/etc/kubernetes/manifests/"

// addPods adds static pods to the control planes for the components that kubeadm doesn't start and for which the
// topology has a program. It must run once the control plane is up, or the pods would find no credentials.
func (c *Cluster) addPods(ctx context.Context, nodes []cluster.NodeSpec) error {
	var errs []error
	for i, n := range c.Machines {
		spec, err := withSeams(nodes[i]) // a seam's flags lead components to what the seam installs
		errs = append(errs, err)
		for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
			if row, _ := component.Of(name); err != nil || !component.AddedPods(row) {
				continue
			}
			if err := n.addPod(ctx, name, spec.ArgsIn(name, ownFolder(name))); err != nil {
				errs = append(errs, fmt.Errorf("adding %s to %s: %w", name, n.name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// addPod writes the manifest of a component's static pod, which has the administrator's credentials that kubeadm made.
// The pod's image is that of kube-controller-manager, which each node image has. The component's own program is mounted
// into it.
func (n *Node) addPod(ctx context.Context, name string, flags map[string]string) error {
	raw, err := n.Exec(ctx, nil, "cat", manifests+"kube-controller-manager.yaml")
	if err != nil {
		return err
	}
	var neighbour corev1.Pod
	if err := yaml.UnmarshalStrict(raw, &neighbour); err != nil {
		return fmt.Errorf("parsing the manifest of kube-controller-manager: %w", err)
	}
	if len(neighbour.Spec.Containers) != 1 {
		return fmt.Errorf(
			"kube-controller-manager has %d containers, want 1",
			len(neighbour.Spec.Containers),
		)
	}
	if raw, err = yaml.Marshal(addedPod(name, neighbour.Spec.Containers[0].Image, flags)); err != nil {
		return err
	}
	return n.putManifest(ctx, name, raw)
}

// putManifest writes a manifest and moves it into place in one step: kubelet watches the folder, and must not see half
// a file.
func (n *Node) putManifest(ctx context.Context, name string, raw []byte) error {
	_, err := n.Exec(
		ctx,
		bytes.NewReader(raw),
		"sh",
		"-ec",
		`cat >/etc/kubernetes/relapse.yaml; mv /etc/kubernetes/relapse.yaml "$1"`,
		"sh",
		manifests+name+".yaml",
	)
	return err
}

// addedPod returns the static pod of a component, on its node's network.
func addedPod(name, image string, flags map[string]string) *corev1.Pod {
	row, _ := component.Of(name)
	const kubernetes = "/etc/kubernetes"
	all := map[string]string{
		"kubeconfig":                adminConfig,
		"authentication-kubeconfig": adminConfig,
		"authorization-kubeconfig":  adminConfig,
		"client-ca-file":            kubernetes + "/pki/ca.crt",
		"bind-address":              "127.0.0.1",
	}
	maps.Copy(all, flags)
	argv := []string{row.Executable}
	for _, flag := range slices.Sorted(maps.Keys(all)) {
		argv = append(argv, "--"+flag+"="+all[flag])
	}
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem,
			Labels: map[string]string{"component": name, "tier": "control-plane"}},
		Spec: corev1.PodSpec{
			HostNetwork: true, PriorityClassName: "system-node-critical",
			Containers: []corev1.Container{{Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: argv}},
		},
	}
	mount := func(at, of string, kind corev1.HostPathType) {
		volume := fmt.Sprintf("relapse-%d", len(pod.Spec.Volumes))
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: volume,
			VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: of, Type: &kind},
			},
		})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: volume, MountPath: at, ReadOnly: true})
	}
	mount(row.Executable, programPath(row), corev1.HostPathFile)
	mount(kubernetes, kubernetes, corev1.HostPathDirectory)
	return pod
}

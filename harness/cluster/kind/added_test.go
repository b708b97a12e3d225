package kind

import (
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// kubeadm knows nothing of it, so all that it needs is in its manifest.
func TestAnAddedPodRunsItsOwnProgramWithAnAdministratorsCredentials(t *testing.T) {
	pod := addedPod("cloud-controller-manager", "kcm:1", map[string]string{"v": "2", "bind-address": "0.0.0.0"})
	c := pod.Spec.Containers[0]
	for _, want := range []string{"/usr/local/bin/cloud-controller-manager", "--v=2", "--bind-address=0.0.0.0",
		"--kubeconfig=/etc/kubernetes/admin.conf", "--client-ca-file=/etc/kubernetes/pki/ca.crt"} {
		if !slices.Contains(c.Command, want) {
			t.Errorf("the command is %q, want %s in it", c.Command, want)
		}
	}
	if c.Image != "kcm:1" || !pod.Spec.HostNetwork || pod.Name != c.Name || pod.Namespace != "kube-system" {
		t.Errorf("the pod is %+v", pod)
	}
	program := pod.Spec.Volumes[0]
	if m := c.VolumeMounts[0]; m.Name != program.Name || m.MountPath != c.Command[0] || program.HostPath.Path != "/opt/relapse/subject/cloud-controller-manager" {
		t.Errorf("the program is mounted as %+v from %+v", m, program)
	}
}

// Whoever waits for a component to lead, or collects from it, must not be told of one that nothing runs.
func TestOnlyNodesThatWereGivenThemHaveAddedComponents(t *testing.T) {
	c := newCluster(&Provider{}, "c", three(func(t *cluster.Topology) {
		t.Nodes = append(t.Nodes, cluster.NodeSpec{Name: "control-plane2", Role: cluster.ControlPlane,
			Programs: map[string]string{"cloud-controller-manager": "/built"}, Seams: map[string]string{"lbaas": "/built"}})
	}))
	for _, name := range []string{"cloud-controller-manager", "relapse-lbaas"} {
		if got := c.Components(name); len(got) != 1 || got[0].Name() != name || got[0].Node().Name() != "c-control-plane2" {
			t.Errorf("the instances of %s are %+v, want the one of control-plane2", name, got)
		}
	}
	if got := c.Components("kube-scheduler"); len(got) != 2 {
		t.Errorf("there are %d schedulers, want 2", len(got))
	}
}

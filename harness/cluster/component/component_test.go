package component_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// Each row says all that is asked of it: where the program is, how it is reached, what tells that it is ready, and where its flags go.
func TestEveryRowIsWhole(t *testing.T) {
	all := component.Names(func(component.Component) bool { return true })
	if want := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"}; !slices.Equal(all, want) {
		t.Errorf("the table has %v, want %v", all, want)
	}
	for _, name := range all {
		c, known := component.Of(name)
		if !known || !strings.HasSuffix(c.Executable, "/"+name) || !strings.HasPrefix(c.Ready, "/") || len(c.Kubeadm.Path) == 0 || len(c.Kubeadm.Documents) == 0 {
			t.Errorf("%s is %+v", name, c)
		}
		if c.Endpoint.Proxied && c.Endpoint.URL != "" || c.Endpoint.Authenticated && !strings.HasPrefix(c.Endpoint.URL, "https://127.0.0.1:") {
			t.Errorf("%s is asked by %+v", name, c.Endpoint)
		}
		if c.Node && c.Limited {
			t.Errorf("%s runs on the node itself, and only a pod's memory can be limited", name)
		}
	}
	if c, known := component.Of("fleet-agent"); known || c.Node {
		t.Errorf("a workload is a component: %+v", c)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		hold func(component.Component) bool
		want string
	}{
		{component.Flagged, "etcd kube-apiserver kube-controller-manager kube-scheduler kubelet"},
		{component.StaticPods, "etcd kube-apiserver kube-controller-manager kube-scheduler"},
		{component.Limited, "kube-apiserver kube-controller-manager kube-scheduler"},
	} {
		if got := strings.Join(component.Names(c.hold), " "); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

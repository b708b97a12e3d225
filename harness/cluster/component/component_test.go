package component_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// Each row says all that is asked of it: where the program is, how it is reached, what tells that it is ready, and
// where its flags go.
func TestEveryRowIsWhole(t *testing.T) {
	all := component.Names(nil)
	if want := strings.Fields(
		"cloud-controller-manager etcd kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubelet " +
			"relapse-lbaas"); !slices.Equal(all, want) {
		t.Errorf("the table has %v, want %v", all, want)
	}
	for _, name := range all {
		c, known := component.Of(name)
		if !known || !strings.HasSuffix(c.Executable, "/"+name) || !strings.HasPrefix(c.Ready, "/") {
			t.Errorf("%s is %+v", name, c)
		}
		added := c.Runs == component.AsAddedPod || c.Runs == component.AsSeam
		if k := c.Kubeadm; !added && (len(k.Documents) == 0 || (len(k.Path) == 0) != (k.Config != "")) {
			t.Errorf("the flags of %s go to %+v", name, k)
		}
		if c.Endpoint.Proxied && c.Endpoint.URL != "" || c.Endpoint.Authenticated &&
			!strings.HasPrefix(c.Endpoint.URL, "https://127.0.0.1:") {
			t.Errorf("%s is asked by %+v", name, c.Endpoint)
		}
		if c.Limited && c.Runs != component.AsStaticPod {
			t.Errorf("%s is no static pod, and only the memory of those can be limited", name)
		}
	}
	if c, known := component.Of("fleet-agent"); known || c.Runs != component.Nowhere {
		t.Errorf("a workload is a component: %+v", c)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		hold func(component.Component) bool
		want string
	}{
		{component.Flagged, "cloud-controller-manager etcd kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubelet"},
		{component.TakesFlags, "cloud-controller-manager etcd kube-apiserver kube-controller-manager kube-scheduler kubelet"},
		{component.StaticPods, "etcd kube-apiserver kube-controller-manager kube-scheduler"},
		{component.Limited, "kube-apiserver kube-controller-manager kube-scheduler"},
		{component.Remote, "etcd kube-apiserver kubelet"},
	} {
		if got := strings.Join(component.Names(c.hold), " "); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// Which nodes run a component, where its endpoint is and how much older than the API server it may be, as Kubernetes
// documents it.
func TestWhereComponentsRun(t *testing.T) {
	for _, c := range []struct {
		name             string
		control, workers bool
		url              string
		older, before28  int
	}{
		{"kubelet", true, true, "", 3, 2},
		{"kube-apiserver", true, false, "", 0, 0},
		{"kube-controller-manager", true, false, "https://127.0.0.1:10257", 1, 1},
		{"kube-scheduler", true, false, "https://127.0.0.1:10259", 1, 1},
		{"cloud-controller-manager", true, false, "https://127.0.0.1:10258", 1, 1},
		{"kube-proxy", true, true, "http://127.0.0.1:10249", 3, 2},
		{"etcd", true, false, "http://127.0.0.1:2381", -1, -1},
		{"relapse-lbaas", true, false, "http://127.0.0.1:9876", -1, -1},
		{"fleet-agent", false, false, "", 0, 0},
	} {
		row, _ := component.Of(c.name)
		if row.OnRole(true) != c.control || row.OnRole(false) != c.workers || row.Endpoint.URL != c.url {
			t.Errorf("%s is %+v", c.name, row)
		}
		before28 := row.Older
		if row.OlderUntil != nil && row.OlderUntil.Minor == 28 {
			before28 = row.OlderUntil.Older
		}
		if row.Older != c.older || before28 != c.before28 {
			t.Errorf("%s may be %d minor versions older, and %d before v1.28, want %d and %d", c.name, row.Older, before28,
				c.older, c.before28)
		}
	}
}

// What arms can have builds of, where kubeadm has a place for them, and what they are built from in a cluster of v1.36.3.
func TestWhatComponentsAreBuiltFrom(t *testing.T) {
	for _, c := range []struct {
		name                  string
		replaceable, anywhere bool
		module, version       string
	}{
		{"kubelet", true, true, component.KubernetesModule, "v1.36.3"},
		{"etcd", true, false, component.EtcdModule, component.EtcdVersion},
		{"cloud-controller-manager", true, true, "", "v1.36.3"},
		{"relapse-lbaas", false, false, "", "v1.36.3"},
	} {
		row, _ := component.Of(c.name)
		if component.Replaceable(row) != c.replaceable || component.Mountable(row) != c.anywhere || row.Module() != c.module ||
			row.Version("v1.36.3") != c.version {
			t.Errorf("%s: it can be replaced: %t, on kind, too: %t, by %s@%s", c.name, component.Replaceable(row),
				component.Mountable(row), row.Module(), row.Version("v1.36.3"))
		}
	}
}

// Old programs are told not to open a port that another cluster's have on the same host; later ones don't know the flag.
func TestInsecurePortsAreClosedWhereVersionsOpenThem(t *testing.T) {
	for _, c := range []struct{ name, version, want string }{
		{"kube-apiserver", "v1.19.16", "map[insecure-port:0]"}, {"kube-apiserver", "v1.20.0", "map[]"}, {"kube-apiserver", "v1.36.3", "map[]"},
		{"kube-scheduler", "v1.19.16", "map[port:0]"}, {"kube-scheduler", "v1.22.17", "map[port:0]"}, {"kube-scheduler", "v1.23.0", "map[]"},
		{"kube-scheduler", "v1.24.0", "map[]"}, {"kube-scheduler", "v1.36.3", "map[]"},
		{"kube-controller-manager", "v1.21.14", "map[port:0]"}, {"kube-controller-manager", "v1.22.0", "map[]"}, {"kube-controller-manager", "v1.24.0", "map[]"},
		{"kube-scheduler", "unknown", "map[]"}, {"etcd", "v1.19.16", "map[]"}, {"kubelet", "v1.19.16", "map[]"},
	} {
		row, _ := component.Of(c.name)
		if got := fmt.Sprint(row.Closing(c.version)); got != c.want {
			t.Errorf("%s %s is started with %s, want %s", c.name, c.version, got, c.want)
		}
	}
}

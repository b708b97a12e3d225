package seams_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// etcd is the connection that these tests install.
var etcd = control.Connections["etcd"]

func TestInstallConnection(t *testing.T) {
	s, err := kinds.Decode[seam.Seam](kinds.Seam, "etcd", nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Role() != cluster.ControlPlane || s.Fixture() != "connection-proxy" {
		t.Errorf("it is laid on a %s from %s", s.Role(), s.Fixture())
	}
	n := cluster.NodeSpec{Name: "control-plane", Role: cluster.ControlPlane,
		Args: map[string]map[string]string{"kube-apiserver": {"v": "4"}}}
	if err := seam.Install(&n, s, "/cache/relapse-etcd"); err != nil {
		t.Fatal(err)
	}
	want := cluster.NodeSpec{
		Name: "control-plane", Role: cluster.ControlPlane,
		Files: []cluster.File{{Path: "/usr/local/bin/relapse-etcd", Source: "/cache/relapse-etcd", Mode: 0o755}},
		Units: []cluster.Unit{
			{Name: "relapse-etcd.service", Content: etcd.Unit()},
			{Name: "kubelet.service", DropIn: "20-relapse-etcd.conf", Content: etcd.KubeletDropIn()},
		},
		Args: map[string]map[string]string{"kube-apiserver": {"v": "4", "etcd-servers": "https://127.0.0.1:12379"}},
	}
	if diff := cmp.Diff(want, n); diff != "" {
		t.Errorf("the node (-want +got):\n%s", diff)
	}
}

// kubelets are on each node, and are led by their kubeconfigs; all pods of kube-proxy have the same arguments; webhooks are
// where the harness says.
func TestConnectionsThatNoFlagOfKubeadmLeads(t *testing.T) {
	for name, want := range map[string]struct{ role, client, args string }{"kubelet-apiserver": {"", "kubelet", ""},
		"kube-proxy-apiserver": {"", "kube-proxy", "--master=https://127.0.0.1:16445"},
		seams.Webhooks:         {cluster.ControlPlane, "kube-apiserver", ""}} {
		s, err := kinds.Decode[seam.Seam](kinds.Seam, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Join(s.(seam.OfDaemons).DaemonArgs(), " ")
		if s.Role() != want.role || s.(seam.Leader).Leads() != want.client || args != want.args || len(s.Args()) != 0 {
			t.Errorf("%s is on %q, leads %s, and adds %q and %v", name, s.Role(), s.(seam.Leader).Leads(), args, s.Args())
		}
		if on := seam.On(s, cluster.Worker); on != (want.role == "") || !seam.On(s, cluster.ControlPlane) {
			t.Errorf("%s is on workers: %v", name, on)
		}
	}
}

func TestProxyRunsInTheNode(t *testing.T) {
	c := clustertest.New("seam", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "control-plane",
		Role: cluster.ControlPlane}}})
	t.Cleanup(c.Close)
	n := c.Node("control-plane")
	var got string
	n.Handle(etcd.BinaryPath(), func(_ context.Context, stdin io.Reader, argv []string) ([]byte, error) {
		b, err := io.ReadAll(stdin)
		got = strings.Join(argv[1:], " ") + " " + string(b)
		return []byte(`{"ids":[]}`), err
	})
	client, err := seams.Proxy(n, "etcd")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Disarm(t.Context(), control.Disarm{All: true}); err != nil || got != `ctl --connection etcd disarm {"all":true}` {
		t.Errorf("it ran %q, %v", got, err)
	}
	if _, err := seams.Proxy(n, "dns"); err == nil || !strings.Contains(err.Error(), `connection is "dns"`) {
		t.Errorf("an unknown connection: %v", err)
	}
}

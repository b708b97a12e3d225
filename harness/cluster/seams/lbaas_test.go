package seams_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// A control plane gets the API's program, the configuration by which it is found, and the flag that names that.
func TestInstallLBaaS(t *testing.T) {
	s, err := kinds.Decode[seam.Seam](kinds.Seam, "lbaas", nil)
	if err != nil {
		t.Fatal(err)
	}
	n := cluster.NodeSpec{Name: "control-plane", Role: cluster.ControlPlane}
	if err := seam.Install(&n, s, "/cache/lbaas"); err != nil {
		t.Fatal(err)
	}
	if s.Role() != cluster.ControlPlane || s.Fixture() != "lbaas" || len(n.Files) != 2 || len(n.Units) != 2 {
		t.Fatalf("on a %s from %s: %+v", s.Role(), s.Fixture(), n)
	}
	if n.Files[0].Path != control.LBaaSBinaryPath || n.Files[0].Source != "/cache/lbaas" {
		t.Errorf("its program is %+v", n.Files[0])
	}
	config := n.Args["cloud-controller-manager"]["cloud-config"]
	if n.Files[1].Path != config || !strings.Contains(string(n.Files[1].Content), "auth-url=http://"+control.LBaaSListen+"/v3\n") ||
		!strings.Contains(string(n.Files[1].Content), "request-timeout=10s\n") {
		t.Errorf("cloud-controller-manager reads %q, and there is %s:\n%s", config, n.Files[1].Path, n.Files[1].Content)
	}
	if !strings.Contains(n.Units[0].Content, "ExecStart="+control.LBaaSBinaryPath+" serve\n") ||
		n.Units[1].Name != "kubelet.service" || !strings.Contains(n.Units[1].Content, "After="+n.Units[0].Name) {
		t.Errorf("the units are %+v", n.Units)
	}
}

// The API is a component, which collectors ask where the seam puts it.
func TestTheTableOfComponentsKnowsWhereTheAPIIs(t *testing.T) {
	c, known := component.Of("relapse-lbaas")
	if !known || c.Executable != control.LBaaSBinaryPath || c.Endpoint.URL != "http://"+control.LBaaSListen {
		t.Errorf("the table has %+v, %v; want %s at %s", c, known, control.LBaaSBinaryPath, control.LBaaSListen)
	}
}

func TestLoadBalancerAPIRunsInTheNode(t *testing.T) {
	c := clustertest.New("seam", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "control-plane",
		Role: cluster.ControlPlane}}})
	t.Cleanup(c.Close)
	n := c.Node("control-plane")
	var got string
	n.Handle(control.LBaaSBinaryPath, func(_ context.Context, stdin io.Reader, argv []string) ([]byte, error) {
		b, err := io.ReadAll(stdin)
		got = strings.Join(argv[1:], " ") + " " + string(b)
		return []byte(`{"how":"hang"}`), err
	})
	client, err := seams.LoadBalancerAPI(n)
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.Arm(t.Context(), control.Arm{ID: "a", Owner: "b", Expires: 1}, control.LBaaSFault{How: "hang", Path: "/x"})
	if want := `ctl arm {"id":"a","owner":"b","expires":"1ns","how":"hang","path":"/x"}`; err != nil || got != want || r.How != "hang" {
		t.Errorf("it ran %q and got %+v, %v; want %q", got, r, err, want)
	}
}

package seams_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// A control plane gets the extender's program, and kube-scheduler beside its other files a configuration that names the
// extender and the kubeconfig that it has anyway.
func TestInstallExtender(t *testing.T) {
	s, err := kinds.Decode[seam.Seam](kinds.Seam, seams.SchedulerExtender, nil)
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]map[string]string{"kube-scheduler": {"a": "b"}}
	n := cluster.NodeSpec{Name: "control-plane", Role: cluster.ControlPlane, OwnFiles: own}
	if err := seam.Install(&n, s, "/cache/extender"); err != nil {
		t.Fatal(err)
	}
	if s.Role() != cluster.ControlPlane || len(n.Files) != 1 || n.Files[0].Path != control.ExtenderBinaryPath || n.Files[0].Source != "/cache/extender" {
		t.Errorf("on a %s: %+v", s.Role(), n.Files)
	}
	if !strings.Contains(n.Units[0].Content, "ExecStart="+control.ExtenderBinaryPath+" serve\n") ||
		n.Units[1].Name != "kubelet.service" || !strings.Contains(n.Units[1].Content, "After="+n.Units[0].Name) {
		t.Errorf("the units are %+v", n.Units)
	}
	files := n.OwnFiles["kube-scheduler"]
	config := files[n.Args["kube-scheduler"]["config"]]
	for _, line := range []string{"kubeconfig: /etc/kubernetes/scheduler.conf\n", "urlPrefix: http://" + control.ExtenderListen + "\n", "filterVerb: filter\n"} {
		if !strings.Contains(config, line) {
			t.Errorf("the configuration lacks %q:\n%s", line, config)
		}
	}
	if files["a"] != "b" || len(own["kube-scheduler"]) != 1 {
		t.Errorf("its own files are %v, and those that were handed in %v", files, own)
	}
	if got := n.ArgsIn("kube-scheduler", "/own")["config"]; got != "/own/"+n.Args["kube-scheduler"]["config"] {
		t.Errorf("kube-scheduler gets --config=%s", got)
	}
}

func TestAnExtenderBesideAConfigurationOfItsOwnIsRefused(t *testing.T) {
	n := cluster.NodeSpec{Name: "control-plane", Args: map[string]map[string]string{"kube-scheduler": {"config": "mine.yaml"}}}
	err := seam.Install(&n, &seams.Extender{}, "bin")
	if want := "kube-scheduler has --config=mine.yaml already, the seam wants relapse-extender.yaml"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

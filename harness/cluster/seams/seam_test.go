package seams_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func TestLayCRI(t *testing.T) {
	s, err := kinds.Decode[seam.Seam](kinds.Seam, "cri", nil)
	if err != nil {
		t.Fatal(err)
	}
	n := cluster.NodeSpec{
		Name: "worker", Role: cluster.Worker,
		Files: []cluster.File{{Path: "/usr/bin/kubelet", Source: "/cache/kubelet", Mode: 0o755}},
		Args:  map[string]map[string]string{"kubelet": {"v": "4"}},
	}
	before := n.Args
	if err := seam.Install(&n, s, "/cache/relapse-cri"); err != nil {
		t.Fatal(err)
	}
	want := cluster.NodeSpec{
		Name: "worker", Role: cluster.Worker,
		Files: []cluster.File{
			{Path: "/usr/bin/kubelet", Source: "/cache/kubelet", Mode: 0o755},
			{Path: "/usr/local/bin/relapse-cri", Source: "/cache/relapse-cri", Mode: 0o755},
		},
		Units: []cluster.Unit{
			{Name: "relapse-cri.service", Content: control.Unit},
			{Name: "kubelet.service", DropIn: "20-relapse-cri.conf", Content: control.KubeletDropIn},
		},
		Args: map[string]map[string]string{"kubelet": {"v": "4",
			"container-runtime-endpoint": "unix:///run/relapse/cri.sock"}},
	}
	if diff := cmp.Diff(want, n); diff != "" {
		t.Errorf("the node (-want +got):\n%s", diff)
	}
	if len(before["kubelet"]) != 1 {
		t.Errorf("the flags that were handed in changed: %v", before)
	}
}

func TestLayRefusesAContradiction(t *testing.T) {
	n := cluster.NodeSpec{Name: "worker", Args: map[string]map[string]string{"kubelet": {"container-runtime-endpoint": "unix:///elsewhere"}}}
	err := seam.Install(&n, &seams.CRI{}, "bin")
	want := `installing a seam in node "worker": kubelet has --container-runtime-endpoint=unix:///elsewhere already, the seam wants unix:///run/relapse/cri.sock`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestNewUnknown(t *testing.T) {
	_, err := kinds.Decode[seam.Seam](kinds.Seam, "etc", nil)
	want := `unknown seam kind "etc": want one of ["apiserver-webhook" "cloud-controller-manager-apiserver" "controller-manager-apiserver" "cri" "etcd" "kube-proxy-apiserver" "kubelet-apiserver" "lbaas" "scheduler-apiserver" "scheduler-extender"]`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

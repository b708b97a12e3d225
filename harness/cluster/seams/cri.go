package seams

import (
	"path"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Seam, kinds.Kind[seam.Seam]{
		Name: "cri",
		Doc: `The container runtime's socket, between kubelet and containerd.

A proxy listens at the address at which the kubelet is told to find its runtime. The proxy passes everything through to
containerd, until a fault is armed in the proxy. The proxy runs on every worker from the start, so that both arms use
the proxy in every phase.`,
		Example: "name: cri\nkind: cri\n",
		New:     func() seam.Seam { return &CRI{} },
	})
}

// CRI is the seam between kubelet and containerd. It has no settings.
type CRI struct{}

// Fixture returns the interposer's folder.
func (*CRI) Fixture() string { return "cri-interposer" }

// Role returns Worker: the kubelet of the control plane belongs to no arm.
func (*CRI) Role() string { return cluster.Worker }

// Files returns the interposer's binary.
func (*CRI) Files(bin string) []cluster.File {
	return []cluster.File{{Path: control.BinaryPath, Source: bin, Mode: 0o755}}
}

// Units returns the unit that runs the interposer, and a drop-in that makes the kubelet wait for it.
func (*CRI) Units() []cluster.Unit {
	return []cluster.Unit{
		{Name: control.UnitName, Content: control.Unit},
		{Name: "kubelet.service", DropIn: path.Base(control.KubeletDropInPath), Content: control.KubeletDropIn},
	}
}

// Args returns the flag that leads the kubelet through the interposer. The flag outranks the socket in the
// configuration that kubeadm writes for the node.
func (*CRI) Args() map[string]map[string]string {
	return map[string]map[string]string{
		"kubelet": {"container-runtime-endpoint": "unix://" + control.CRISocket},
	}
}

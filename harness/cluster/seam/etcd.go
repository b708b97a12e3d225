package seam

import (
	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Seam, kinds.Kind[Seam]{
		Name: "etcd",
		Doc: `The connections between kube-apiserver and etcd.

A proxy listens at the address at which kube-apiserver is told to find etcd. The proxy passes everything through to
etcd, until a fault is armed in the proxy. TLS runs between kube-apiserver and etcd, so the proxy can't read the data.
The proxy runs on the control plane from the start, in every arm and every phase.`,
		Example: "name: etcd\nkind: etcd\n",
		New:     func() Seam { return &Etcd{} },
	})
}

// Etcd is the seam between kube-apiserver and etcd. It has no settings.
type Etcd struct{}

// Fixture returns the proxy's folder.
func (*Etcd) Fixture() string { return "etcd-proxy" }

// Role returns ControlPlane, where both kube-apiserver and etcd run.
func (*Etcd) Role() string { return cluster.ControlPlane }

// Files returns the proxy's binary.
func (*Etcd) Files(bin string) []cluster.File {
	return []cluster.File{{Path: control.EtcdBinaryPath, Source: bin, Mode: 0o755}}
}

// Units returns the unit that runs the proxy, and a drop-in that makes the kubelet, which starts both ends, wait for
// it.
func (*Etcd) Units() []cluster.Unit {
	return []cluster.Unit{
		{Name: control.EtcdUnitName, Content: control.EtcdUnit},
		{Name: "kubelet.service", DropIn: control.EtcdKubeletDropInName, Content: control.EtcdKubeletDropIn},
	}
}

// Args returns the flag that leads kube-apiserver through the proxy. kubeadm lets the flag override its own
// etcd-servers. etcd's certificate names 127.0.0.1, whatever the port.
func (*Etcd) Args() map[string]map[string]string {
	return map[string]map[string]string{"kube-apiserver": {"etcd-servers": "https://" + control.EtcdListen}}
}

package seams

import (
	"fmt"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	for _, name := range control.ConnectionNames() {
		c := control.Connections[name]
		kinds.Register(kinds.Seam, kinds.Kind[seam.Seam]{
			Name: name,
			Doc: fmt.Sprintf(`The connections between %[1]s and %[2]s.

A proxy listens at the address at which %[1]s is told to find %[2]s. The proxy passes everything through to
%[2]s, until a fault is armed in the proxy. TLS runs between %[1]s and %[2]s, so the proxy can't read the data.
The proxy runs on the control plane from the start, in every arm and every phase.%[3]s`, c.Client, c.Server, c.Aside),
			Example: fmt.Sprintf("name: %[1]s\nkind: %[1]s\n", name),
			New:     func() seam.Seam { return &Connection{c} },
		})
	}
}

// Connection is the seam between the two ends of a connection. It has no settings.
type Connection struct{ of control.Connection }

// Fixture returns the proxy's folder.
func (*Connection) Fixture() string { return "connection-proxy" }

// Role returns ControlPlane, where both ends run.
func (*Connection) Role() string { return cluster.ControlPlane }

// Files returns the proxy's binary.
func (s *Connection) Files(bin string) []cluster.File {
	return []cluster.File{{Path: s.of.BinaryPath(), Source: bin, Mode: 0o755}}
}

// Units returns the unit that runs the proxy, and a drop-in that makes the kubelet, which starts both ends, wait for
// it.
func (s *Connection) Units() []cluster.Unit {
	return []cluster.Unit{
		{Name: s.of.UnitName(), Content: s.of.Unit()},
		{Name: "kubelet.service", DropIn: s.of.KubeletDropInName(), Content: s.of.KubeletDropIn()},
	}
}

// Args returns the flag that leads the client through the proxy. A flag outranks what kubeadm writes. The server's
// certificate names 127.0.0.1, whatever the port.
func (s *Connection) Args() map[string]map[string]string {
	return map[string]map[string]string{s.of.Client: {s.of.Flag: "https://" + s.of.Listen}}
}

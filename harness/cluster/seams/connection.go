package seams

import (
	"fmt"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// Webhooks is the name of the seam between the API server and the webhooks of the harness.
const Webhooks = "apiserver-webhook"

// Loopback is where the proxy of Webhooks listens.
const Loopback = "127.0.0.1"

func init() {
	for _, name := range control.ConnectionNames() {
		c := control.Connections[name]
		kinds.Register(kinds.Seam, kinds.Kind[seam.Seam]{
			Name: name,
			Doc: fmt.Sprintf(`The connections between %[1]s and %[2]s.

A proxy listens at the address at which %[1]s is told to find %[2]s. The proxy passes everything through to
%[2]s, until a fault is armed in the proxy. TLS runs between %[1]s and %[2]s, so the proxy can't read the data.
The proxy runs on %[3]s from the start, in every arm and every phase.%[4]s`, c.Client, c.Server, where(c), c.Aside),
			Example: fmt.Sprintf("name: %[1]s\nkind: %[1]s\n", name),
			New:     func() seam.Seam { return &Connection{c} },
		})
	}
}

// where returns where a connection's proxy runs, in words.
func where(c control.Connection) string {
	if c.Nodes {
		return "each node"
	}
	return "the control plane"
}

// Connection is the seam between the two ends of a connection. It has no settings.
type Connection struct{ of control.Connection }

// Fixture returns the proxy's folder.
func (*Connection) Fixture() string { return "connection-proxy" }

// Role returns ControlPlane, where both ends run, or "" if each node has a client.
func (s *Connection) Role() string {
	if s.of.Nodes {
		return ""
	}
	return cluster.ControlPlane
}

// Leads returns the client.
func (s *Connection) Leads() string { return s.of.Client }

// Files returns the proxy's binary.
func (s *Connection) Files(bin string) []cluster.File {
	return []cluster.File{{Path: s.of.BinaryPath(), Source: bin, Mode: 0o755}}
}

// Units returns the unit that runs the proxy, and a drop-in that makes the kubelet wait for it, which starts the client or is
// the client.
func (s *Connection) Units() []cluster.Unit {
	return []cluster.Unit{
		{Name: s.of.UnitName(), Content: s.of.Unit()},
		{Name: "kubelet.service", DropIn: s.of.KubeletDropInName(), Content: s.of.KubeletDropIn()},
	}
}

// Args returns the flag that leads the client through the proxy. A flag outranks what kubeadm writes. The server's
// certificate names 127.0.0.1, whatever the port.
func (s *Connection) Args() map[string]map[string]string {
	if s.of.Flag == "" || s.daemons() {
		return nil
	}
	return map[string]map[string]string{s.of.Client: {s.of.Flag: "https://" + s.of.Listen}}
}

// DaemonArgs returns the flag that leads the client through the proxy, if the client is a DaemonSet's.
func (s *Connection) DaemonArgs() []string {
	if !s.daemons() {
		return nil
	}
	return []string{"--" + s.of.Flag + "=https://" + s.of.Listen}
}

// daemons reports whether the client is the pods of a DaemonSet.
func (s *Connection) daemons() bool {
	row, _ := component.Of(s.of.Client)
	return row.Runs == component.AsDaemonSet
}

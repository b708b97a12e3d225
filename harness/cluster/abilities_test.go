package cluster_test

import (
	"context"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// renamed is a node that wraps another.
type renamed struct{ cluster.Node }

func (renamed) Name() string { return "renamed" }

// bare is a node that can do nothing but what all can.
type bare struct{ cluster.Node }

func (bare) Name() string                     { return "bare" }
func (bare) Abilities() cluster.NodeAbilities { return cluster.NodeAbilities{} }

// A node that wraps another can do what the other can, though its type has none of the methods.
func TestAWrappedNodeKeepsItsAbilities(t *testing.T) {
	c := clustertest.New("abilities", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "worker", Role: cluster.Worker}}})
	t.Cleanup(c.Close)
	n := renamed{c.Nodes()[0]}
	if _, has := any(n).(cluster.Execer); has {
		t.Fatal("it runs commands itself")
	}
	commands, err := cluster.Commands(n)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := commands.Exec(t.Context(), nil, "echo", "here"); err != nil || string(out) != "here\n" {
		t.Errorf("it printed %q, %v", out, err)
	}
	if _, err := cluster.Power(n); err != nil {
		t.Error(err)
	}
}

func TestWhatANodeCantDo(t *testing.T) {
	if _, err := cluster.Commands(bare{}); err == nil || err.Error() != "node bare can't run commands" {
		t.Errorf("commands: %v", err)
	}
	if _, err := cluster.Power(bare{}); err == nil || err.Error() != "node bare has no power switch" {
		t.Errorf("power: %v", err)
	}
	if _, err := cluster.NetworkOf(bare{}); err == nil || err.Error() != "node bare can't be cut off from others" {
		t.Errorf("network: %v", err)
	}
}

// plain is a cluster that runs workloads as plain processes.
type plain struct{ clustertest.Cluster }

func (*plain) Abilities() cluster.ClusterAbilities {
	return cluster.ClusterAbilities{Processes: struct{ cluster.Runner }{}}
}

// What a provider can do follows from the type of the clusters that it makes.
func TestCapabilitiesFollowFromTypes(t *testing.T) {
	machines := cluster.CapabilitiesOf(func(context.Context, string, cluster.Topology) (*clustertest.Cluster, error) {
		panic("nothing is made")
	})
	if can := machines.Nodes(); can.Commands == nil || can.Power == nil || can.Network == nil || can.RunProxy != nil || can.LogFolder != nil {
		t.Errorf("nodes in memory can do %+v", can)
	}
	if machines.Cluster().Processes != nil {
		t.Error("a cluster with kubelets runs workloads as plain processes")
	}
	processes := cluster.CapabilitiesOf(func(context.Context, string, cluster.Topology) (*plain, error) {
		panic("nothing is made")
	})
	if processes.Cluster().Processes == nil {
		t.Error("a cluster that runs workloads as plain processes isn't known for it")
	}
}

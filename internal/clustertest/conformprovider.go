package clustertest

import (
	"context"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// Maker is what ProviderConformance needs of a cluster.Provider.
type Maker interface {
	Create(ctx context.Context, name string, t cluster.Topology) (cluster.Cluster, error)
	Delete(ctx context.Context, name string) error
	// Open opens a cluster, even if another process made it.
	Open(ctx context.Context, name string) (cluster.Cluster, error)
}

// ProviderConformance tests whether a provider keeps its contract, and calls use with the cluster that it makes. No
// cluster of that name may exist before, and none is left afterwards.
func ProviderConformance(t *testing.T, p Maker, name string, topo cluster.Topology,
	use func(*testing.T, cluster.Cluster)) {
	if err := p.Delete(t.Context(), name); err != nil {
		t.Fatalf("deleting what isn't there: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		for range 2 {
			if err := p.Delete(ctx, name); err != nil {
				t.Error(err)
			}
		}
		if _, err := p.Open(ctx, name); err == nil {
			t.Error("a cluster that was deleted can be opened")
		}
	})
	c, err := p.Create(t.Context(), name, topo)
	if err != nil {
		t.Fatal(err)
	}
	if c.Name() != name {
		t.Errorf("the cluster's name is %q, want %q", c.Name(), name)
	}
	if _, err := p.Create(t.Context(), name, topo); err == nil {
		t.Error("a second cluster of the same name was made")
	}
	use(t, c)
	again, err := p.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range again.Nodes() {
		if want := c.Nodes()[i]; n.Name() != want.Name() || n.Role() != want.Role() || n.Arm() != want.Arm() {
			t.Errorf("opened, node %d is %s (%s, %s)", i, n.Name(), n.Role(), n.Arm())
		}
	}
}

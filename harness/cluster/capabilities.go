package cluster

import "context"

// Capabilities says what a provider's clusters can do. It is known before any cluster exists. What clusters and nodes
// can do follows from their types, by CapabilitiesOf; the provider sets the fields.
type Capabilities struct {
	cluster ClusterAbilities
	node    NodeAbilities

	NodeFiles bool     // NodeSpec.Files and Units are honoured
	Kubelets  bool     // every node is a machine with a kubelet and a Node object, which becomes Ready
	Bounded   bool     // nodes run without CAP_SYS_RESOURCE
	Seams     []string // the seams available where NodeFiles is false; with NodeFiles all are

	NoMemoryLimits  string        // why the memory of components can't be limited; "" if it can
	OneControlPlane func() string // says why a cluster can't have several control planes, "" if it can; nil if it can
}

// CapabilitiesOf returns the abilities of the clusters that create makes. It doesn't call create: the type says
// it all.
func CapabilitiesOf[T any, C interface {
	*T
	Cluster
}](create func(ctx context.Context, name string, t Topology) (C, error)) Capabilities {
	none := C(new(T))
	return Capabilities{cluster: none.Abilities(), node: none.nodeAbilities()}
}

// Cluster returns what each cluster will be able to do. Only which fields are nil counts: nothing exists yet.
func (c Capabilities) Cluster() ClusterAbilities { return c.cluster }

// Nodes returns what each node will be able to do. Only which fields are nil counts: nothing exists yet.
func (c Capabilities) Nodes() NodeAbilities { return c.node }

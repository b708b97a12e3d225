// Package seam has the seams: places between two components where a proxy of relapse sits from a cluster's start, in
// every arm. Each kind has its own file.
package seam

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// Seam is what has to be installed in a node for it.
type Seam interface {
	// Fixture is the fixture that the proxy is built from, a folder's name under fixtures/.
	Fixture() string
	// Role is the role of the nodes that get it.
	Role() string
	// Files are installed; bin is the proxy's binary on the host.
	Files(bin string) []cluster.File
	// Units run the proxy.
	Units() []cluster.Unit
	// Args lead the components through it: component -> flag -> value.
	Args() map[string]map[string]string
}

// Install adds a seam to a node that is still being planned. The node's own flags stay where the seam has none; where
// both have one they must agree, or one of them would be without effect unnoticed.
func Install(n *cluster.NodeSpec, s Seam, bin string) error {
	args := map[string]map[string]string{}
	for component, flags := range n.Args {
		args[component] = maps.Clone(flags)
	}
	for component, flags := range s.Args() {
		if args[component] == nil {
			args[component] = map[string]string{}
		}
		for flag, value := range flags {
			if have, ok := args[component][flag]; ok && have != value {
				return fmt.Errorf("installing a seam in node %q: %s has --%s=%s already, the seam wants %s", n.Name,
					component,
					flag, have, value)
			}
			args[component][flag] = value
		}
	}
	n.Args = args
	n.Files = slices.Concat(n.Files, s.Files(bin))
	n.Units = slices.Concat(n.Units, s.Units())
	return nil
}

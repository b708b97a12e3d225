// Package seam says what a seam is: a place between two components where a proxy of relapse sits from a cluster's start, in
// every arm. The seams are in cluster/seams.
package seam

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// Seam says what to install in a node to put a proxy between two components.
type Seam interface {
	// Fixture returns the fixture that the proxy is built from, the name of a folder under fixtures/.
	Fixture() string
	// Role returns the role of the nodes that get the seam, "" for all roles.
	Role() string
	// Files returns the files to install; bin is the proxy's binary on the host.
	Files(bin string) []cluster.File
	// Units returns the units that run the proxy.
	Units() []cluster.Unit
	// Args returns the flags that lead the components through the proxy: component -> flag -> value.
	Args() map[string]map[string]string
}

// Configurer is a Seam that gives components files of their own, by their names. A flag of Args whose value is such a name
// gets the file's path.
type Configurer interface {
	// OwnFiles returns the files: component -> file name -> text.
	OwnFiles() map[string]map[string]string
}

// Leader is a Seam that leads a component through its proxy. Leads returns the component.
type Leader interface{ Leads() (component string) }

// OfDaemons is a Seam that may lead the pods of a DaemonSet, which all have the same arguments: so each node of the cluster
// needs the seam, an arm's or not. DaemonArgs returns the arguments to add; none if the seam leads no DaemonSet.
type OfDaemons interface{ DaemonArgs() []string }

// On reports whether nodes of a role get a seam.
func On(s Seam, role string) bool { return s.Role() == "" || s.Role() == role }

// Install adds a seam's files, units and flags to a node that is still being planned. It fails if the node sets a flag
// of the seam to another value already, because one of the two would be lost unnoticed.
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
				return fmt.Errorf(
					"installing a seam in node %q: %s has --%s=%s already, the seam wants %s",
					n.Name,
					component,
					flag,
					have,
					value,
				)
			}
			args[component][flag] = value
		}
	}
	if c, ok := s.(Configurer); ok {
		n.OwnFiles = withFiles(n.OwnFiles, c.OwnFiles())
	}
	n.Args = args
	n.Files = slices.Concat(n.Files, s.Files(bin))
	n.Units = slices.Concat(n.Units, s.Units())
	return nil
}

// withFiles returns the files of components with more of them. A seam's file names are its own: a scenario can't give one
// without its flag, which Install refuses.
func withFiles(have, more map[string]map[string]string) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, all := range []map[string]map[string]string{have, more} {
		for component, files := range all {
			if out[component] == nil {
				out[component] = map[string]string{}
			}
			maps.Copy(out[component], files)
		}
	}
	return out
}

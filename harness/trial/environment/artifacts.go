package environment

import (
	"slices"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// Artifacts has what is installed in a trial's clusters, all of it made.
type Artifacts interface {
	// Of returns the build of an arm. It is an error if there is none.
	Of(arm scenario.Arm) (Build, error)
	// Fixture returns the path of a fixture's executable on this host.
	Fixture(name string) string
}

// Build is one arm's executable and the facts about it.
type Build struct {
	Path      string // path of the executable on this host
	Digest    string // its SHA-256 in hex
	Graph     string // checksum of its module graph; "" for an executable that wasn't built here
	GoVersion string
	Flags     []string
	Changes   []string // one sentence each: how the build differs, or what is known about a given program
	Constants map[string]int64
	Modelled  []string
	Before    []Build // builds that the arm runs before this one, in order
	Diff      []byte  // a patch; how a source tree differs from another arm's source, as git prints it; what mutations changed
	Local     []byte  // how a source tree differs from its commit, as git prints it
}

// All returns all builds of the arm in order. The last one is b itself.
func (b Build) All() []Build { return append(slices.Clone(b.Before), b) }

package cluster

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"
)

// Provider makes clusters and removes them. It is safe for concurrent use.
type Provider interface {
	// Name returns the name that users know the provider by: "kind".
	Name() string
	// Capabilities returns what the clusters will be able to do, before any exists. A provider gets the value from
	// CapabilitiesOf and sets its fields.
	Capabilities(ctx context.Context) (Capabilities, error)
	// Check reports whether this host can make the clusters, before anything is built. It returns the problems that it
	// finds as a *HostError. It may install what is missing if that needs no consent. It builds nothing: n.Builder may
	// be nil.
	Check(ctx context.Context, n Needs) error
	// Prepare gets or builds the parts of clusters that outlive a cluster, such as node images and programs, so that
	// Create only has to use them. It returns the versions that verdicts name.
	Prepare(ctx context.Context, n Needs) (versions map[string]string, err error)
	// Create makes a cluster and returns once its nodes are registered and have a network; WaitReady waits for the
	// rest. If Create fails or ctx ends, Create removes what it made before it returns.
	Create(ctx context.Context, name string, t Topology) (Cluster, error)
	// Delete removes the cluster and everything that was made for it, even if the cluster is incomplete. It returns nil
	// if there is no such cluster. Another process may have created the cluster.
	Delete(ctx context.Context, name string) error
	// Retain makes the cluster outlive the process that made it, where it wouldn't anyway.
	Retain(ctx context.Context, name string) error
	// KubeconfigPath returns the path of the cluster's kubeconfig, which exists as long as the cluster and which only
	// its owner can read.
	KubeconfigPath(name string) string
}

// Needs say which clusters will be asked for, and give the provider a Builder.
type Needs struct {
	Topologies []Topology
	// the image that the user wants nodes to start from, if they start from images: auto, official, assembled or a
	// reference
	NodeImage string
	Builder   Builder
	// Arms lists the components for which the topologies bring their own programs, on every control plane.
	Arms []string
}

// Foreseer is a Provider that knows what Prepare will make, before it makes anything.
type Foreseer interface {
	// Foresee returns what Prepare will ask n.Builder for, in its order, and what else it lacks. It changes nothing, and
	// n.Builder may be nil.
	Foresee(ctx context.Context, n Needs) (Foreseen, error)
}

// Foreseen is what a provider's Prepare will make.
type Foreseen struct {
	Programs []Programs
	Fixtures []string
	Lacks    []string // parts that are no programs and aren't there: "the node image of v1.34.4"
}

// Programs are main packages of a module at a version.
type Programs struct {
	Module, Version string
	Packages        []string
}

// Versions returns the Kubernetes versions of the topologies, each once, in order of first use.
func (n Needs) Versions() []string {
	var out []string
	for _, t := range n.Topologies {
		if !slices.Contains(out, t.Version) {
			out = append(out, t.Version)
		}
	}
	return out
}

// Builder builds static programs for this machine, or finds them in the cache, where they stay until the run is over.
// It is safe for concurrent use, and builds one thing at a time, because each build uses all cores.
type Builder interface {
	// BuildPrograms builds main packages of a module at a version, or gets their programs as they were published if the
	// run does so. It returns the paths of the programs, keyed by the last element of each package path.
	BuildPrograms(
		ctx context.Context,
		module, version string,
		packages ...string,
	) (map[string]string, error)
	// BuildFixture builds a program in fixtures/ of this module and returns its path.
	BuildFixture(ctx context.Context, name string) (string, error)
}

// HostError says why this host can't make the clusters.
type HostError struct {
	Problems []string
	Hint     string // what to do next
}

// Error lists all problems, one a line.
func (e *HostError) Error() string {
	return "this host can't run it yet:\n  " + strings.Join(e.Problems, "\n  ")
}

// Keeper is a Provider that keeps what it prepared for later runs.
type Keeper interface {
	// Kept lists what is kept.
	Kept(ctx context.Context) ([]Kept, error)
	// Prune removes what nothing is using and returns what it removed.
	Prune(ctx context.Context) ([]Kept, error)
	// Clean removes the unfinished parts that killed runs left behind, and calls say for each.
	Clean(ctx context.Context, say func(string)) error
}

// Kept is one thing that a provider keeps.
type Kept struct {
	Kind    string // "image"
	Name    string
	Key     string // the hash of all its inputs
	Bytes   int64
	Created time.Time
}

// Carrier is a Provider whose clusters start from images, which can be carried to another host.
type Carrier interface {
	// Images returns the images that Prepare got for n.
	Images(n Needs) []Image
	// Save writes an image as an archive to w.
	Save(ctx context.Context, i Image, w io.Writer) error
	// Load reads the archive of one image, and lets Prepare use it for each of the clusters that images are for. It reads
	// nothing if all of them are there.
	Load(ctx context.Context, images []Image, r io.Reader) error
}

// Image is an image that clusters start from.
type Image struct {
	Version string `json:"version"`        // of Kubernetes, which the clusters ask for
	Mode    string `json:"mode"`           // as in Needs.NodeImage
	Ref     string `json:"ref"`            // its name where it was saved
	ID      string `json:"id"`             // the engine's there
	Origin  string `json:"origin"`         // "official", "assembled" or "given"
	File    string `json:"file,omitempty"` // of its archive
}

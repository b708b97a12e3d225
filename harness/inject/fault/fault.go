// Package fault says what a fault is, which can be injected into a cluster and later recovered. The faults that several
// scenarios can use are in inject/faults.
//
// A fault never proves its own effect; a collector does. Whatever a fault leaves running inside a node has its own
// time limit, so that it recovers even if the harness is dead.
package fault

import (
	"context"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// LiftTime limits how long lifting all faults of a trial may take together. Each fault has its own limit, whose error says
// more.
const LiftTime = 5 * time.Minute

// Target is where a fault or a load acts: one arm's share of a running cluster.
type Target struct {
	Run     string // the run's id, which owns what is injected
	Name    string // the item's name in the scenario, unique within it
	Arm     string
	Subject string // the component under test; "" outside of a trial
	Cluster cluster.Cluster
	Nodes   []cluster.Node // the selected nodes, at least one
	Expires time.Duration  // after this the fault lifts itself inside the node
	Events  *event.Stream
	Builds  []Build        // the arm's builds of the subject, in order; none outside of a trial, or for all arms at once
	Seams   []string       // the trial's, by their names; none outside of a trial
	Writer  *bundle.Writer // records what the fault itself sees of the subject; nil outside of a trial
}

// Build is a program of the subject.
type Build struct {
	Path   string // on this host
	Digest string // its SHA-256 in hex
}

// Needs lists what a fault requires. A plan that lacks any of it is refused.
type Needs struct {
	Seams     []string // by their names
	Exec      bool
	Power     bool
	Network   bool     // nodes that can be cut off from each other
	Nodes     bool     // Node objects; simulated ones suffice
	Webhook   bool     // another fault of the trial that is a Webhooker
	Constants []string // names that the scenario must declare
}

// Fault is data plus one behaviour.
type Fault interface {
	Needs() Needs
	// Inject returns once the effect was observed, not merely asked for.
	Inject(ctx context.Context, t Target) error
	// Recover is idempotent, works from any process, and returns once the lift was observed.
	Recover(ctx context.Context, t Target) error
}

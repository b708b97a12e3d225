// Package load says what a load is: something that can be asked of a cluster through its API, such as calls, creations
// and deletions at a rate. What a load achieved, and every response code, are evidence. The loads that several scenarios
// can use are in inject/loads.
package load

import (
	"context"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Target is the arm whose cluster the load acts on.
type Target struct {
	Run     string // the run's id, which owns what is created
	Name    string // the item's name in the scenario, unique within it
	Arm     string
	Cluster cluster.Cluster
	Nodes   []cluster.Node // those that the item's target chooses in the arm
	Events  *event.Stream
	Seed    int64  // of all random draws
	Locks   *Locks // of the trial; nil where nothing else runs
	// Round is called when a round was seen to take effect (began), and again when its last answer has come. Loads and
	// faults that come after this load wait for the first call. The second call lifts faults with a duration of their
	// own, at the latest.
	Round func(n int, began bool)
}

// Load is data plus one behaviour.
type Load interface {
	// Prepare makes the objects that the load needs, before the steady state. It returns once they are there.
	Prepare(ctx context.Context, t Target) error
	// Run puts the load on the cluster and returns after the last answer. Calls that fail are evidence, not errors.
	// When ctx ends it stops.
	Run(ctx context.Context, t Target, w *bundle.Writer) error
	// Makes returns the kinds of artifacts that the load records.
	Makes() []bundle.Kind
}

// OnNode is a Load that acts on one node of the arm and affects no other node, so that arms that share a cluster can
// each have it.
type OnNode interface{ OnNode() bool }

// Alike is a Load whose effect is the same for every arm of a cluster, whichever arm it belongs to. So arms that share
// a cluster can each have it.
type Alike interface{ Alike() bool }

// Apart is a Load that may reach only objects of the arm's own: its namespace or its name says of each whose it is. So
// arms that share a cluster can each have it.
type Apart interface{ Apart() bool }

// Probe is a Load that only asks whether the subject works. It has no effect, so it never calls Target.Round, and
// nothing can come after it.
type Probe interface{ Probe() bool }

// Long is a Load of which it is known how long it takes at least. A plan in whose phase it can't end is refused.
type Long interface{ Takes() time.Duration }

// Locks are held by name among all loads of a trial, so that arms that share a cluster make its shared objects once.
// The zero value is ready for use, and nil locks nothing.
type Locks struct{ byName sync.Map } // string -> *sync.Mutex

// Hold waits until nobody else holds name, and returns the function that gives it up.
func (l *Locks) Hold(name string) (release func()) {
	if l == nil {
		return func() {}
	}
	mu, _ := l.byName.LoadOrStore(name, &sync.Mutex{})
	mu.(*sync.Mutex).Lock()
	return mu.(*sync.Mutex).Unlock
}

// Package fault says what a fault is, which can be injected into a cluster and later recovered, and has the faults that
// several scenarios can use, each in its own file. A fault that makes sense for one scenario only stands beside it, in
// scenarios/NAME/kinds.
//
// A fault never proves its own effect; a collector does. Whatever a fault leaves running inside a node has its own
// time limit, so that it recovers even if the harness is dead.
package fault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/fixtures/control"
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

// Computer is a Fault whose parameters follow from the subject's constants and from the trial's other faults. Compute
// returns the fault with its open parameters filled in, for all arms alike, and explains each in a sentence; the
// receiver doesn't change. It is called once for each trial, before anything is injected. constants has a map for each
// arm, without unknown constants.
type Computer interface {
	Compute(constants []map[string]int64, others []Fault) (computed Fault, explained map[string]string, err error)
}

// TooLargeError is the error of a Computer for which no possible parameters are large enough for the known constants.
type TooLargeError struct{ Why string }

func (e *TooLargeError) Error() string { return e.Why }

// RuntimeSlower is a Fault that delays each call of a kubelet to its container runtime. RuntimeDelay returns by how
// much.
type RuntimeSlower interface{ RuntimeDelay() time.Duration }

// Assumer is a Computer that assumes values for constants that are unknown in some arm. Assumed returns these values,
// which checks must use, too.
type Assumer interface{ Assumed() map[string]int64 }

// Maker is a Fault that records what it sees of the subject. Makes returns the kinds of artifacts that it records.
type Maker interface{ Makes() []bundle.Kind }

// ForAll is a Fault that may act on more than the arm's own part of a cluster. ForAll returns whether it does: then arms
// that share a cluster can't each have it.
type ForAll interface{ ForAll() bool }

// Modeller is a Fault that only imitates something. Modelled returns sentences about that for the verdict.
type Modeller interface{ Modelled() []string }

// APIClient returns a client of the target's cluster whose requests never wait for each other. A request that waits its
// turn would be late to see a change. At the end it would say that time ran out instead of what it saw.
func APIClient(t Target) (*kubernetes.Clientset, error) {
	cfg := t.Cluster.RESTConfig()
	cfg.QPS = -1
	return kubernetes.NewForConfig(cfg)
}

// Each calls act on all items, such as nodes, at once and joins the errors.
func Each[T any](all []T, act func(T) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, n := range all {
		wg.Go(func() { errs[i] = act(n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// SeenWithin is how long the effect of a delay may take to be observed.
const SeenWithin = 30 * time.Second

// Arm returns what arms a proxy for the target: whose it is, and after what time it lifts itself.
func Arm(t Target) control.Arm {
	return control.Arm{ID: t.Name, Owner: t.Run, Expires: control.Duration(t.Expires)}
}

// Emit reports what the fault did on a node.
func Emit(t Target, typ string, n cluster.Node, format string, args ...any) {
	t.Events.Emit(event.Event{Type: typ, Arm: t.Arm, Message: t.Name + ": " + fmt.Sprintf(format, args...),
		Fields: map[string]any{"fault": t.Name, "node": n.Name()}})
}

package conformance_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// faultCase is how the suite sees a fault without using the fault. A kind that does several things has a case for each.
type faultCase struct {
	// name says which of the kind's cases it is. It is empty if there is no other.
	name string
	// spec is the fault's spec as JSON. If it is empty, it is the one that the kind itself names to be tested.
	spec string
	// seams are those of the fault's trial, which the fault acts through if they are there.
	seams []string
	// lay puts what the fault acts on into a world, and returns how the fault is seen there. If the fault acts by other
	// means than commands on the nodes, lay makes these call the nodes' hooks.
	lay func(*testing.T, *world) sight
	// again puts the nodes back to how they were before the fault. It is nil if recovering the fault does that.
	again func(*testing.T, *world)
	// forever says why the fault can't have a time limit. It is empty if the fault has one.
	forever string
}

// sight is how a fault is seen on a node.
type sight struct {
	// armed counts what was ever armed on the node, and lists what still is.
	armed func(*testing.T, *criNode) (ever int, armed []string)
	// inForce tells whether the effect is there. It is nil if the effect lasts as long as something is armed.
	inForce func(*testing.T, *criNode) bool
	// beside tells whether the effect of another fault of the same place is there: while the fault isn't in force, none
	// may be. It is nil if no other fault acts there, or if inForce fails the test when one does.
	beside func(*testing.T, *criNode) bool
}

// shows tells whether the fault's effect is there.
func (s sight) shows(t *testing.T, n *criNode) bool {
	t.Helper()
	if s.inForce != nil {
		return s.inForce(t, n)
	}
	_, armed := s.armed(t, n)
	return len(armed) > 0
}

// suffers tells whether the fault's effect is there, or that of another fault of the same place.
func (s sight) suffers(t *testing.T, n *criNode) bool {
	t.Helper()
	return s.shows(t, n) || s.beside != nil && s.beside(t, n)
}

// faultSuite checks one fault against the contract of Fault.
type faultSuite struct {
	entry kinds.Entry
	faultCase
	sight
	*world
}

// TestFaultsKeepTheirContract is the conformance suite of faults, on a cluster in memory with the real programs that
// faults act through.
func TestFaultsKeepTheirContract(t *testing.T) {
	for _, e := range kinds.Of(kinds.Fault) {
		all := faults.of(e.Name)
		if len(all) == 0 {
			t.Errorf("fault %s has no conformance case: nothing tests it", e.Name)
		}
		for _, c := range all {
			t.Run(path.Join(e.Name, c.name), func(t *testing.T) {
				t.Parallel()
				faultSuite{entry: e, faultCase: c, world: newWorld(t)}.run(t)
			})
		}
	}
}

func (s faultSuite) run(t *testing.T) {
	s.sight = s.lay(t, s.world)
	for _, part := range []struct {
		name string
		test func(*testing.T)
	}{
		{"Needs", s.needs}, {"InjectAndRecover", s.injectAndRecover}, {"RecoverFromAnotherProcess", s.recoverFromAnother},
		{"RecoverOfNothing", s.recoverOfNothing}, {"CancelledInject", s.cancelled}, {"PartialInject", s.partial},
		{"RecoverPastABrokenNode", s.recoverPartly}, {"TimeLimit", s.timeLimit}, {"NothingLeft", s.nothingLeft},
	} {
		if s.again != nil {
			s.again(t, s.world)
		}
		t.Run(part.name, part.test)
	}
}

// fresh makes the fault from its spec alone, as another process would.
func (s faultSuite) fresh(t *testing.T) fault.Fault {
	t.Helper()
	f, err := kinds.Decode[fault.Fault](kinds.Fault, s.entry.Name, json.RawMessage(cmp.Or(s.spec, s.entry.Tested)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (s faultSuite) target() (fault.Target, *events) {
	seen := &events{}
	return fault.Target{
		Run: "run", Name: "item", Arm: arm, Cluster: s.Cluster, Nodes: []cluster.Node{s.nodes[0].Node, s.nodes[1].Node},
		Expires: time.Minute, Events: event.NewStream(seen), Builds: s.builds, Seams: s.seams,
	}, seen
}

// force fails unless the effect is there, or isn't, as want says for each node in order. Where it isn't, no other
// effect may be there, and nothing may be armed.
func (s faultSuite) force(t *testing.T, when string, want ...bool) {
	t.Helper()
	got := make([]bool, len(s.nodes))
	var wg sync.WaitGroup // all nodes at once, because the effect may be over soon
	for i, n := range s.nodes {
		wg.Go(func() {
			if want[i] {
				got[i] = s.shows(t, n)
			} else {
				got[i] = s.suffers(t, n)
			}
		})
	}
	wg.Wait()
	for i, n := range s.nodes {
		if got[i] != want[i] {
			t.Errorf("%s, on %s its effect shows: %v, want %v", when, n.Name(), got[i], want[i])
		}
		if _, armed := s.armed(t, n); !want[i] && len(armed) > 0 {
			t.Errorf("%s, on %s is armed: %s", when, n.Name(), armed)
		}
	}
}

func (s faultSuite) needs(t *testing.T) {
	needs := s.fresh(t).Needs()
	for _, name := range needs.Seams {
		if _, ok := kinds.Lookup(kinds.Seam, name); !ok {
			t.Errorf("it needs the seam %q, which doesn't exist", name)
		}
	}
	for said, lacks := range map[string]bool{"node silent can't run commands": needs.Exec, "node silent has no power switch": needs.Power,
		"node silent can't be cut off from others": needs.Network} {
		if !lacks {
			continue
		}
		target, _ := s.target()
		target.Nodes = []cluster.Node{silentNode{}}
		for what, act := range map[string]func(context.Context, fault.Target) error{"Inject": s.fresh(t).Inject, "Recover": s.fresh(t).Recover} {
			if err := act(t.Context(), target); err == nil || !strings.Contains(err.Error(), said) {
				t.Errorf("%s on a node that lacks what it needs: %v, want %q", what, err, said)
			}
		}
	}
}

// silentNode is a node without any capability.
type silentNode struct{ cluster.Node }

func (silentNode) Name() string                     { return "silent" }
func (silentNode) Role() string                     { return cluster.Worker }
func (silentNode) Arm() string                      { return arm }
func (silentNode) Abilities() cluster.NodeAbilities { return cluster.NodeAbilities{} }

func (s faultSuite) injectAndRecover(t *testing.T) {
	s.force(t, "before", false, false)
	f := s.fresh(t)
	target, seen := s.target()
	names := []string{s.nodes[0].Name(), s.nodes[1].Name()}
	if err := f.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	s.force(t, "injected", true, true)
	if got := seen.of(event.FaultSeen); !slices.Equal(got, names) {
		t.Errorf("it was seen on %q, want %q", got, names)
	}
	if got := seen.of(event.FaultGone); len(got) > 0 {
		t.Errorf("before its recovery it was seen to be gone on %q", got)
	}
	if err := f.Inject(t.Context(), target); err != nil {
		t.Errorf("injecting it again, as a run that goes on does: %v", err)
	}
	for range 2 {
		if err := f.Recover(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		s.force(t, "recovered", false, false)
	}
	if got := slices.Compact(seen.of(event.FaultGone)); !slices.Equal(got, names) {
		t.Errorf("it was seen to be gone on %q, want %q", got, names)
	}
}

func (s faultSuite) recoverFromAnother(t *testing.T) {
	target, _ := s.target()
	if err := s.fresh(t).Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	later, _ := s.target()
	if err := s.fresh(t).Recover(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	s.force(t, "recovered from another process", false, false)
}

func (s faultSuite) recoverOfNothing(t *testing.T) {
	target, _ := s.target()
	if err := s.fresh(t).Recover(t.Context(), target); err != nil {
		t.Errorf("recovering what was never injected: %v", err)
	}
}

// cancelled tests Inject with a context that has ended, and with one that ends during the first observation.
func (s faultSuite) cancelled(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	target, _ := s.target()
	if err := s.fresh(t).Inject(over, target); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	observing := make(chan struct{}, 64)
	for _, n := range s.nodes {
		n.intercept(func(ctx context.Context, argv []string) error {
			if argv[1] != "probe" {
				return nil
			}
			observing <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		t.Cleanup(func() { n.intercept(nil) })
	}
	done := make(chan error, 1)
	go func() { done <- s.fresh(t).Inject(ctx, target) }()
	controltest.Soon(t, "the first observation", observing)
	cancel()
	began := time.Now()
	if err := controltest.Soon(t, "Inject after its context ended", done); err == nil {
		t.Error("it was cancelled before its effect was seen, and says that it was injected")
	}
	if took := time.Since(began); took > controltest.Patience/2 {
		t.Errorf("it returned %s after its context ended", took)
	}
	for _, n := range s.nodes {
		n.intercept(nil)
	}
	if err := s.fresh(t).Recover(t.Context(), target); err != nil {
		t.Error(err)
	}
	s.force(t, "recovered after a cancelled Inject", false, false)
}

// partial injects into two nodes, one of which fails.
func (s faultSuite) partial(t *testing.T) {
	broken := s.nodes[1]
	broken.intercept(func(context.Context, []string) error { return errBroken })
	t.Cleanup(func() { broken.intercept(nil) })
	target, _ := s.target()
	if err := s.fresh(t).Inject(t.Context(), target); !names(err) || !strings.Contains(err.Error(), broken.Name()) {
		t.Errorf("with one node broken: %v, want an error with its name", err)
	}
	broken.intercept(nil)
	s.force(t, "injected in part", true, false)
	if err := s.fresh(t).Recover(t.Context(), target); err != nil {
		t.Error(err)
	}
	s.force(t, "recovered", false, false)
}

// recoverPartly recovers two nodes, one of which fails. The other must be recovered all the same.
func (s faultSuite) recoverPartly(t *testing.T) {
	target, _ := s.target()
	if err := s.fresh(t).Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	broken := s.nodes[0]
	broken.intercept(func(context.Context, []string) error { return errBroken })
	t.Cleanup(func() { broken.intercept(nil) })
	if err := s.fresh(t).Recover(t.Context(), target); !names(err) || !strings.Contains(err.Error(), broken.Name()) {
		t.Errorf("with one node broken: %v, want an error with its name", err)
	}
	s.force(t, "recovered in part", true, false)
	broken.intercept(nil)
	if err := s.fresh(t).Recover(t.Context(), target); err != nil {
		t.Error(err)
	}
	s.force(t, "recovered", false, false)
}

// timeLimit injects the fault and lets only its time limit end it. A fault without a time limit must stay in force.
func (s faultSuite) timeLimit(t *testing.T) {
	target, _ := s.target()
	if s.forever != "" {
		target.Expires = time.Millisecond
		if err := s.fresh(t).Inject(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		s.force(t, "injected, past a time limit that can't be kept ("+s.forever+")", true, true)
		if err := s.fresh(t).Recover(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		s.force(t, "recovered", false, false)
		return
	}
	target.Expires = 15 * time.Second
	if err := s.fresh(t).Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	s.force(t, "injected", true, true)
	for _, n := range s.nodes {
		controltest.Eventually(t, "its lift by itself", func() string {
			if s.suffers(t, n) {
				return "it is in force on " + n.Name()
			}
			// A loaded machine can hide the effect for a moment, and an effect can end before what makes it is down.
			if _, armed := s.armed(t, n); len(armed) > 0 {
				return fmt.Sprintf("on %s is armed: %s", n.Name(), armed)
			}
			return ""
		})
	}
}

// nothingLeft checks what all tests before it left on the nodes.
func (s faultSuite) nothingLeft(t *testing.T) {
	for _, n := range s.nodes {
		ever, armed := s.armed(t, n)
		if ever == 0 {
			t.Errorf("on %s nothing was ever armed: the suite tested nothing", n.Name())
		}
		if len(armed) > 0 {
			t.Errorf("on %s is still armed: %s", n.Name(), armed)
		}
		c, err := n.client().Totals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n.runtime.mu.Lock(); len(n.runtime.touched) > 0 {
			t.Errorf("on %s real containers were touched: %q", n.Name(), n.runtime.touched)
		}
		n.runtime.mu.Unlock()
		calls := fmt.Sprint(c.Forwarded)
		if len(c.Touches) > 0 {
			t.Errorf("on %s calls that change something went on to the runtime: %s", n.Name(), calls)
		}
	}
}

// least is the latency of faults that only make something slow, as the suite injects them.
const least = 250 * time.Millisecond

// slow tells whether an action takes the latency.
func slow(t *testing.T, act func() error) bool {
	t.Helper()
	first := time.Now()
	for tries := 0; tries < 3 || tries < 20 && time.Since(first) < 6*time.Second; tries++ {
		began := time.Now() // any action on a loaded machine may be slow; under the latency all are
		if err := act(); err != nil {
			t.Fatal(err)
		}
		if time.Since(began) < least {
			return false
		}
	}
	return true
}

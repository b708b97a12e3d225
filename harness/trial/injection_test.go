package trial

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// story is what happened, in order.
type story struct {
	mu    sync.Mutex
	lines []string
}

func (s *story) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *story) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

// rounds is a load of which rounds 1..begins take effect. A round ends once it was hit, if something comes after it.
type rounds struct {
	*story
	rounds, begins int
	hit            chan struct{}
	err            error
}

func (*rounds) Prepare(context.Context, load.Target) error { return nil }
func (*rounds) Makes() []bundle.Kind                       { return nil }
func (l *rounds) Run(ctx context.Context, t load.Target, _ *bundle.Writer) error {
	for n := 1; n <= l.rounds; n++ {
		if n <= l.begins {
			l.tell("round %d began", n)
			t.Round(n, true)
			if l.hit != nil {
				select {
				case <-l.hit:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		t.Round(n, false)
	}
	return l.err
}

// blow is a fault that tells when it comes and goes.
type blow struct {
	*story
	hit chan struct{}
}

func (*blow) Needs() fault.Needs { return fault.Needs{} }
func (f *blow) Inject(context.Context, fault.Target) error {
	f.tell("injected")
	if f.hit != nil {
		f.hit <- struct{}{}
	}
	return nil
}
func (f *blow) Recover(context.Context, fault.Target) error { f.tell("recovered"); return nil }

// begun begins a fault phase in which the fault comes after the load.
func begun(t *testing.T, l load.Load, f fault.Fault, duration time.Duration) (*injection, *story) {
	t.Helper()
	r, heard := toBegin(t, l, f, duration)
	u, err := begin(t.Context(), r, []string{"fixed"}, check.Fault)
	if err != nil {
		t.Fatal(err)
	}
	return u, heard
}

// toBegin is a trial whose fault phase is to begin.
func toBegin(t *testing.T, l load.Load, f fault.Fault, duration time.Duration) (*trial, *story) {
	t.Helper()
	return toBeginIn(t, []string{"fixed"}, l, f, duration)
}

// toBeginIn is toBegin for several arms.
func toBeginIn(t *testing.T, arms []string, l load.Load, f fault.Fault, duration time.Duration) (*trial, *story) {
	t.Helper()
	heard := &story{}
	var tr plan.Trial
	for _, arm := range arms {
		topology := cluster.Topology{Nodes: []cluster.NodeSpec{{Name: cluster.ControlPlane, Role: cluster.ControlPlane, Arm: arm}}}
		tr.Arms = append(tr.Arms, plan.Arm{Arm: scenario.Arm{Name: arm}})
		tr.Clusters = append(tr.Clusters, plan.Cluster{Name: arm, Topology: topology})
	}
	w, err := bundle.Create(filepath.Join(t.TempDir(), "trial"))
	if err != nil {
		t.Fatal(err)
	}
	events := event.NewStream(w, event.SinkFunc(func(e event.Event) { heard.tell("%s", e.Message) }))
	env := fakeEnvironment(t, tr, &clustertest.Provider{InProcess: true}, event.NewStream())
	everywhere := scenario.Target{Mode: "all", Selector: scenario.Selector{Component: "kube-apiserver"}}
	r := &trial{plan: tr, env: env, writer: w, events: events, live: newLive(tr, w, events), collectors: &collectors{phases: map[string]string{}}, items: &injections{env: env, events: events,
		loads:  []plan.Load{{ItemHeader: scenario.ItemHeader{Name: "load", Target: everywhere}, Spec: l}},
		faults: []plan.Fault{{ItemHeader: scenario.ItemHeader{Name: "fault", Target: everywhere, After: &scenario.After{Name: "load"}, Duration: &metav1.Duration{Duration: duration}}, Spec: f}},
	}}
	r.enter(check.Steady, arms)
	r.enter(check.Fault, arms)
	return r, heard
}

// Where no fault is injected, a load that would come after one has its turn all the same.
func TestNullControlRunsItsLoads(t *testing.T) {
	s := &story{}
	r, _ := toBegin(t, &rounds{story: s, rounds: 1, begins: 1}, &blow{s, nil}, 0)
	r.plan.NoFaults = true
	r.items.loads[0].After, r.items.faults[0].After = &scenario.After{Name: "fault"}, nil
	u, err := begin(t.Context(), r, []string{"fixed"}, check.Fault)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(u.effective(), over(t, u), u.end()); err != nil {
		t.Fatal(err)
	}
	if got, want := s.told(), []string{"round 1 began"}; !slices.Equal(got, want) {
		t.Errorf("it went %q, want %q", got, want)
	}
}

// A load that brings the incident about by itself is left out as a fault is.
func TestNullControlGoesWithoutTriggers(t *testing.T) {
	s := &story{}
	r, _ := toBegin(t, &rounds{story: s, rounds: 1, begins: 1}, &blow{s, nil}, 0)
	r.plan.NoFaults, r.env.Trial.NoFaults = true, true
	later := r.items.loads[0]
	later.Name, later.After = "later", &scenario.After{Name: "load"}
	r.items.loads[0].Trigger = true
	r.items.loads = append(r.items.loads, later)
	u, err := begin(t.Context(), r, []string{"fixed"}, check.Fault)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(u.effective(), over(t, u), u.end()); err != nil {
		t.Fatal(err)
	}
	if got, want := s.told(), []string{"round 1 began"}; !slices.Equal(got, want) {
		t.Errorf("it went %q, want %q, by the load that comes after the trigger", got, want)
	}
}

// over waits until everything that was begun is over by itself.
func over(t *testing.T, u *injection) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- u.group.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on and on")
		return nil
	}
}

func TestFaultComesWithItsLoad(t *testing.T) {
	s, hit := &story{}, make(chan struct{})
	u, _ := begun(t, &rounds{story: s, rounds: 1, begins: 1, hit: hit}, &blow{s, hit}, 0)
	if err := errors.Join(u.effective(), over(t, u), u.end()); err != nil {
		t.Fatal(err)
	}
	if got, want := s.told(), []string{"round 1 began", "injected"}; !slices.Equal(got, want) {
		t.Errorf("it went %q, want %q", got, want)
	}
}

// With a duration it is lifted when the round is over, and comes again with the next.
func TestFaultComesWithEveryRound(t *testing.T) {
	s, hit := &story{}, make(chan struct{})
	u, _ := begun(t, &rounds{story: s, rounds: 2, begins: 2, hit: hit}, &blow{s, hit}, time.Minute)
	if err := errors.Join(u.effective(), over(t, u), u.end()); err != nil {
		t.Fatal(err)
	}
	got := s.told()
	if n := len(slices.DeleteFunc(slices.Clone(got), func(l string) bool { return l != "injected" })); n != 2 {
		t.Errorf("injected %d times: %q", n, got)
	}
	if got[0] != "round 1 began" || got[1] != "injected" || got[len(got)-1] != "recovered" {
		t.Errorf("it went %q", got)
	}
}

func TestFaultIsLiftedAfterItsDuration(t *testing.T) {
	s := &story{}
	u, _ := begun(t, &rounds{story: s, rounds: 1, begins: 1, hit: make(chan struct{})}, &blow{s, nil}, 10*time.Millisecond)
	for deadline := time.Now().Add(20 * time.Second); !slices.Contains(s.told(), "recovered"); time.Sleep(time.Millisecond) { // between two looks
		if time.Now().After(deadline) {
			t.Fatalf("it was never lifted: %q", s.told())
		}
	}
	if err := u.end(); err != nil { // the round is still on
		t.Errorf("ending it: %v", err)
	}
}

func TestLoadsErrorEndsThePhase(t *testing.T) {
	s := &story{}
	u, _ := begun(t, &rounds{story: s, rounds: 1, err: errors.New("disk full")}, &blow{s, nil}, 0)
	<-u.ctx.Done()
	if err := u.end(); err == nil || !strings.Contains(err.Error(), "running the load load in fixed: disk full") {
		t.Errorf("it ended with %v", err)
	}
}

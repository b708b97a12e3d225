package conformance_test

import (
	"bufio"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// staged is the scripted subject in the fault phase of a trial.
type staged struct {
	*subject
	w      *bundle.Writer
	events *event.Stream
	phase  context.Context // ends with the phase
	end    context.CancelFunc
	acts   sync.WaitGroup // what goes on during the phase
}

// newStaged begins the fault phase, starts every collector and makes the evidence of every check's case.
func newStaged(t *testing.T) *staged {
	t.Helper()
	s := &staged{subject: newSubject(t), w: newBundle(t)}
	s.events = event.NewStream(s.w)
	s.phase, s.end = context.WithCancel(t.Context())
	t.Cleanup(func() { s.end(); s.acts.Wait() })
	built := bundle.ArmWorld{Arm: arm}
	for _, c := range checks.all {
		built.Flags = append(built.Flags, c.value.flags...)
	}
	if err := s.w.SetWorld(bundle.World{Run: s.Name(), Arms: []bundle.ArmWorld{built}}); err != nil { // nodes are named after the run
		t.Fatal(err)
	}
	for _, c := range collectors.all {
		if c.value.lay != nil {
			c.value.lay(t, s.subject)
		}
	}
	s.events.Say(event.Phase, check.Fault)
	s.follow(t)
	for _, c := range checks.all {
		if c.value.evidence != nil {
			c.value.evidence(t, s)
		}
	}
	s.snapshots(t)
	return s
}

// follow starts every collector that makes streams.
func (s *staged) follow(t *testing.T) {
	t.Helper()
	for _, e := range kinds.Of(kinds.Collector) {
		of := collectors.only(t, e.Name)
		c := newCollector(t, e.Name, of.spec)
		if st, ok := c.(capture.Streamer); ok {
			s.acts.Go(func() { _ = st.Stream(s.phase, s.target(c, of), s.w) }) // what a stream lost shows in the checks
		}
	}
}

// snapshots takes two snapshots with every collector that makes them.
func (s *staged) snapshots(t *testing.T) {
	t.Helper()
	for _, e := range kinds.Of(kinds.Collector) {
		of := collectors.only(t, e.Name)
		c := newCollector(t, e.Name, of.spec)
		sn, ok := c.(capture.Snapshotter)
		if !ok {
			continue
		}
		for range 2 {
			if err := sn.Snapshot(s.phase, s.target(c, of), s.w); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// often calls act ten times a second until the phase ends, with the number of the call.
func (s *staged) often(act func(n int)) {
	s.acts.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for n := 1; s.phase.Err() == nil; n++ {
			act(n)
			select {
			case <-s.phase.Done():
			case <-tick.C:
			}
		}
	})
}

// lookedAt waits until the process was looked at so often that its samples cover most of the phase, whenever it ends.
func (s *staged) lookedAt(t *testing.T) {
	t.Helper()
	const often = 5
	controltest.Eventually(t, "looks at the process", func() string {
		looks := 0
		for _, a := range s.w.View().Artifacts(bundle.Query{Kind: bundle.Identity, Arm: arm}) {
			in, err := s.w.View().Open(a)
			if err != nil {
				return err.Error()
			}
			defer in.Close()
			for lines := bufio.NewScanner(in); lines.Scan(); {
				looks++
			}
		}
		if looks < often {
			return fmt.Sprintf("%d looks, want %d", looks, often)
		}
		return ""
	})
}

// sealed ends the phase, and returns what was recorded.
func (s *staged) sealed(t *testing.T) bundle.View {
	t.Helper()
	s.events.Say(event.Phase, bundle.EndPhase)
	s.end()
	s.acts.Wait()
	if err := s.w.Seal(); err != nil {
		t.Fatal(err)
	}
	v, err := bundle.Open(s.w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

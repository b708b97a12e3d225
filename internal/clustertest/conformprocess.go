package clustertest

import (
	"syscall"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
)

func (s suite) identity(t *testing.T, k cluster.Component) {
	before, err := k.Identity(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if len(before.SHA256) != 64 || before.PID <= 0 || before.StartTicks <= 0 || before.CPUTicks <= 0 || before.ArgStart == 0 ||
		!before.Limits.Known || before.Limits.Cores <= 0 {
		t.Errorf("the identity is %+v", before)
	}
	again, err := k.Identity(t.Context(), false)
	if want := (cluster.Identity{PID: before.PID, StartTicks: before.StartTicks, Restarts: before.Restarts,
		CPUTicks: max(again.CPUTicks, before.CPUTicks), ChildTicks: max(again.ChildTicks, before.ChildTicks),
		ArgStart: before.ArgStart, Randomize: before.Randomize, Limits: again.Limits}); err != nil || again != want {
		t.Errorf("asked again, without a digest: %+v, %v; want %+v", again, err, want)
	}

	if p := k.Abilities().Pause; p != nil {
		s.pauses(t, k, p, before)
	}
	if err := k.Signal(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := s.until(t, k, func(id cluster.Identity) bool { return id.StartTicks != before.StartTicks })
	if killed.Restarts != before.Restarts+1 {
		t.Errorf("after a kill it counts %d restarts, before %d", killed.Restarts, before.Restarts)
	}
	if killed.ArgStart == before.ArgStart && killed.Randomize != 0 {
		t.Errorf("two processes have their arguments at %#x, though the host randomises", killed.ArgStart)
	}
	restart := k.Abilities().Restart
	if restart == nil {
		t.Fatalf("%T can't be restarted", k)
	}
	if err := restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := s.until(t, k, func(id cluster.Identity) bool { return id.StartTicks != killed.StartTicks })
	if after.SHA256 != before.SHA256 {
		t.Errorf("the digest went from %s to %s", before.SHA256, after.SHA256)
	}
	s.healthy(t, k)
}

// pauses tests that a process that was stopped goes on when Resume is called, and when its time is over.
func (s suite) pauses(t *testing.T, k cluster.Component, p cluster.Pauser, before cluster.Identity) {
	t.Helper()
	if err := p.Resume(t.Context()); err != nil {
		t.Errorf("resuming what isn't stopped: %v", err)
	}
	for _, atMost := range []time.Duration{time.Minute, 2 * time.Second} {
		if err := p.Pause(t.Context(), atMost); err != nil {
			t.Fatal(err)
		}
		s.until(t, k, func(id cluster.Identity) bool { return id.Stopped })
		if atMost == time.Minute {
			if err := p.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if now := s.until(t, k, func(id cluster.Identity) bool { return !id.Stopped }); now.PID != before.PID {
			t.Errorf("after a pause it is %+v, before %+v", now, before)
		}
	}
	s.healthy(t, k)
}

// until polls until an identity satisfies ok, and returns that identity.
func (s suite) until(t *testing.T, k cluster.Component, ok func(cluster.Identity) bool) cluster.Identity {
	t.Helper()
	var id cluster.Identity
	var err error
	poll(t, func() bool {
		id, err = k.Identity(t.Context(), true)
		return err == nil && id.PID > 0 && ok(id) // between two processes there is none
	}, func() any { return []any{id, err} })
	return id
}

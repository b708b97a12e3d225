package clustertest

import (
	"errors"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
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
		ArgStart: before.ArgStart, Randomize: before.Randomize, Limits: again.Limits}); err != nil ||
		again != want {
		t.Errorf("asked again, without a digest: %+v, %v; want %+v", again, err, want)
	}

	if p := k.Abilities().Pause; p != nil {
		s.pauses(t, k, p, before)
	}
	if err := k.Signal(t.Context(), syscall.SIGKILL, before); err != nil {
		t.Fatal(err)
	}
	killed := s.until(
		t,
		k,
		func(id cluster.Identity) bool { return id.StartTicks != before.StartTicks },
	)
	if killed.Restarts != before.Restarts+1 {
		t.Errorf(
			"after a kill it counts %d restarts, before %d",
			killed.Restarts,
			before.Restarts,
		)
	}
	if killed.ArgStart == before.ArgStart && killed.Randomize != 0 {
		t.Errorf(
			"two processes have their arguments at %#x, though the host randomises",
			killed.ArgStart,
		)
	}
	// It is another process by now, and the signal was for the one before.
	if err := k.Signal(t.Context(), syscall.SIGKILL, before); !errors.Is(err, cluster.ErrNoProcess) {
		t.Errorf("a signal to a process that is gone: %v, want %v", err, cluster.ErrNoProcess)
	}
	if now := s.until(t, k, func(cluster.Identity) bool { return true }); !now.Same(killed) {
		t.Errorf(
			"it ended another process than the one that was meant: %+v, before %+v",
			now,
			killed,
		)
	}
	restart := k.Abilities().Restart
	if restart == nil {
		t.Fatalf("%T can't be restarted", k)
	}
	if err := restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := s.until(
		t,
		k,
		func(id cluster.Identity) bool { return id.StartTicks != killed.StartTicks },
	)
	if after.SHA256 != before.SHA256 {
		t.Errorf("the digest went from %s to %s", before.SHA256, after.SHA256)
	}
	s.healthy(t, k)
	s.flags(t, k)
}

// flags tests that a component runs with other flags, and then with its own again.
func (s suite) flags(t *testing.T, k cluster.Component) {
	t.Helper()
	row, _ := component.Of(k.Name())
	f := k.Abilities().Flags
	if want := component.TakesFlags(row); want != (f != nil) {
		t.Fatalf("it can be given other flags: %v, want %v", f != nil, want)
	}
	if f == nil {
		return
	}
	flags := map[string]string{"v": "1"}
	if !row.Kubernetes {
		flags = map[string]string{"log-level": "warn"}
	}
	var own []string
	for _, added := range []map[string]string{nil, flags, nil} {
		before := s.until(t, k, func(cluster.Identity) bool { return true })
		if err := f.RestartWith(t.Context(), added); err != nil {
			t.Fatal(err)
		}
		s.until(t, k, func(id cluster.Identity) bool { return !id.Same(before) })
		s.healthy(t, k)
		if got, err := f.Added(t.Context()); err != nil || !maps.Equal(got, added) {
			t.Errorf("it says that the flags %v were added, %v; want %v", got, err, added)
		}
		got, err := f.Arguments(t.Context())
		if err != nil || cluster.HasFlags(got, flags) != (added != nil) {
			t.Errorf("it runs with %q, %v; want %v added", got, err, added)
		}
		if added == nil && own != nil && !slices.Equal(got, own) {
			t.Errorf("with its own flags again it runs with %q, before with %q", got, own)
		}
		if added == nil {
			own = got
		}
	}
	// A restart of itself keeps what it was given.
	if err := f.RestartWith(t.Context(), flags); err != nil {
		t.Fatal(err)
	}
	given := s.until(t, k, func(cluster.Identity) bool { return true })
	if err := k.Abilities().Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.until(t, k, func(id cluster.Identity) bool { return !id.Same(given) })
	if got, err := f.Arguments(t.Context()); err != nil || !cluster.HasFlags(got, flags) {
		t.Errorf("restarted it runs with %q, %v; want %v added still", got, err, flags)
	}
	if err := f.RestartWith(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.healthy(t, k)
}

// pauses tests that a process that was stopped goes on when Resume is called, and when its time is over.
func (s suite) pauses(
	t *testing.T,
	k cluster.Component,
	p cluster.Pauser,
	before cluster.Identity,
) {
	t.Helper()
	if err := p.Resume(t.Context()); err != nil {
		t.Errorf("resuming what isn't stopped: %v", err)
	}
	for _, atMost := range []time.Duration{time.Minute, 6 * time.Second} { // long enough to be seen on a busy host
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
func (s suite) until(
	t *testing.T,
	k cluster.Component,
	ok func(cluster.Identity) bool,
) cluster.Identity {
	t.Helper()
	var id cluster.Identity
	var err error
	poll(t, func() bool {
		id, err = k.Identity(t.Context(), true)
		return err == nil && id.PID > 0 && ok(id) // between two processes there is none
	}, func() any { return []any{id, err} })
	return id
}

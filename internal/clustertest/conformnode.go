package clustertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
)

func (s suite) exec(t *testing.T) {
	n := s.kubelet(t).Node()
	x := n.Abilities().Commands
	if out, err := x.Exec(t.Context(), nil, "echo", "two  blanks", "$HOME"); err != nil ||
		string(out) != "two  blanks $HOME\n" {
		t.Errorf("echo printed %q, %v", out, err)
	}
	if out, err := x.Exec(t.Context(), strings.NewReader("a\nb\x00c"), "cat"); err != nil ||
		string(out) != "a\nb\x00c" {
		t.Errorf("cat printed %q, %v", out, err)
	}
	if out, err := x.Exec(t.Context(), nil, "cat"); err != nil || len(out) != 0 {
		t.Errorf("cat without input printed %q, %v", out, err)
	}
	_, err := x.Exec(t.Context(), nil, "cat", "/no/such/file")
	if err == nil || !strings.Contains(err.Error(), "No such file") ||
		!strings.Contains(err.Error(), "/no/such/file") ||
		!strings.Contains(err.Error(), n.Name()) {
		t.Errorf(
			"a command that fails: %v; want its output, its arguments and the node's name",
			err,
		)
	}

	const limit = 5 * time.Second // on a busy host an engine takes a while to start a command
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	if _, err = x.Exec(ctx, nil, "sleep", "314.15"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a command whose context ends: %v", err)
	}
	if took := time.Since(began); took > limit+patience/2 {
		t.Errorf("it returned %s after its context had ended", took-limit)
	}
	ended(
		t,
		func() ([]byte, error) { return x.Exec(t.Context(), nil, "pgrep", "-f", "sleep 314.15") },
	)
}

// looks tests that a node's Look answers as Exec does, and can be called many times at once.
func (s suite) looks(t *testing.T) {
	n := s.kubelet(t).Node()
	l := n.Abilities().Commands
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for j := range 3 {
				want := fmt.Sprintf("%d  %d $HOME\n", i, j)
				if out, err := l.Look(t.Context(), nil, "echo", fmt.Sprint(i), "", fmt.Sprint(j),
					"$HOME"); err != nil ||
					string(out) != want {
					t.Errorf("echo printed %q, %v, want %q", out, err, want)
				}
			}
		})
	}
	all.Wait()
	if out, err := l.Look(t.Context(), []byte("a\n'b'"), "cat"); err != nil || string(out) != "a\n'b'" {
		t.Errorf("cat printed %q, %v", out, err)
	}
	if out, err := l.Look(t.Context(), nil, "cat"); err != nil || len(out) != 0 {
		t.Errorf("cat without input printed %q, %v", out, err)
	}
	_, err := l.Look(t.Context(), nil, "cat", "/no/such/file")
	if err == nil || !strings.Contains(err.Error(), "No such file") ||
		!strings.Contains(err.Error(), "/no/such/file") ||
		!strings.Contains(err.Error(), n.Name()) {
		t.Errorf(
			"a command that fails: %v; want its output, its arguments and the node's name",
			err,
		)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // see exec
	defer cancel()
	if _, err = l.Look(ctx, nil, "sleep", "271.82"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a command whose context ends: %v", err)
	}
	ended(
		t,
		func() ([]byte, error) { return l.Look(t.Context(), nil, "pgrep", "-f", "sleep 271.82") },
	)
}

// ended waits until pgrep finds no process: one that was killed may end a moment later.
func ended(t *testing.T, pgrep func() ([]byte, error)) {
	t.Helper()
	var out []byte
	poll(t, func() bool {
		var err error
		out, err = pgrep()
		return err != nil // pgrep's way of saying that there is none
	}, func() any { return fmt.Sprintf("the command is still running as %q", out) })
}

func (s suite) files(t *testing.T) {
	for _, n := range s.c.Nodes() {
		out, err := n.Abilities().Commands.Exec(t.Context(), nil, "cat", InstalledPath)
		if err != nil || string(out) != InstalledContent {
			t.Errorf("%s on %s has %q, %v", InstalledPath, n.Name(), out, err)
		}
	}
}

// power tests that a node that is switched off does not answer, and comes back with its disk and a new kubelet. A
// second PowerOff or PowerOn must do nothing.
func (s suite) power(t *testing.T) {
	k := s.kubelet(t)
	n, ctx := k.Node(), t.Context()
	p, x := n.Abilities().Power, n.Abilities().Commands
	before, err := k.Identity(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	booted := s.booted(t, p)
	for range 2 {
		if err := p.PowerOff(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := x.Exec(ctx, nil, "echo", "alive"); err == nil {
		t.Errorf("a node that is off printed %q", out)
	}
	if id, err := k.Identity(ctx, false); err == nil {
		t.Errorf("a node that is off has a kubelet: %+v", id)
	}
	if _, err := k.Get(ctx, "/healthz"); err == nil {
		t.Error("the kubelet of a node that is off answers")
	}
	if at, err := p.Booted(ctx); err == nil {
		t.Errorf("a node that is off was started at %s", at)
	}
	for range 2 {
		if err := p.PowerOn(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if again := s.booted(t, p); !again.After(booted) {
		t.Errorf("it was started at %s, before its loss of power at %s", again, booted)
	}
	after := s.until(t, k, func(cluster.Identity) bool { return true })
	if after.StartTicks == before.StartTicks || after.SHA256 != before.SHA256 {
		t.Errorf(
			"the kubelet was %+v and is %+v: want another process of the same binary",
			before,
			after,
		)
	}
	s.healthy(t, k)
	if s.caps.NodeFiles {
		s.files(t)
	}
}

// booted returns when a node was started. The time must not change while the node runs.
func (s suite) booted(t *testing.T, p cluster.PowerSwitch) time.Time {
	t.Helper()
	at, err := p.Booted(t.Context())
	if err != nil || at.IsZero() || at.After(time.Now()) {
		t.Fatalf("it was started at %s, %v", at, err)
	}
	if again, err := p.Booted(t.Context()); err != nil || !again.Equal(at) {
		t.Errorf("it was started at %s, then at %s, %v", at, again, err)
	}
	return at
}

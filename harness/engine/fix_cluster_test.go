//go:build cluster

package engine_test

import (
	"os"
	"testing"

	"github.com/kube-relapse/relapse/harness/engine"
)

// TestFixOnTheRealEngine mends this host where it needs it; it leaves the
// runtime registered, as `relapse doctor --fix` does.
func TestFixOnTheRealEngine(t *testing.T) {
	wrapper := os.Getenv("BOUNDED_RUNTIME")
	e, err := engine.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changed, err := engine.Fix(t.Context(), e, t.Output(), wrapper)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.ProbePrivileged(t.Context(), ""); err != nil {
		t.Errorf("privileged containers fail after Fix (changed=%t): %v", changed, err)
	}
}

// TestUndoOnTheRealEngine takes the bounded runtime back and mends again.
func TestUndoOnTheRealEngine(t *testing.T) {
	e, err := engine.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Undo(t.Context(), e, t.Output()); err != nil {
		t.Fatal(err)
	}
	i, err := e.ServerInfo(t.Context())
	t.Logf("%+v %v", i, err)
}

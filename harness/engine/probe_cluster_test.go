//go:build cluster

package engine_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/engine"
)

func TestProbePrivilegedOnTheRealEngine(t *testing.T) {
	e, err := engine.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.ProbePrivileged(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("bounding set %#x in %s", p.Bounding, p.Took)
	if p.Bounding == 0 {
		t.Error("a privileged container has no capability at all")
	}
}

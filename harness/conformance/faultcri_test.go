package conformance_test

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// seenAtRuntime returns the case of a fault of the container runtime with this effect. Every world has the interposer
// by which the fault acts.
func seenAtRuntime(effect sight) faultCase {
	effect.armed = criArmed
	return faultCase{lay: func(*testing.T, *world) sight { return effect }}
}

// criArmed counts the armings of a node's interposer, and lists those that are still armed.
func criArmed(t *testing.T, n *criNode) (ever int, armed []string) {
	t.Helper()
	c, err := n.client().Totals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return armedOf(c.Arms)
}

// countReported counts the pods and containers that are only reported. It fails the test if the real ones aren't
// listed.
func countReported(t *testing.T, n *criNode) (pods, containers int) {
	t.Helper()
	p, err := n.cri.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := n.cri.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range p.Items {
		if reported(one.Id) {
			pods++
		}
	}
	for _, one := range c.Containers {
		if reported(one.Id) {
			containers++
		}
	}
	if len(p.Items)-pods != 2 || len(c.Containers)-containers != 2 {
		t.Errorf("%d real pods and %d real containers are listed, want 2 each", len(p.Items)-pods, len(c.Containers)-containers)
	}
	return pods, containers
}

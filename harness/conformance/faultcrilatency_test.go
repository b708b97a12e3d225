package conformance_test

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func init() {
	faults.add(seenAtRuntime(sight{inForce: criSlow}), "criLatency")
}

// criSlow tells whether calls to the runtime take the latency. It fails the test if they report what doesn't exist.
func criSlow(t *testing.T, n *criNode) bool {
	if pods, containers := countReported(t, n); pods+containers > 0 {
		t.Errorf("%d pods and %d containers are reported that don't exist", pods, containers)
	}
	return slow(t, func() error {
		_, err := n.cri.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{})
		return err
	})
}

package conformance_test

import "testing"

func init() {
	faults.add(seenAtRuntime(sight{inForce: criFlooded, beside: criSlow}), "containerFlood")
}

// criFlooded tells whether the pods of a flood are listed. It fails the test if only some of them are.
func criFlooded(t *testing.T, n *criNode) bool {
	pods, containers := countReported(t, n)
	if pods != 7 || containers != 21 { // the flood may have been lifted between the two listings, but only once
		pods, containers = countReported(t, n)
	}
	if (pods != 7 || containers != 21) && (pods != 0 || containers != 0) {
		t.Errorf("%d pods and %d containers are reported, want 7 and 21, or none", pods, containers)
	}
	return pods > 0
}

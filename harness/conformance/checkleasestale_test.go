package conformance_test

import "testing"

func init() {
	checks.add(checkCase{evidence: loseOther, ofTheCluster: true}, "leaseStale")
}

// loseOther powers off the node of the arm that nobody looks at.
func loseOther(t *testing.T, s *staged) {
	t.Helper()
	if err := s.nodes[1].PowerOff(t.Context()); err != nil {
		t.Fatal(err)
	}
}

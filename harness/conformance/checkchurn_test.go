package conformance_test

import "testing"

func init() {
	checks.add(checkCase{evidence: churns}, "churn", "quietWorld")
}

// churns writes one of the objects.
func churns(_ *testing.T, s *staged) {
	s.often(func(n int) { s.putObject("bundledeployments", int64(n)) })
}

package conformance_test

import "testing"

func init() {
	collectors.add(collectorCase{lay: layConfigz, breaks: failEndpoints}, "configz")
}

func layConfigz(_ *testing.T, s *subject) {
	s.answers("/configz", func() string { return `{"kubeletconfig":{}}` })
}

package conformance_test

import "testing"

func init() {
	collectors.add(collectorCase{lay: layJournal, breaks: powerOff}, "journal")
}

func layJournal(_ *testing.T, s *subject) {
	s.logs(1, "starting")
	s.logs(2, skipped)
}

package conformance_test

import "testing"

func init() {
	checks.add(checkCase{evidence: func(_ *testing.T, s *staged) { s.logs(3, skipped) }}, "logLine")
	checks.add(checkCase{evidence: func(t *testing.T, s *staged) { write(t, s.logFile(), logLine(skipped)) }}, "logCount")
}

package conformance_test

import (
	"path/filepath"
	"testing"
)

func init() {
	collectors.add(collectorCase{spec: `{"interval":"200ms"}`, lay: layAudit, breaks: powerOff}, "auditLog")
}

// layAudit gives the node an audit log with one event.
func layAudit(t *testing.T, s *subject) {
	t.Helper()
	s.files[s.auditLog()] = filepath.Join(t.TempDir(), "audit.log")
	write(t, s.files[s.auditLog()], `{"kind":"Event","auditID":"a","stage":"ResponseComplete","stageTimestamp":"2026-11-22T16:00:00.000000Z"}`)
}

// auditLog returns where the node has its audit log.
func (s *subject) auditLog() string { return filepath.Join(s.nodes[0].Folder("kubelet"), "audit.log") }

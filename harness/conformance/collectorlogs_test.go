package conformance_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func init() {
	collectors.add(collectorCase{spec: `{"components":["kubelet"],"interval":"200ms"}`, lay: layLogs, breaks: powerOff}, "componentLogs")
}

// podLogs is where a node has the logs of its pods.
const podLogs = "/var/log/pods"

// layLogs gives the node the log file of a kubelet that runs as a static pod.
func layLogs(t *testing.T, s *subject) {
	t.Helper()
	s.files[podLogs] = t.TempDir()
	if err := os.MkdirAll(filepath.Dir(s.logFile()), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, s.logFile(), logLine(skipped))
}

// logFile returns where this machine has the kubelet's log file.
func (s *subject) logFile() string {
	return filepath.Join(s.files[podLogs], "kube-system_kubelet-"+s.nodes[0].Name()+"_0a1b", "kubelet", "0.log")
}

// logLine returns a message as a line of a container's log.
func logLine(message string) string {
	return time.Now().UTC().Format(time.RFC3339Nano) + " stderr F " + message
}

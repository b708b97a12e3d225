package pasted_test

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the CPU time that this process has used: unlike the time that passes, it doesn't depend on what else the
// machine does.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

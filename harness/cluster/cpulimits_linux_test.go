package cluster_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// This process's own limits are read from the real files. .ci/cgroup2 runs this in a group with a quota of its own.
func TestCPULimitsOfThisProcess(t *testing.T) {
	got := cluster.CPULimitsOf("/", os.Getpid())
	if got.Cores == 0 {
		t.Errorf("got %+v, want some cores", got)
	}
	quota := os.Getenv("WANT_QUOTA")
	if quota != "" && (!got.Known || fmt.Sprint(got.Quota) != quota || got.Throttled == 0 || got.Periods < got.Throttled) {
		t.Errorf("got %+v, want a quota of %s that throttled", got, quota)
	}
}

package cluster_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
)

func TestCPULimits(t *testing.T) {
	const status = "Name:\tlistener\nCpus_allowed:\t0f\nCpus_allowed_list:\t0-2,5\n"
	pod := "4:memory:/m\n3:cpu,cpuacct:/kubepods/pod1/c\n0::/x\n"
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  cluster.CPULimits
	}{
		{"cgroup v1: the pod has the quota", map[string]string{
			"proc/7/status": status, "proc/7/cgroup": pod,
			"sys/fs/cgroup/cpu/kubepods/pod1/c/cpu.stat":          "nr_periods 4\nnr_throttled 1\nthrottled_time 9\n",
			"sys/fs/cgroup/cpu/kubepods/pod1/c/cpu.cfs_quota_us":  "-1\n",
			"sys/fs/cgroup/cpu/kubepods/pod1/c/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/cpu/kubepods/pod1/cpu.stat":            "nr_periods 50\nnr_throttled 20\nthrottled_time 9\n",
			"sys/fs/cgroup/cpu/kubepods/pod1/cpu.cfs_quota_us":    "50000\n",
			"sys/fs/cgroup/cpu/kubepods/pod1/cpu.cfs_period_us":   "100000\n",
		}, cluster.CPULimits{Known: true, Cores: 4, Quota: 0.5, Periods: 54, Throttled: 21}},
		{"cgroup v2: the lowest quota counts", map[string]string{
			"proc/7/status": status, "proc/7/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/cpu.stat": "usage_usec 9\nnr_periods 10\nnr_throttled 3\nthrottled_usec 5\n",
			"sys/fs/cgroup/a/b/cpu.max":  "150000 100000\n",
			"sys/fs/cgroup/a/cpu.stat":   "usage_usec 9\nnr_periods 0\nnr_throttled 0\n",
			"sys/fs/cgroup/a/cpu.max":    "max 100000\n",
			"sys/fs/cgroup/cpu.stat":     "usage_usec 9\n",
		}, cluster.CPULimits{Known: true, Cores: 4, Quota: 1.5, Periods: 10, Throttled: 3}},
		{"a container that sees its groups from further below", map[string]string{
			"proc/7/status": status, "proc/7/cgroup": "1:cpu:/docker/id/kubepods/c\n",
			"sys/fs/cgroup/cpu/kubepods/c/cpu.stat": "nr_periods 2\nnr_throttled 2\n",
			"sys/fs/cgroup/cpu/cpu.stat":            "nr_periods 1\nnr_throttled 0\n",
		}, cluster.CPULimits{Known: true, Cores: 4, Periods: 3, Throttled: 2}},
		{"no control groups", map[string]string{"proc/7/status": status, "proc/7/cgroup": "0::/\n"}, cluster.CPULimits{Cores: 4}},
		{"no process", nil, cluster.CPULimits{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			for name, content := range tc.files {
				name = filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := cluster.CPULimitsOf(root, 7); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

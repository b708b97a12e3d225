package kind

import (
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// strayControllers is a drop-in of kubelet's unit for hosts with cgroup v1. kind's entrypoint prepares the cgroup
// hierarchies that it finds mounted. Later systemd mounts whatever controllers the host leaves unused (hugetlb,
// net_cls, …), which fails or succeeds as other containers come and go. kubelet refuses to start if its cgroup is
// missing from one of those hierarchies, and they show the host's whole tree. So the drop-in unmounts each hierarchy
// that the entrypoint didn't prepare, before kubelet starts. Assembled images do this without the drop-in.
const strayControllers = `[Service]
ExecStartPre=/bin/sh -c 'test -e /sys/fs/cgroup/cgroup.controllers || for c in /sys/fs/cgroup/*; do if [ -e "$c/tasks" ] && [ ! -L "$c" ] && ! mountpoint -q "$c/kubelet"; then umount "$c" || true; fi; done'
`

// cgroupFiles returns strayControllers as a file, for every image that is not an assembled one.
func cgroupFiles(image string) []cluster.File {
	if strings.HasPrefix(image, "relapse/node:") {
		return nil
	}
	return []cluster.File{{Path: "/etc/systemd/system/kubelet.service.d/12-relapse-cgroups.conf",
		Content: []byte(strayControllers), Mode: 0o644}}
}

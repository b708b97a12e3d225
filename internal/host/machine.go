package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/build/cache"
)

// machine is the root folder that a host's /proc and /etc are read from.
type machine string

func (m machine) path(elem ...string) string {
	return filepath.Join(append([]string{string(m)}, elem...)...)
}

const gib = 1 << 30

// Estimates with room to spare, not measurements: two nodes were seen to take
// 1.2 GiB of memory, an assembled image 0.7 GiB of disk; a build comes on top.
const (
	memoryLeast, memoryEnough = 3 * gib, 6 * gib
	diskLeast, diskEnough     = 4 * gib, 10 * gib
)

func (m machine) memory() Check {
	c := Check{Name: "memory", Wanted: fmt.Sprintf("%s available", size(memoryEnough))}
	free, err := m.freeMemory()
	if err != nil {
		return c.unknown(err, "free -m")
	}
	return c.graded(free, memoryLeast, memoryEnough, "available",
		"close other programs, or give this machine more memory; see: free -m")
}

// freeMemory returns how much memory the kernel says can be had without swapping, in bytes.
func (m machine) freeMemory() (uint64, error) {
	data, err := os.ReadFile(m.path("proc/meminfo"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) >= 2 && f[0] == "MemAvailable:" {
			kib, err := strconv.ParseUint(f[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("no MemAvailable in /proc/meminfo")
}

// FreeMemory returns how much memory clusters may use on this machine, in bytes; 0 means unknown. It assumes that the
// engine is on this machine.
func FreeMemory() int64 {
	free, err := machine("/").freeMemory()
	if err != nil {
		return 0
	}
	return int64(free)
}

// engineDisk checks the free space in the daemon's root folder, which may be on another machine.
func (m machine) engineDisk(root string) Check {
	c := Check{Name: "disk of the engine", Wanted: fmt.Sprintf("%s free", size(diskEnough))}
	disk, err := cache.DiskOf(m.path(root))
	if err != nil {
		return c.unknown(
			fmt.Errorf("%s isn't to be seen from here: %w", root, err),
			"docker system df",
		)
	}
	return c.graded(
		uint64(disk.Free),
		diskLeast,
		diskEnough,
		"free in "+root,
		"docker image prune",
	)
}

// cacheDisk checks the free space in dir or its nearest parent that exists: before the first run there is no cache.
func (m machine) cacheDisk(dir string) Check {
	c := Check{Name: "disk of the cache", Wanted: fmt.Sprintf("%s free", size(diskEnough))}
	disk, err := cache.DiskOf(cache.Nearest(dir))
	if err != nil {
		return c.unknown(err, "df -h "+dir)
	}
	return c.graded(
		uint64(disk.Free),
		diskLeast,
		diskEnough,
		"free in "+dir,
		"relapse cache prune",
	)
}

// Limits for inotify. A cluster of three nodes was seen to hold 45 instances. With none left a kubelet can't start its
// cAdvisor and exits, so a cluster that doesn't fit is refused before it is made. Watches weren't measured.
const (
	instancesNeeded, instancesFree = 56, 64
	watchesLeast, watchesEnough    = 8192, 65536
)

func (m machine) inotify() Check {
	c := Check{
		Name:   "inotify limits",
		Status: OK,
		Wanted: fmt.Sprintf(
			"%d instances not in use, %d watches per user",
			instancesFree,
			watchesEnough,
		),
	}
	const remedy = "sysctl -w fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=524288"
	instances, err := m.number("proc/sys/fs/inotify/max_user_instances")
	watches, err2 := m.number("proc/sys/fs/inotify/max_user_watches")
	if err := errors.Join(err, err2); err != nil {
		return c.unknown(err, remedy)
	}
	used := m.inotifyInUse()
	c.Seen = fmt.Sprintf("%d instances, %d of them in use; %d watches", instances, used, watches)
	switch {
	case instances-used < instancesNeeded || watches < watchesLeast:
		c.Status, c.Remedy = Fail, remedy
	case instances-used < instancesFree || watches < watchesEnough:
		c.Status, c.Remedy = Warn, remedy
	}
	return c
}

// inotifyInUse returns how many inotify instances are held by all processes whose open files can be read. The limit is
// per user, but the nodes' processes are root's, and so are most others here.
func (m machine) inotifyInUse() (n int) {
	fds, _ := filepath.Glob(m.path("proc/[0-9]*/fd/*")) // processes come and go
	for _, fd := range fds {
		if link, err := os.Readlink(fd); err == nil && link == "anon_inode:inotify" {
			n++
		}
	}
	return n
}

func (m machine) number(path string) (int, error) {
	data, err := os.ReadFile(m.path(path))
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", path, err)
	}
	return n, nil
}

// lastCgroup1 is the last minor version whose kubelet was seen to start on cgroup v1. Kubelets from 35 on start there
// because they are told to.
const lastCgroup1 = 36

func cgroups(version, minor int) Check {
	c := Check{Name: "cgroup version", Status: OK, Seen: fmt.Sprintf("v%d", version),
		Wanted: fmt.Sprintf("v2, or v1 for Kubernetes up to 1.%d", lastCgroup1)}
	switch {
	case version == 0:
		c.Status, c.Seen, c.Remedy = Warn, "the daemon doesn't say", "docker info --format '{{.CgroupVersion}}'"
	case version == 1 && minor > lastCgroup1:
		c.Status = Warn
		c.Seen = fmt.Sprintf("v1, and Kubernetes 1.%d is asked for", minor)
		c.Remedy = "boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line"
	case version == 1 && minor == 0:
		c.Seen = fmt.Sprintf("v1: good up to Kubernetes 1.%d", lastCgroup1)
	}
	return c
}

// graded returns c for an amount of bytes: Fail under least, Warn under enough, else OK.
func (c Check) graded(amount, least, enough uint64, what, remedy string) Check {
	c.Status, c.Seen = OK, size(amount)+" "+what
	switch {
	case amount < least:
		c.Status, c.Remedy = Fail, remedy
	case amount < enough:
		c.Status, c.Remedy = Warn, remedy
	}
	return c
}

// unknown returns c as a warning that the check's question couldn't be answered; that is never OK.
func (c Check) unknown(err error, remedy string) Check {
	c.Status, c.Seen, c.Remedy = Warn, "unknown: "+err.Error(), remedy
	return c
}

func size(bytes uint64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/gib) }

package cluster

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
)

// CPULimits describes how much CPU the kernel lets a process use. The quota and the counts cover its control group and
// all groups above it that can be seen from where the process runs.
type CPULimits struct {
	Known     bool    // its control group could be read
	Cores     int     // how many it may run on; 0 means unknown
	Quota     float64 // the lowest of the groups' quotas, in CPUs; 0 means none
	Periods   int64   // nr_periods, summed over the groups: how many periods of a quota began
	Throttled int64   // nr_throttled, summed likewise: in how many periods a group used up its quota early
}

// CPULimitFiles lists the files of a control group that tell its quota and whether it was throttled. cpu.max exists in
// cgroup v2, the last two files in v1.
var CPULimitFiles = []string{"cpu.stat", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"}

// AllowedCores begins the line of /proc/PID/status that lists the cores a process may run on.
const AllowedCores = "Cpus_allowed_list:"

// CPULimitsOf reads a process's limits from files below root, which is "/" except in tests. Limits that can't be read
// are left unknown.
func CPULimitsOf(root string, pid int) CPULimits {
	proc := path.Join(root, "proc", strconv.Itoa(pid))
	var text strings.Builder
	status, _ := os.ReadFile(path.Join(proc, "status"))
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, AllowedCores) {
			text.WriteString(line)
		}
	}
	groups, _ := os.ReadFile(path.Join(proc, "cgroup"))
	dir, group := cpuGroup(string(groups))
	for _, g := range visible(path.Join(root, dir), group) {
		for _, name := range CPULimitFiles {
			content, _ := os.ReadFile(path.Join(g, name))
			for line := range strings.Lines(string(content)) {
				fmt.Fprintf(&text, "%s:%s\n", path.Join(g, name), strings.TrimSpace(line))
			}
		}
	}
	return ParseCPULimits(text.String())
}

// cpuGroup returns the control group that limits a process's CPU, and the folder where its hierarchy is mounted. text
// is the content of /proc/PID/cgroup. The group of cgroup v1's controller cpu takes precedence over the group of v2.
func cpuGroup(text string) (dir, group string) {
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, of, _ := strings.Cut(rest, ":")
		switch {
		case strings.Contains(","+controllers+",", ",cpu,"):
			return "/sys/fs/cgroup/cpu", of
		case controllers == "":
			dir, group = "/sys/fs/cgroup", of
		}
	}
	return dir, group
}

// visible returns the folders of a group and of the groups above it. A container may see only a lower part of the path
// that /proc names, so leading elements that don't exist are cut off.
func visible(dir, group string) (out []string) {
	if dir == "" {
		return nil
	}
	group = path.Clean("/" + group)
	for group != "/" {
		if _, err := os.Stat(path.Join(dir, group, CPULimitFiles[0])); err == nil {
			break
		}
		_, rest, _ := strings.Cut(group[1:], "/")
		group = path.Clean("/" + rest)
	}
	for ; group != "/"; group = path.Dir(group) {
		out = append(out, path.Join(dir, group))
	}
	return append(out, dir)
}

// ParseCPULimits parses the AllowedCores line of /proc/PID/status and the lines of CPULimitFiles. Each of the latter
// has its file's path and a colon in front, as grep prints them.
func ParseCPULimits(text string) (out CPULimits) {
	quota, period := map[string]float64{}, map[string]float64{} // by folder
	for line := range strings.Lines(text) {
		if list, ok := strings.CutPrefix(line, AllowedCores); ok {
			out.Cores = countCores(strings.TrimSpace(list))
			continue
		}
		file, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		f := strings.Fields(rest)
		switch dir, name := path.Split(file); {
		case name == "cpu.stat" && len(f) == 2:
			out.Known = true
			n, _ := strconv.ParseInt(f[1], 10, 64)
			switch f[0] {
			case "nr_periods":
				out.Periods += n
			case "nr_throttled":
				out.Throttled += n
			}
		case name == "cpu.max" && len(f) == 2: // "max 100000" means no quota; number gives 0 for it
			quota[dir], period[dir] = number(f[0]), number(f[1])
		case name == "cpu.cfs_quota_us" && len(f) == 1: // -1 means no quota
			quota[dir] = number(f[0])
		case name == "cpu.cfs_period_us" && len(f) == 1:
			period[dir] = number(f[0])
		}
	}
	for dir, q := range quota {
		if q > 0 && period[dir] > 0 && (out.Quota == 0 || q/period[dir] < out.Quota) {
			out.Quota = q / period[dir]
		}
	}
	return out
}

// number returns the number in text, or 0 if text is none.
func number(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// countCores returns how many cores a list such as "0-3,8" names, or 0 if list isn't one.
func countCores(list string) (n int) {
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || to < from {
			return 0
		}
		n += to - from + 1
	}
	return n
}

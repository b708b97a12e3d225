package nodeimage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
)

// journaldConfig raises the limit above which journald drops lines. Its default is 10,000 lines in 30 s per service; a
// kubelet in a flood writes more, and a lost line is lost evidence. ReadKMsg is as in kind's base image.
const journaldConfig = `[Journal]
ReadKMsg=no
RateLimitIntervalSec=30s
RateLimitBurst=1000000
SystemMaxUse=2G
RuntimeMaxUse=512M
`

// strayCgroups is a script that unmounts, on cgroup v1, the hierarchies that the engine didn't hand over. A node's
// systemd mounts them because the kernel has them. They aren't scoped to the container: all nodes would share them, and
// a kubelet that sees hugetlb refuses to start without a kubelet.slice in it. A hierarchy that the engine did hand over
// has the entrypoint's mount on kubelet.slice.
const strayCgroups = `#!/bin/sh
set -eu
[ ! -f /sys/fs/cgroup/cgroup.controllers ] || exit 0
mountpoint -q /sys/fs/cgroup/memory/kubelet.slice || exit 0
findmnt -lun -o target -t cgroup | while read -r at; do
	case $at in */kubelet | */kubelet.slice) continue ;; esac
	mountpoint -q "$at/kubelet.slice" || umount "$at"
done
`

const strayCgroupsUnit = `[Unit]
Description=Take away cgroup hierarchies that the engine did not hand over
After=slices.target
Before=containerd.service kubelet.service

[Service]
Type=oneshot
ExecStart=/bin/sh /kind/bin/drop-stray-cgroups.sh

[Install]
WantedBy=multi-user.target
`

// furnish turns a bootstrapped root into a node's: it adds kind's files, chooses the units that start, and puts things
// where kind looks for them. It follows images/base/Dockerfile of kind v0.33, without its downloads.
func furnish(ctx context.Context, root, kindFiles string) error {
	steps := []struct {
		name string
		do   func() error
	}{
		{"copying kind's files", func() error { return copyKindFiles(root, kindFiles) }},
		{"having kubeadm wait for the boot", func() error { return waitForBoot(root) }},
		{"choosing units", func() error { return chooseUnits(root) }},
		{"adapting containerd", func() error { return adaptContainerd(root) }},
		{"linking programs", func() error { return linkPrograms(root) }},
		{"writing containers' base spec", func() error { return writeBaseSpec(ctx, root) }},
		{"tidying", func() error { return tidy(root) }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("furnishing the root: %s: %w", s.name, err)
		}
	}
	return nil
}

func copyKindFiles(root, files string) error {
	return filepath.WalkDir(files, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(files, path)
		if err != nil {
			return err
		}
		to := filepath.Join(root, rel)
		if e.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		mode := fs.FileMode(0o644) // the module cache doesn't keep modes
		if dir := filepath.Dir(rel); dir == "usr/local/bin" || dir == "kind/bin" {
			mode = 0o755
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, data, mode); err != nil {
			return err
		}
		return os.Chmod(to, mode) // whatever the umask is
	})
}

// kubeadmOnceBooted is a script that waits for the boot and runs kubeadm. It comes before kubeadm on PATH.
const kubeadmOnceBooted = `#!/bin/sh
tries=600
until systemctl is-active --quiet multi-user.target || [ $((tries -= 1)) = 0 ]; do sleep 0.5; done
exec /usr/bin/kubeadm "$@"
`

// waitForBoot installs kubeadmOnceBooted, with which kubeadm waits for the boot for up to five minutes. Without the
// wait, kubeadm may find no containerd. On cgroup v1, kind takes a node for booted before systemd has even started. On
// v2 it waits, but for 30 s only, which is too short when many nodes boot at once on few cores.
func waitForBoot(root string) error {
	at := filepath.Join(root, "usr/local/bin/kubeadm")
	if err := os.WriteFile(at, []byte(kubeadmOnceBooted), 0o755); err != nil {
		return err
	}
	return os.Chmod(at, 0o755) // whatever the umask is
}

// replaceOnce replaces old by new in a file that has old exactly once.
func replaceOnce(root, name, old, new string) error {
	path := filepath.Join(root, name)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := bytes.Count(data, []byte(old)); n != 1 {
		return fmt.Errorf("%s has %q %d times, wanted once", name, old, n)
	}
	return os.WriteFile(path, bytes.Replace(data, []byte(old), []byte(new), 1), 0o644) // keeps the mode
}

func chooseUnits(root string) error {
	for _, pattern := range []string{
		"usr/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
		"usr/lib/systemd/system/multi-user.target.wants/*",
		"etc/systemd/system/*.wants/*",
		"usr/lib/systemd/system/local-fs.target.wants/*",
		"usr/lib/systemd/system/sockets.target.wants/*udev*",
		"usr/lib/systemd/system/sockets.target.wants/*initctl*",
		"usr/lib/systemd/system/basic.target.wants/*",
	} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, f := range found {
			if err := os.Remove(f); err != nil {
				return err
			}
		}
	}
	const units = "etc/systemd/system"
	if err := write(root, "kind/bin/drop-stray-cgroups.sh", strayCgroups); err != nil {
		return err
	}
	if err := write(root, units+"/drop-stray-cgroups.service", strayCgroupsUnit); err != nil {
		return err
	}
	for _, unit := range []string{"drop-stray-cgroups.service", "kubelet.service", "containerd.service",
		"undo-mount-hacks.service"} {
		if _, err := os.Stat(filepath.Join(root, units, unit)); err != nil {
			return err
		}
		if err := link(root, "/"+units+"/"+unit, units+"/multi-user.target.wants/"+unit); err != nil {
			return err
		}
	}
	// systemd-binfmt would register things for the whole kernel.
	if err := link(root, "/dev/null", units+"/systemd-binfmt.service"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, "etc/kubernetes/manifests"), 0o755); err != nil {
		return err
	}
	return write(root, "etc/systemd/journald.conf.d/50-relapse.conf", journaldConfig)
}

var unitLimits = regexp.MustCompile(`(?m)^(Limit[A-Z]+|OOMScoreAdjust)=.*\n`)

// adaptContainerd takes out of containerd's configuration and unit what a host without CAP_SYS_RESOURCE refuses. On
// other hosts no node needs it.
func adaptContainerd(root string) error {
	const config, unit = "etc/containerd/config.toml", "etc/systemd/system/containerd.service"
	if err := replaceOnce(root, config, "restrict_oom_score_adj = false", "restrict_oom_score_adj = true"); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(root, unit))
	if err != nil {
		return err
	}
	if !unitLimits.Match(data) {
		return fmt.Errorf("%s has no limits to take out", unit)
	}
	return write(root, unit, unitLimits.ReplaceAllString(string(data), ""))
}

// linkPrograms puts Debian's programs where kind's units and containerd's
// configuration look for them.
func linkPrograms(root string) error {
	links := map[string]string{
		"usr/local/bin/containerd":              "/usr/bin/containerd",
		"usr/local/bin/ctr":                     "/usr/bin/ctr",
		"usr/local/bin/containerd-shim-runc-v2": "/usr/bin/containerd-shim-runc-v2",
		"usr/local/sbin/runc":                   "/usr/sbin/runc",
	}
	for _, plugin := range []string{"host-local", "loopback", "ptp", "portmap", "bridge", "bandwidth"} {
		links["opt/cni/bin/"+plugin] = "/usr/lib/cni/" + plugin
	}
	for at, to := range links {
		if _, err := os.Stat(filepath.Join(root, to)); err != nil {
			return err
		}
		if err := link(root, to, at); err != nil {
			return err
		}
	}
	return os.MkdirAll(filepath.Join(root, "etc/cni/net.d"), 0o755)
}

// writeBaseSpec writes the OCI spec that every pod starts from. It gets the spec from the root's own ctr, takes its
// resource limits out, and adds a hook. kind's entrypoint relies on the hook to give nodes their own product names.
func writeBaseSpec(ctx context.Context, root string) error {
	cmd := exec.CommandContext(ctx, "/usr/bin/ctr", "oci", "spec")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("running ctr in the root: %w", withStderr(err))
	}
	var spec map[string]any
	if err := json.Unmarshal(out, &spec); err != nil {
		return fmt.Errorf("decoding ctr's spec: %w", err)
	}
	process, ok := spec["process"].(map[string]any)
	if !ok {
		return fmt.Errorf("ctr's spec has no process")
	}
	delete(process, "rlimits")
	spec["hooks"] = map[string]any{
		"createContainer": []any{map[string]any{"path": "/kind/bin/mount-product-files.sh"}},
	}
	data, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return err
	}
	return write(root, "etc/containerd/cri-base.json", string(data)+"\n")
}

// tidy removes what only the bootstrap needed, and the host's own names.
func tidy(root string) error {
	for _, pattern := range []string{
		dpkgOptionsFile,
		"var/cache/apt/archives/*.deb", "var/cache/apt/*.bin", "var/lib/apt/lists/*", "var/cache/debconf/*-old",
		"var/log/*.log", "var/log/apt/*", "usr/local/bin/clean-install",
	} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, f := range found {
			if err := os.RemoveAll(f); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"etc/hostname", "etc/resolv.conf", "etc/machine-id"} {
		if err := write(root, name, ""); err != nil {
			return err
		}
	}
	return nil
}

func write(root, name, content string) error {
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

func link(root, target, name string) error {
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

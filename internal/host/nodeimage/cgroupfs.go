package nodeimage

import "github.com/blang/semver/v4"

// systemdCgroups is the first version whose kubelets make cgroups through systemd, because kind tells them to. Older
// ones are told to make cgroups directly (cgroupfs). The container runtime must do as kubelet does, or no pod starts.
var systemdCgroups = semver.MustParse("1.24.0-0")

// cgroupfsScript follows importScript for versions below systemdCgroups.
const cgroupfsScript = `sed -i "s#^\( *SystemdCgroup = \)true#\1false#" /etc/containerd/config.toml
if grep -q "SystemdCgroup = true" /etc/containerd/config.toml || ! grep -q "SystemdCgroup = false" /etc/containerd/config.toml; then
	echo "containerd can't be told to use cgroupfs" >&2
	exit 1
fi
`

// importScriptFor returns the script that makes a container of the base image a node image of a version, which has the
// form v1.34.4.
func importScriptFor(version string) string {
	if v, err := semver.ParseTolerant(version); err == nil && v.LT(systemdCgroups) {
		return importScript + cgroupfsScript
	}
	return importScript
}

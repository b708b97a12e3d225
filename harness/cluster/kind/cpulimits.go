package kind

import (
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// limitsMark is the line that limitsScript prints before a process's limits.
const limitsMark = "limits:"

// limitsScript prints the CPU limits of the process $pid in a node, in the form that cluster.ParseCPULimits reads. It
// finds them as cluster.CPULimitsOf does on this host. It runs every two seconds, so it starts few programs. It prints
// nothing for what can't be read.
var limitsScript = `echo ` + limitsMark + `
limits() {
	grep '^` + cluster.AllowedCores + `' "/proc/$1/status"
	dir= group=
	while IFS=: read -r _ controllers of; do
		case ",$controllers," in
		*,cpu,*) dir=/sys/fs/cgroup/cpu group=$of; break ;;
		,,) dir=/sys/fs/cgroup group=$of ;;
		esac
	done <"/proc/$1/cgroup"
	if [ -z "$dir" ]; then return; fi
	group=${group%/}
	while [ -n "$group" ] && ! [ -e "$dir$group/` + cluster.CPULimitFiles[0] + `" ]; do
		case "$group" in /*/*) group=/${group#/*/} ;; *) group= ;; esac
	done
	set --
	while :; do
		for file in ` + strings.Join(cluster.CPULimitFiles, " ") + `; do set -- "$@" "$dir$group/$file"; done
		if [ -z "$group" ]; then break; fi
		group=${group%/*}
	done
	grep '' "$@"
}
limits "$pid" 2>/dev/null || true
`

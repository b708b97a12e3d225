package kind

import (
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// limitsMark is the line before a process's limits.
const limitsMark = "limits:"

// limitsScript prints, of the process pid, what cluster.ParseCPULimits reads, as cluster.CPULimitsOf finds it where no
// node lies in between. It runs every two seconds, so it does most by the shell's own means. What can't be read is not
// printed.
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

package kind

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// service is a component that the service manager of a node runs, as a unit of the same name: the kubelet, or the
// program of a seam.
type service struct {
	n    *Node
	name string
}

// Name returns the component's name.
func (s *service) Name() string { return s.name }

// Node returns where it runs.
func (s *service) Node() cluster.Node { return s.n }

// Abilities returns what services can do. A seam's program has no flags to give.
func (s *service) Abilities() cluster.ComponentAbilities {
	out := cluster.ComponentAbilities{Pause: s, Restart: s.Restart}
	if row, _ := component.Of(s.name); component.TakesFlags(row) {
		out.Flags = s
	}
	return out
}

// Get requests a path of the component: through the API server's node proxy from the kubelet, on the node's loopback
// from others.
func (s *service) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	return s.n.ask(ctx, s.name, path)
}

// Logs streams the unit's journal in lines of `journalctl -o json`, with only the fields that say something, and never
// cut. It includes journald's own unit, which says what journald suppressed.
func (s *service) Logs(ctx context.Context) (io.ReadCloser, error) {
	return s.n.stream(
		ctx,
		"journalctl",
		"--output=json",
		"--output-fields=MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_PID,_SYSTEMD_UNIT",
		"--all",
		"--follow",
		"--lines=all",
		"--no-pager",
		"--unit="+s.unit(),
		"--unit=systemd-journald.service",
	)
}

func (s *service) unit() string { return s.name + ".service" }

// pid returns commands that print the id of the unit's main process. As long as that process still is systemd's own
// program there is no component yet, and they print 0.
func (s *service) pid() string {
	return `pid=$(systemctl show ` + s.unit() + ` --property=MainPID --value)
case "$(readlink "/proc/$pid/exe")" in */systemd | */systemd-executor) echo 0 ;; *) echo "$pid" ;; esac`
}

// Signal sends a signal to the unit's main process only.
func (s *service) Signal(ctx context.Context, sig os.Signal, of cluster.Identity) error {
	return s.n.signal(ctx, sig, of, s.pid())
}

// Restart stops the process and starts a new one, from the binary that is there now.
func (s *service) Restart(ctx context.Context) error {
	_, err := s.n.Exec(ctx, nil, "systemctl", "restart", s.unit())
	return err
}

// Identity returns which process runs, with PID 0 while none does. Restarts counts those that systemd did unasked.
func (s *service) Identity(ctx context.Context, digest bool) (cluster.Identity, error) {
	return s.n.identity(
		ctx,
		digest,
		s.pid(),
		`systemctl show `+s.unit()+` --property=NRestarts --value`,
	)
}

// staticPod is a component of the control plane, whose manifest lies on its node.
type staticPod struct{ container }

// Abilities returns what static pods can do.
func (s *staticPod) Abilities() cluster.ComponentAbilities {
	return cluster.ComponentAbilities{Pause: s, Restart: s.Restart, Flags: s, Limit: s.Limit}
}

// daemonPod is a component that a DaemonSet runs on each node.
type daemonPod struct{ container }

// Abilities returns what the pods of a DaemonSet can do.
func (d *daemonPod) Abilities() cluster.ComponentAbilities {
	return cluster.ComponentAbilities{Pause: d, Restart: d.Restart}
}

// container is a component in a pod of kube-system, on its node's network.
type container struct {
	n    *Node
	name string
}

// Name returns the component's name.
func (s container) Name() string { return s.name }

// Node returns where it runs.
func (s container) Node() cluster.Node { return s.n }

// asAdministrator is a script that runs curl with the certificate and key that kubeadm made for the cluster's
// administrator. Both are inside a kubeconfig. (The certificate with which an API server asks kubelets is in a file,
// but from v1.36 on it opens nothing else.)
const asAdministrator = `admin() { sed -n "s/^ *client-$1-data: //p" ` + adminConfig + ` | base64 --decode; }
exec curl --insecure --cert <(admin certificate) --key <(admin key) "$@"`

// adminConfig is the administrator's kubeconfig on the nodes of the control plane.
const adminConfig = "/etc/kubernetes/admin.conf"

// Get requests a path of the component: directly from the API server, on the node's loopback from others.
func (s container) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	return s.n.ask(ctx, s.name, path)
}

// ask requests a path from the endpoint of a component on the node.
func (n *Node) ask(ctx context.Context, name, path string) (io.ReadCloser, error) {
	row, _ := component.Of(name)
	path = strings.TrimPrefix(path, "/")
	var a io.ReadCloser
	var err error
	switch {
	case row.Endpoint.Proxied:
		a, err = n.c.get(ctx, "/api/v1/nodes/"+n.name+"/proxy/"+path)
	case row.Endpoint.URL == "":
		a, err = n.c.get(ctx, "/"+path)
	default:
		argv := []string{"curl"}
		// curl doesn't check the component's certificate, which is self-signed.
		if row.Endpoint.Authenticated {
			argv = []string{"bash", "-c", asAdministrator, "bash"}
		}
		var out []byte
		out, err = n.Look(ctx, nil, append(argv, "--silent", "--show-error", "--fail", row.Endpoint.URL+"/"+path)...)
		a = io.NopCloser(bytes.NewReader(out))
	}
	if err != nil {
		return nil, fmt.Errorf("asking the %s of %s: %w", name, n.name, err)
	}
	return a, nil
}

// Logs streams CRI log lines of all the component's containers, from the first line on.
func (s container) Logs(ctx context.Context) (io.ReadCloser, error) {
	return s.n.stream(
		ctx,
		"sh",
		"-c",
		`exec tail --quiet --lines=+1 --follow=name --retry /var/log/pods/kube-system_"$1"-*/"$1"/*.log`,
		"sh",
		s.name,
	)
}

// Signal sends a signal to the component's process.
func (s container) Signal(ctx context.Context, sig os.Signal, of cluster.Identity) error {
	return s.n.signal(ctx, sig, of, s.pid())
}

// Identity returns which process runs, with PID 0 while none does. Restarts is the kubelet's count, read from the names
// of the log files.
func (s container) Identity(ctx context.Context, digest bool) (cluster.Identity, error) {
	return s.n.identity(
		ctx,
		digest,
		s.pid(),
		`ls /var/log/pods/kube-system_`+s.name+`-*/`+s.name+` | sed -n 's/^\([0-9]*\)\.log$/\1/p' | sort -n | tail -n 1`,
	)
}

// pid returns a command that prints the id of the component's process, or nothing if there is none, which is pgrep's
// status 1. /proc cuts names after 15 characters. So the command line is matched, which begins with the name or, for
// some components, with the path.
func (s container) pid() string {
	row, _ := component.Of(s.name)
	return `{ pgrep --oldest --full '^(` + s.name + `|` + row.Executable + `)( |$)' || [ $? = 1 ]; }`
}

// signal sends a signal to the process whose id the commands pid print, if it is the one that of names.
func (n *Node) signal(ctx context.Context, sig os.Signal, of cluster.Identity, pid string) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("sending %v on node %s: it has no number", sig, n.name)
	}
	out, err := n.Exec(ctx, nil, "sh", "-ec", signalScript(int(number), of, pid))
	if err == nil && strings.TrimSpace(string(out)) == "none" {
		err = fmt.Errorf("sending %v on node %s: %w", sig, n.name, cluster.ErrNoProcess)
	}
	return err
}

// signalScript returns a script that sends a signal to the process whose id the commands pid print. It prints none if
// there is no process, or another one than of names.
func signalScript(number int, of cluster.Identity, pid string) string {
	only := ""
	if of.PID != 0 {
		only = fmt.Sprintf(`stat=$(cat "/proc/$pid/stat" 2>/dev/null) || stat=
set -- ${stat##*) }
if [ "$pid" != %d ] || [ "${20}" != %d ] || [ "$1" = Z ]; then echo none; exit 0; fi
`, of.PID, of.StartTicks) // ${20} is field 22, the start; $1 is the state
	}
	return `pid=$(` + pid + `)
if ! [ "${pid:-0}" -gt 0 ]; then echo none; exit 0; fi
` + only + `kill -` + strconv.Itoa(number) + ` "$pid" || { [ ! -e "/proc/$pid" ] && echo none; }
`
}

// identity returns the identity of the process whose id the commands pid print; restarts print the count of its
// restarts. One command in the node asks for everything, so that no other process can come in between. PID 0 means that
// there is no process, which is an answer and no failure.
func (n *Node) identity(
	ctx context.Context,
	digest bool,
	pid, restarts string,
) (cluster.Identity, error) {
	out, err := n.Look(ctx, nil, "sh", "-ec", identityScript(digest, pid, restarts))
	if err != nil {
		return cluster.Identity{}, err
	}
	id, err := parseIdentity(string(out), digest)
	if err != nil {
		return id, fmt.Errorf("parsing a process's identity on node %s: %w", n.name, err)
	}
	return id, nil
}

// identityScript returns a script that prints what parseIdentity reads. If the process ends meanwhile, the script
// prints that there is none.
func identityScript(digest bool, pid, restarts string) string {
	sum := `sum=`
	if digest {
		sum = `sum=$(sha256sum <"/proc/$pid/exe") || gone`
	}
	return `gone() { if [ -e "/proc/$pid/stat" ]; then exit 1; fi; echo 0; exit 0; }
pid=$(` + pid + `)
if ! [ "${pid:-0}" -gt 0 ]; then echo 0; exit 0; fi
stat=$(cat "/proc/$pid/stat") || gone
` + sum + `
echo "$pid"
` + restarts + `
echo "$stat"
cat ` + cluster.RandomizeFile + ` 2>/dev/null || echo 0
echo "$sum"
` + limitsScript
}

// parseIdentity parses what identityScript printed: a line each for the process's id, the count of restarts,
// /proc/PID/stat, the content of RandomizeFile and, with digest, sha256sum's output; then what limitsScript printed.
func parseIdentity(out string, digest bool) (id cluster.Identity, err error) {
	out, limits, _ := strings.Cut(out, limitsMark+"\n")
	id.Limits = cluster.ParseCPULimits(limits)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if lines[0] == "0" {
		return cluster.Identity{}, nil
	}
	want := 4
	if digest {
		want++
	}
	if len(lines) != want {
		return id, fmt.Errorf("got %d lines, want %d: %q", len(lines), want, out)
	}
	if id.PID, err = strconv.Atoi(lines[0]); err != nil {
		return id, fmt.Errorf("the process's id: %w", err)
	}
	if id.Restarts, err = strconv.Atoi(lines[1]); err != nil {
		return id, fmt.Errorf("the count of restarts: %w", err)
	}
	if err := id.ParseStat(lines[2]); err != nil {
		return id, err
	}
	if id.Randomize, err = strconv.Atoi(lines[3]); err != nil {
		return id, fmt.Errorf("what %s says: %w", cluster.RandomizeFile, err)
	}
	if digest {
		id.SHA256, _, _ = strings.Cut(lines[4], " ")
		if len(id.SHA256) != 64 {
			return id, fmt.Errorf("sha256sum printed %q", lines[4])
		}
	}
	return id, nil
}

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

const kubelet = "kubelet"

// Service is what the service manager of a node runs by a unit of its name: the kubelet, or what a seam installs.
type Service struct {
	n    *Node
	name string
}

// Name returns the component's name.
func (s *Service) Name() string { return s.name }

// Node returns where it runs.
func (s *Service) Node() cluster.Node { return s.n }

// Get asks the kubelet through the API server's node proxy, and the others on their node's loopback.
func (s *Service) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	return s.n.ask(ctx, s.name, path)
}

// Logs gives `journalctl -o json` lines of the unit with the fields that say something, whole however long they are,
// and of journald's own unit, which says what it suppressed.
func (s *Service) Logs(ctx context.Context) (io.ReadCloser, error) {
	return s.n.stream(ctx, "journalctl", "--output=json",
		"--output-fields=MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_PID,_SYSTEMD_UNIT", "--all", "--follow", "--lines=all",
		"--no-pager",
		"--unit="+s.unit(), "--unit=systemd-journald.service")
}

func (s *Service) unit() string { return s.name + ".service" }

// pid prints the main process of the unit. Until that runs the component it is systemd's own program, and there is no
// component yet.
func (s *Service) pid() string {
	return `pid=$(systemctl show ` + s.unit() + ` --property=MainPID --value)
case "$(readlink "/proc/$pid/exe")" in */systemd | */systemd-executor) echo 0 ;; *) echo "$pid" ;; esac`
}

// Signal sends to the main process only.
func (s *Service) Signal(ctx context.Context, sig os.Signal) error {
	return s.n.signal(ctx, sig, s.pid())
}

// Restart stops the process and starts a new one, from the binary that is there now.
func (s *Service) Restart(ctx context.Context) error {
	_, err := s.n.Exec(ctx, nil, "systemctl", "restart", s.unit())
	return err
}

// Identity says that there is no process while none runs. Restarts are the ones that systemd did unasked.
func (s *Service) Identity(ctx context.Context, digest bool) (cluster.Identity, error) {
	return s.n.identity(ctx, digest, s.pid(), `systemctl show `+s.unit()+` --property=NRestarts --value`)
}

// StaticPod is a component of the control plane, whose manifest lies on its node.
type StaticPod struct{ container }

// DaemonPod is a component that a DaemonSet runs on each node.
type DaemonPod struct{ container }

// container is a component in a pod of kube-system, on its node's network.
type container struct {
	n    *Node
	name string
}

// Name returns the component's name.
func (s container) Name() string { return s.name }

// Node returns where it runs.
func (s container) Node() cluster.Node { return s.n }

// asAdministrator has curl ask with the certificate and key that kubeadm made for the cluster's administrator. They are no files of
// their own. (Those by which an API server asks kubelets are, but from v1.36 on they open nothing else.)
const asAdministrator = `admin() { sed -n "s/^ *client-$1-data: //p" ` + adminConfig + ` | base64 --decode; }
exec curl --insecure --cert <(admin certificate) --key <(admin key) "$@"`

// adminConfig is the administrator's kubeconfig on the nodes of the control plane.
const adminConfig = "/etc/kubernetes/admin.conf"

// Get asks the API server from here, and the others on their node's loopback.
func (s container) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	return s.n.ask(ctx, s.name, path)
}

// ask asks a component of the node for a path of its endpoint.
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
		if row.Endpoint.Authenticated { // its own certificate is signed by itself
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

// Logs gives CRI log lines of all its containers so far, and of those to come.
func (s container) Logs(ctx context.Context) (io.ReadCloser, error) {
	return s.n.stream(ctx, "sh", "-c", `exec tail --quiet --lines=+1 --follow=name --retry /var/log/pods/kube-system_"$1"-*/"$1"/*.log`, "sh", s.name)
}

// Signal sends to the component's process.
func (s container) Signal(ctx context.Context, sig os.Signal) error {
	return s.n.signal(ctx, sig, s.pid())
}

// Identity is an error while no process runs. Restarts are the kubelet's, read from the names of its log files.
func (s container) Identity(ctx context.Context, digest bool) (cluster.Identity, error) {
	return s.n.identity(ctx, digest, s.pid(),
		`ls /var/log/pods/kube-system_`+s.name+`-*/`+s.name+` | sed -n 's/^\([0-9]*\)\.log$/\1/p' | sort -n | tail -n 1`)
}

// pid prints the process's id, or nothing if there is none, which is pgrep's status 1. A name of more than 15
// characters is cut in /proc, so the command line is matched, which begins with the name or, for some, with the path.
func (s container) pid() string {
	row, _ := component.Of(s.name)
	return `{ pgrep --oldest --full '^(` + s.name + `|` + row.Executable + `)( |$)' || [ $? = 1 ]; }`
}

// signal sends to the process that the command pid prints.
func (n *Node) signal(ctx context.Context, sig os.Signal, pid string) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("sending %v on node %s: it has no number", sig, n.name)
	}
	_, err := n.Exec(ctx, nil, "sh", "-ec", `pid=$(`+pid+`); if [ "$pid" -gt 0 ]; then kill -`+strconv.Itoa(int(number))+
		` "$pid"; else echo "no process" >&2; exit 1; fi`)
	return err
}

// identity asks everything in one go, so that no process can come in between. A process id of 0 says that there is
// none, which is an answer and no failure.
func (n *Node) identity(ctx context.Context, digest bool, pid, restarts string) (cluster.Identity, error) {
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

// identityScript prints what parseIdentity reads. A process that ends while it is looked at is none.
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

// parseIdentity reads a line each: the process's id, the count of restarts, /proc/PID/stat, what the host randomises, and
// sha256sum's output. Then there is what limitsScript printed.
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

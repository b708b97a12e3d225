package processes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// lbaas is the name of the program of the seam lbaas among the cluster's processes.
const lbaas = "relapse-lbaas"

// extender is the program of the seam scheduler-extender among the cluster's processes.
const extender = "relapse-scheduler-extender"

// extenderConfig is the file that tells kube-scheduler where the extender is.
const extenderConfig = "relapse-extender.yaml"

// proxyName returns the name of a connection's proxy among the cluster's processes.
func proxyName(connection string) string { return "relapse-" + connection }

// cloudConfig is the file that tells cloud-controller-manager where its cloud is.
const cloudConfig = "openstack.conf"

// seamProcess is the program of a seam as a process of a cluster. It runs in the cluster's folder, where its control
// socket is: a whole path might be too long for a socket.
type seamProcess struct {
	name   string // of the process, its port and its socket
	binary string // the program's path on a node
	serve  func(ports map[string]int) []string
	// commands returns the flags of each command other than ctl: the addresses and files of this cluster, instead of a
	// node's.
	commands func(ports map[string]int) map[string][]string
	// connection is what a proxy stands on; nil for other programs.
	connection *control.Connection
}

func (s seamProcess) socket() []string { return []string{"--control", s.name + ".sock"} }

// seamProcesses maps the names of the seams that clusters of processes can have to their programs.
var seamProcesses = allSeams()

func allSeams() map[string]seamProcess {
	out := map[string]seamProcess{"lbaas": {
		name:   lbaas,
		binary: control.LBaaSBinaryPath,
		serve:  func(ports map[string]int) []string { return []string{"--listen", loopback(ports[lbaas])} },
		commands: func(ports map[string]int) map[string][]string {
			return map[string][]string{"probe": {"--address", loopback(ports[lbaas])}}
		},
	}, "scheduler-extender": {
		name:   extender,
		binary: control.ExtenderBinaryPath,
		serve:  func(ports map[string]int) []string { return []string{"--listen", loopback(ports[extender])} },
		commands: func(ports map[string]int) map[string][]string {
			return map[string][]string{"probe": {"--address", loopback(ports[extender])}}
		},
	}}
	for name, of := range control.Connections {
		if row, _ := component.Of(of.Client); component.ControlPlane(row) { // else nobody here connects
			out[name] = proxyOf(of)
		}
	}
	return out
}

// proxyOf returns the process of a connection's proxy. The certificates of the probe have the same places below the
// cluster's folder as in a node, where kubeadm puts them.
func proxyOf(of control.Connection) seamProcess {
	proxy := proxyName(of.Name)
	if of.Ways {
		return seamProcess{
			name: proxy, binary: of.BinaryPath(), connection: &of,
			serve: func(map[string]int) []string { return []string{"--connection", of.Name} },
			commands: func(map[string]int) map[string][]string {
				return map[string][]string{"probe": {"--control", proxy + ".sock"}}
			},
		}
	}
	own := func(file string) string { return strings.TrimPrefix(file, kubeadmDir) }
	return seamProcess{
		name: proxy, binary: of.BinaryPath(), connection: &of,
		serve: func(ports map[string]int) []string {
			return []string{
				"--connection",
				of.Name,
				"--listen",
				loopback(ports[proxy]),
				"--upstream",
				loopback(ports[of.Server]),
			}
		},
		commands: func(ports map[string]int) map[string][]string {
			return map[string][]string{"probe": {"--through", loopback(ports[proxy]), "--direct", loopback(ports[of.Server]),
				"--cert", own(of.Cert), "--key", own(of.Key), "--ca", own(of.CA)}}
		},
	}
}

// kubeadmDir is where kubeadm keeps what a cluster of processes has in its own folder.
const kubeadmDir = "/etc/kubernetes/"

// seamsOf returns the seams of a node, by the names of their processes.
func seamsOf(n cluster.NodeSpec) map[string]seamProcess {
	out := map[string]seamProcess{}
	for name := range n.Seams {
		s := seamProcesses[name]
		out[s.name] = s
	}
	return out
}

// RunProxy runs a command of a seam's program, with the addresses and files of this cluster instead of a node's.
func (n *Node) RunProxy(ctx context.Context, stdin []byte, argv ...string) ([]byte, error) {
	out, err := n.runProxy(ctx, stdin, argv)
	if err != nil {
		return out, fmt.Errorf("executing %q for node %s: %w", argv, n.name, err)
	}
	return out, nil
}

func (n *Node) runProxy(ctx context.Context, stdin []byte, argv []string) ([]byte, error) {
	var proxy seamProcess
	for _, one := range n.seams {
		if len(argv) > 1 && argv[0] == one.binary {
			proxy = one
		}
	}
	if proxy.name == "" {
		return nil, errors.New("the cluster has no such proxy")
	}
	places := proxy.socket()
	if argv[1] != "ctl" {
		places = proxy.commands(n.c.ports)[argv[1]]
	}
	args := slices.Concat(argv[1:2], places, argv[2:])
	cmd := exec.CommandContext(ctx, programPath(n.c.home, proxy.name), args...)
	cmd.Dir, cmd.Stdin = n.c.home, bytes.NewReader(stdin)
	cmd.WaitDelay = time.Second
	// A parent-death signal comes when the thread ends that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = withParent()
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return out, err
}

// proxyState returns what the program of a seam says of itself, which it does once it serves.
func (n *Node) proxyState(ctx context.Context, binary string) (io.ReadCloser, error) {
	out, err := n.runProxy(ctx, nil, []string{binary, "ctl", "state"})
	return io.NopCloser(bytes.NewReader(out)), err
}

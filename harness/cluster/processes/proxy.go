package processes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
)

const (
	// etcdSeam is the seam between kube-apiserver and etcd.
	etcdSeam = "etcd"
	// etcdProxy is its proxy, among the cluster's processes.
	etcdProxy = "relapse-etcd"
	// proxySocket is where the proxy is told what to do, in the cluster's folder, which is where its program runs: a
	// whole path might be too long for one.
	proxySocket = "relapse-etcd.sock"
)

func proxyArgs(ports map[string]int) []string {
	return []string{"serve", "--listen", loopback(ports[etcdProxy]), "--etcd", loopback(ports["etcd"]), "--control",
		proxySocket}
}

// RunProxy runs a command of the etcd proxy's program, with the places of this cluster instead of a node's.
func (n *Node) RunProxy(ctx context.Context, stdin []byte, argv ...string) ([]byte, error) {
	out, err := n.runProxy(ctx, stdin, argv)
	if err != nil {
		return out, fmt.Errorf("executing %q for node %s: %w", argv, n.name, err)
	}
	return out, nil
}

func (n *Node) runProxy(ctx context.Context, stdin []byte, argv []string) ([]byte, error) {
	if !n.proxied || len(argv) < 2 || argv[0] != control.EtcdBinaryPath {
		return nil, errors.New("the cluster has no such proxy")
	}
	places := map[string][]string{
		"ctl": {"--control", proxySocket},
		"probe": {"--through", loopback(n.c.ports[etcdProxy]), "--direct", loopback(n.c.ports["etcd"]),
			"--cert", etcdClient + ".crt", "--key", etcdClient + ".key", "--ca", etcdCAFile},
	}
	args := append(append([]string{argv[1]}, places[argv[1]]...), argv[2:]...)
	cmd := exec.CommandContext(ctx, programPath(n.c.home, etcdProxy), args...)
	cmd.Dir, cmd.Stdin = n.c.home, bytes.NewReader(stdin)
	cmd.WaitDelay = time.Second
	// A parent-death signal comes when the thread ends that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
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

// proxyState is what the proxy answers once it serves.
func (n *Node) proxyState(ctx context.Context) (io.ReadCloser, error) {
	out, err := n.runProxy(ctx, nil, []string{control.EtcdBinaryPath, "ctl", "state"})
	return io.NopCloser(bytes.NewReader(out)), err
}

package kind

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// Node is a container of a cluster. It implements cluster.Node.
type Node struct {
	c               *Cluster
	name, role, arm string
	dir             string            // the host's folder of its files
	programs, seams map[string]string // what the topology gave it: see cluster.NodeSpec
}

// has reports whether the node runs a component that its role may run. A component that the topology adds needs a
// program here, and one that a seam installs needs the seam.
func (n *Node) has(row component.Component) bool {
	switch row.Runs {
	case component.AsAddedPod:
		return n.programs[row.Name] != ""
	case component.AsSeam:
		return n.seams[strings.TrimPrefix(row.Name, "relapse-")] != ""
	}
	return true
}

// Name returns the name of the container, the host and the Node object alike.
func (n *Node) Name() string { return n.name }

// Role returns cluster.ControlPlane or cluster.Worker.
func (n *Node) Role() string { return n.role }

// Arm returns the arm that the topology gave the node to, or "".
func (n *Node) Arm() string { return n.arm }

// Objects returns the name of the node.
func (n *Node) Objects() []string { return []string{n.name} }

// Abilities returns commands, a power switch and a network.
func (n *Node) Abilities() cluster.NodeAbilities {
	return cluster.NodeAbilities{Commands: n, Power: n, Network: n}
}

// Folder returns the folder of a component's own files.
func (n *Node) Folder(component string) string { return ownFolder(component) }

// execMark is a variable in the environment of what Exec starts. By it a command can be found with all its children.
const execMark = "RELAPSE_EXEC"

// Exec runs a command in the node as root. If ctx ends first, the command and what it started are killed, because the
// engine would leave them running. The error has the command line and its output.
func (n *Node) Exec(ctx context.Context, stdin io.Reader, argv ...string) ([]byte, error) {
	mark := rand.Text()
	args := []string{"exec", "--env", execMark + "=" + mark}
	if stdin != nil {
		args = append(args, "--interactive")
	}
	var out bytes.Buffer
	err := n.c.p.docker.Stream(ctx, stdin, &out, append(append(args, n.name), argv...)...)
	if err == nil {
		return out.Bytes(), nil
	}
	if ctx.Err() != nil {
		n.killMarked(ctx, mark)
	}
	return out.Bytes(), n.failed(argv, err, nil, out.Bytes())
}

// failed returns the error of a failed command, with the command's standard error (said) and its output.
func (n *Node) failed(argv []string, err error, said, out []byte) error {
	err = fmt.Errorf("executing %q on node %s: %w", argv, n.name, err)
	if said := bytes.TrimSpace(said); len(said) > 0 {
		err = fmt.Errorf("%w: %s", err, said)
	}
	switch out := bytes.TrimSpace(out); {
	case !utf8.Valid(out): // such as half a profile, which is of no use to a reader
		err = fmt.Errorf("%w; it printed %d bytes that are no text", err, len(out))
	case len(out) > 0:
		err = fmt.Errorf("%w; it printed: %s", err, out)
	}
	return err
}

// killMarked kills the processes with a mark, which an Exec left running. If that fails, the node is gone, and its
// processes with it.
func (n *Node) killMarked(ctx context.Context, mark string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	// One grep for all processes: with one or two for each, a busy host needs longer than the limit.
	const script = `for p in $(grep -lsxzF -e "$1" /proc/[0-9]*/environ); do
	p=${p%/environ}; kill -KILL "${p#/proc/}" 2>/dev/null
done; true`
	_, _ = n.c.p.docker.Output(ctx, "exec", n.name, "sh", "-c", script, "sh", execMark+"="+mark)
}

// Install replaces a program that was installed at creation. On the host the file is replaced for good: the engine
// mounts it at each start of the node. In the running node it is mounted over the old one, which running processes
// keep.
func (n *Node) Install(ctx context.Context, name, source string) error {
	row, _ := component.Of(name)
	err := n.install(ctx, programPath(row), source)
	if err != nil {
		return fmt.Errorf("installing %s as the %s of node %s: %w", source, name, n.name, err)
	}
	return nil
}

func (n *Node) install(ctx context.Context, at, source string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if _, err := os.Stat(hostPath(n.dir, at)); err != nil {
		return fmt.Errorf("only what the topology installed can be replaced: %w", err)
	}
	f := cluster.File{Path: at, Source: source, Mode: uint32(info.Mode().Perm())}
	if err := writeFile(hostPath(n.dir, at), f); err != nil {
		return err
	}
	// The rename has left the node's mount on a file without a name, over which nothing can be mounted, so the mount is
	// removed first. For that moment the image's own file shows; a process started from it would have another digest.
	_, err = n.Exec(ctx, nil, "sh", "-ec", `umount --lazy "$2"; mount --bind "$1" "$2"`, "sh",
		path.Join(layDir, "root", at), at)
	return err
}

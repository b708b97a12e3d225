package kind

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/internal/docker"
)

// fakeDocker is an engine with one container, whose state is files beside the script: running, policy, and survives,
// how many kills it survives. It writes down what it was asked to change.
const fakeDocker = `#!/bin/sh
cd "$(dirname "$0")"
case "$1" in
inspect) echo "$(cat running) 2026-03-01T10:00:00.123456789Z $(cat policy)" ;;
kill)
	echo "$*" >>calls
	n=$(cat survives)
	if [ "$n" -gt 0 ]; then echo $((n-1)) >survives; else echo false >running; fi ;;
update) echo "$*" >>calls; [ "$3" = no ] && echo no:0 >policy || echo "$3" >policy ;;
start) echo "$*" >>calls; echo true >running ;;
exec) [ "$(cat running)" = true ] ;;
image) [ -e image ] || { echo "No such image" >&2; exit 1; } ;;
manifest) [ -e registry ] || { echo "no such host" >&2; exit 1; } ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac
`

// newEngine lays the script down with some files.
func newEngine(t *testing.T, files map[string]string) (*docker.Client, string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "docker")
	if err := os.WriteFile(path, []byte(fakeDocker), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &docker.Client{Path: path}, dir
}

// aNode is the node of a process that knows nothing but its name.
func aNode(client *docker.Client) *Node {
	c := newCluster(&Provider{docker: client}, "relapse-x",
		cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "worker", Role: cluster.Worker}}})
	return c.Machines[0]
}

func TestPower(t *testing.T) {
	const (
		kill  = "kill --signal KILL relapse-x-worker"
		never = "update --restart no relapse-x-worker"
		boot  = "update --restart on-failure:1 relapse-x-worker"
		start = "start relapse-x-worker"
	)
	off, on := (*Node).PowerOff, (*Node).PowerOn
	for _, tc := range []struct {
		name, running, policy, survives string
		act                             func(*Node, context.Context) error
		calls                           []string
		after                           string // running and policy
	}{
		{"off", "true", "on-failure:1", "0", off, []string{kill, never}, "false no:0"},
		{"off again", "false", "no:0", "0", off, nil, "false no:0"},
		{"off, where a process died in the middle", "false", "on-failure:1", "0", off, []string{never}, "false no:0"},
		{"off, where it is started again in between", "true", "on-failure:1", "2", off, []string{kill, kill, kill, never},
			"false no:0"},
		{"off, where it was started by hand", "true", "no:0", "0", off, []string{kill}, "false no:0"},
		{"off, with an engine that says nothing of a policy", "true", ":0", "0", off, []string{kill}, "false :0"},
		{"on", "false", "no:0", "0", on, []string{boot, start}, "true on-failure:1"},
		{"on again", "true", "on-failure:1", "0", on, nil, "true on-failure:1"},
		{"on, where a process died in the middle", "false", "on-failure:1", "0", on, []string{start}, "true on-failure:1"},
		{"on, where it was started by hand", "true", "no:0", "0", on, []string{boot}, "true on-failure:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client, dir := newEngine(t, map[string]string{"running": tc.running, "policy": tc.policy, "survives": tc.survives})
			if err := tc.act(aNode(client), t.Context()); err != nil {
				t.Fatal(err)
			}
			read := func(name string) string {
				b, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				return strings.TrimSpace(string(b))
			}
			got := strings.FieldsFunc(read("calls"), func(r rune) bool { return r == '\n' })
			if !slices.Equal(got, tc.calls) {
				t.Errorf("the engine was asked for %q, want %q", got, tc.calls)
			}
			if after := read("running") + " " + read("policy"); after != tc.after {
				t.Errorf("it is %s, want %s", after, tc.after)
			}
		})
	}
}

// A policy that nobody would know to put back is not changed, and the node not killed.
func TestPowerOffRefusesAForeignPolicy(t *testing.T) {
	client, dir := newEngine(t, map[string]string{"running": "true", "policy": "always:0", "survives": "0"})
	err := aNode(client).PowerOff(t.Context())
	want := `powering off node relapse-x-worker: the engine's restart policy for it is "always" (want on-failure:1, which would be put back when it is switched on)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "calls")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the engine was asked to change something")
	}
}

func TestPowerOffEndsWithItsContext(t *testing.T) {
	client, _ := newEngine(t, map[string]string{"running": "true", "policy": "on-failure:1", "survives": "1000000"})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := aNode(client).PowerOff(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, cause) {
		t.Errorf("with a context that is over: %v", err)
	}
}

func TestBooted(t *testing.T) {
	client, _ := newEngine(t, map[string]string{"running": "true", "policy": "no:0"})
	if at, err := aNode(client).Booted(t.Context()); err != nil || at.Format("15:04:05.000") != "10:00:00.123" {
		t.Errorf("it started at %s, %v", at, err)
	}
	client, _ = newEngine(t, map[string]string{"running": "false", "policy": "no:0"})
	if _, err := aNode(client).Booted(t.Context()); err == nil ||
		err.Error() != "asking when node relapse-x-worker was started: it is off" {
		t.Errorf("of a node that is off: %v", err)
	}
}

func TestOneControlPlane(t *testing.T) {
	for _, tc := range []struct{ file, want string }{
		{"image", ""},
		{"registry", ""},
		{"neither", "kind puts the load balancer " + balancerImage +
			" before several, the engine doesn't have that image, and its registry doesn't give it (" +
			"running `docker manifest inspect " + balancerImage + "`: exit status 1: no such host)"},
	} {
		client, _ := newEngine(t, map[string]string{tc.file: ""})
		if got := oneControlPlane(t.Context(), client); got != tc.want {
			t.Errorf("with %s: %q\nwant %q", tc.file, got, tc.want)
		}
	}
}

func TestConfigureControlPlanes(t *testing.T) {
	topo := three(func(t *cluster.Topology) {
		for _, name := range []string{"control-plane2", "control-plane3"} {
			t.Nodes = append(t.Nodes, cluster.NodeSpec{Name: name, Role: cluster.ControlPlane, Image: "relapse/node:1"})
		}
	})
	cfg, err := configure(topo, t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	if n := controlPlanes(topo); n != 3 || len(cfg.Nodes) != 5 || cfg.Nodes[4].Role != "control-plane" {
		t.Errorf("%d control planes, the nodes %+v", n, cfg.Nodes)
	}
}

// What is taken over from kind's source is still there.
func TestKindSays(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kind").Output()
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"pkg/cluster/internal/loadbalancer/const.go":         `const Image = "` + balancerImage + `"`,
		"pkg/cluster/internal/providers/docker/provision.go": `"--restart=` + restartAtBoot + `"`,
	} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s doesn't have %s: %v", file, want, err)
		}
	}
}

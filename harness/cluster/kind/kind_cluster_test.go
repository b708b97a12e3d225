//go:build cluster

// These tests make clusters on the engine of this host. RELAPSE_NODE_IMAGE names the node image; relapse image prints
// one.
package kind_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/e2e-framework/klient"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/kind"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

func env(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set", name)
	}
	return v
}

func topology(t *testing.T, name string) cluster.Topology {
	t.Helper()
	image := env(t, "RELAPSE_NODE_IMAGE")
	base, err := os.ReadFile("../../../kind-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	laid := cluster.File{Path: clustertest.InstalledPath, Content: []byte(clustertest.InstalledContent)}
	return cluster.Topology{Version: cluster.DefaultVersion, Base: base, Network: name, Nodes: []cluster.NodeSpec{
		{Name: "control-plane", Role: cluster.ControlPlane, Image: image, Files: []cluster.File{laid},
			Args: map[string]map[string]string{"kube-apiserver": {"v": "2"}, "etcd": {"log-level": "warn"}}},
		{Name: "worker", Role: cluster.Worker, Image: image, Arm: "one",
			Labels: map[string]string{"relapse.dev/arm": "one"},
			Files:  []cluster.File{laid}, Programs: map[string]string{"kubelet": ownKubelet(t)},
			Units: []cluster.Unit{
				{Name: "conformance.service", Content: "[Unit]\nBefore=kubelet.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n"},
				{Name: "kubelet.service", DropIn: "20-conformance.conf", Content: "[Service]\nEnvironment=CONFORMANCE=yes\n"},
			},
			Args: map[string]map[string]string{"kubelet": {"v": "3"}}},
		{Name: "worker2", Role: cluster.Worker, Image: image, Arm: "two", Files: []cluster.File{laid}},
	}}
}

func newProvider(t *testing.T) (*kind.Provider, string) {
	t.Helper()
	start, dir := time.Now(), t.TempDir()
	p, err := kind.New(kind.Options{Dir: dir, Events: event.NewStream(event.SinkFunc(func(e event.Event) {
		t.Log(time.Since(start).Round(10*time.Millisecond), e.Type, e.Message)
	}))})
	if err != nil {
		t.Fatal(err)
	}
	return p, dir
}

// world is all that a test may not change: containers, networks and volumes of the engine, the user's kubeconfig, the
// environment.
func world(t *testing.T, name string) []string {
	t.Helper()
	var all []string
	for _, args := range [][]string{
		{"ps", "-a", "--filter", "name=" + name, "--format", "{{.Names}}"},
		{"network", "ls", "--filter", "name=" + name, "--format", "{{.Name}}"},
		{"volume", "ls", "--filter", "dangling=true", "--format", "{{.Name}}"},
	} {
		out, err := exec.Command("docker", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("docker %v: %v: %s", args, err, out)
		}
		for _, one := range strings.Fields(string(out)) {
			all = append(all, args[0]+" "+one)
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	user, err := os.ReadFile(filepath.Join(home, ".kube", "config"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return append(all, "the user's kubeconfig "+string(user), "KUBECONFIG="+os.Getenv("KUBECONFIG"),
		"KIND_EXPERIMENTAL_DOCKER_NETWORK="+os.Getenv("KIND_EXPERIMENTAL_DOCKER_NETWORK"))
}

// unchanged wants nothing in the world that wasn't there before. It waits for a while: containers of other tests, which run
// at the same time, leave volumes behind for a moment.
func unchanged(t *testing.T, name string, before []string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Second) { // the engine tells nobody when it has let go of them
		more := slices.DeleteFunc(world(t, name), func(one string) bool { return slices.Contains(before, one) })
		if len(more) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("the host has %q in addition", more)
			return
		}
	}
}

func TestCluster(t *testing.T) {
	const name = "relapse-conformance"
	p, dir := newProvider(t)
	topo := topology(t, name)
	before := world(t, name)
	t.Cleanup(func() {
		unchanged(t, name, before)
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("files left: %v, %v", left, err)
		}
	})
	caps, err := p.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	clustertest.ProviderConformance(t, p, name, topo, func(t *testing.T, c cluster.Cluster) {
		t.Logf("created in %s", time.Since(start))
		ready(t, c)
		t.Logf("ready in %s", time.Since(start))
		t.Run("Private", func(t *testing.T) { private(t, p, name) })
		t.Run("Installed", func(t *testing.T) { installed(t, c) })
		t.Run("Replaced", func(t *testing.T) { replaced(t, c) })
		t.Run("LogsLeaveNothing", func(t *testing.T) { logsLeaveNothing(t, c) })
		t.Run("StaticPods", func(t *testing.T) { staticPods(t, c) })
		t.Run("Limited", func(t *testing.T) { limited(t, c) })
		clustertest.Conformance(t, c, caps, topo)
		t.Run("RoutesAfterPower", func(t *testing.T) { ready(t, c); routes(t, c) })
	})
}

func ready(t *testing.T, c cluster.Cluster) {
	t.Helper()
	client, err := klient.New(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range c.Nodes() {
		names = append(names, n.Name())
	}
	if err := cluster.WaitReady(t.Context(), client, names, 5*time.Minute); err != nil {
		t.Fatal(err)
	}
}

func private(t *testing.T, p *kind.Provider, name string) {
	info, err := os.Stat(p.KubeconfigPath(name))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig: %v, %v; want mode 0600", info, err)
	}
	out, err := exec.Command("docker", "network", "inspect", name, "--format", "{{len .Containers}}").CombinedOutput()
	if strings.TrimSpace(string(out)) != "3" || err != nil {
		t.Errorf("containers on the network of its own: %s, %v; want 3", out, err)
	}
}

func run(t *testing.T, n cluster.Node, argv ...string) string {
	t.Helper()
	out, err := n.Abilities().Commands.Exec(t.Context(), nil, argv...)
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(string(out))
}

// routes wants every node to have one to each of the others.
func routes(t *testing.T, c cluster.Cluster) {
	for _, n := range c.Nodes() {
		out := run(t, n, "ip", "route", "list")
		if got := strings.Count(out, "10.244."); got < 2 {
			t.Errorf("node %s has %d routes to pods: %s", n.Name(), got, out)
		}
		if got := run(t, n, "ls", "/etc/cni/net.d"); got != "10-relapse.conflist" {
			t.Errorf("node %s has the CNI files %q", n.Name(), got)
		}
	}
}

// A Create that is cancelled leaves nothing, wherever it was.
func TestCancel(t *testing.T) {
	for _, at := range []string{"Preparing nodes", "Starting control-plane", "Joining worker nodes"} {
		t.Run(at, func(t *testing.T) {
			const name = "relapse-cancel"
			dir, before := t.TempDir(), world(t, name)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var when time.Time
			p, err := kind.New(kind.Options{Dir: dir, Events: event.NewStream(event.SinkFunc(func(e event.Event) {
				if strings.Contains(e.Message, at) {
					when = time.Now()
					time.AfterFunc(700*time.Millisecond, cancel)
				}
			}))})
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Create(ctx, name, topology(t, name))
			if err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
				t.Errorf("it ended with %v", err)
			}
			t.Logf("gone %s after the cancel", time.Since(when)-700*time.Millisecond)
			unchanged(t, name, before)
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("files left: %v, %v", left, err)
			}
		})
	}
}

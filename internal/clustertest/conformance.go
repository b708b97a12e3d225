package clustertest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// InstalledPath is a file that every node of a cluster under Conformance has, with InstalledContent.
const (
	InstalledPath    = "/opt/conformance/installed"
	InstalledContent = "installed before any unit started\n"
)

// patience is how long a component may take to come back.
const patience = 90 * time.Second

// Conformance tests whether a cluster keeps the contracts of package cluster, and uses every capability in caps. topo
// is the topology that the cluster was made from. It has at least one worker if caps has Kubelets, and InstalledPath on
// all nodes if caps has NodeFiles. The nodes are Ready. Conformance kills kubelets, or every component where there are
// none, and switches nodes off and on.
func Conformance(
	t *testing.T,
	c cluster.Cluster,
	caps cluster.Capabilities,
	topo cluster.Topology,
) {
	s := suite{c, caps, topo}
	t.Run("Nodes", s.nodes)
	t.Run("API", s.api)
	t.Run("Etcd", s.etcd)
	if caps.Kubelets {
		for _, k := range c.Components("kubelet") {
			t.Run("Kubelet/"+k.Node().Name(), func(t *testing.T) { s.component(t, k, "kubelet") })
		}
		t.Run("Logs", func(t *testing.T) { s.logs(t, s.kubelet(t)) })
		t.Run("Identity", func(t *testing.T) { s.identity(t, s.kubelet(t)) })
	} else {
		// A component that needs others comes first, because it may end when they do.
		for _, name := range slices.Backward(component.Names(component.StaticPods)) {
			t.Run(name, func(t *testing.T) { s.process(t, name) })
		}
	}
	if caps.Nodes().Commands != nil {
		t.Run("Exec", s.exec)
		t.Run("Look", s.looks)
	}
	if caps.NodeFiles {
		t.Run("Files", s.files)
	}
	if caps.Nodes().Network != nil {
		t.Run("Network", s.network)
	}
	if caps.Nodes().Power != nil {
		t.Run("Power", s.power)
	}
}

type suite struct {
	c    cluster.Cluster
	caps cluster.Capabilities
	topo cluster.Topology
}

// process tests the one instance of a component.
func (s suite) process(t *testing.T, name string) {
	all := s.c.Components(name)
	if len(all) != 1 {
		t.Fatalf("there are %d of %s, want 1", len(all), name)
	}
	s.component(t, all[0], name)
	s.logs(t, all[0])
	s.identity(t, all[0])
}

// kubelet returns the kubelet of the last worker.
func (s suite) kubelet(t *testing.T) cluster.Component {
	t.Helper()
	all := s.c.Components("kubelet")
	for _, k := range slices.Backward(all) {
		if k.Node().Role() == cluster.Worker {
			return k
		}
	}
	t.Fatal("there is no worker with a kubelet")
	return nil
}

func (s suite) nodes(t *testing.T) {
	nodes := s.c.Nodes()
	if len(nodes) != len(s.topo.Nodes) {
		t.Fatalf("the cluster has %d nodes, the topology %d", len(nodes), len(s.topo.Nodes))
	}
	for i, n := range nodes {
		spec := s.topo.Nodes[i]
		if want := s.c.Name() + "-" + spec.Name; n.Name() != want || n.Role() != spec.Role || n.Arm() != spec.Arm {
			t.Errorf("node %d is %s, role %q, arm %q; want %s, %q, %q", i, n.Name(), n.Role(), n.Arm(), want,
				spec.Role,
				spec.Arm,
			)
		}
		if got, want := can(n.Abilities()), can(s.caps.Nodes()); got != want {
			t.Errorf(
				"node %s can run commands, be powered off, be cut off, run proxies and keep logs: %v, claimed %v",
				n.Name(),
				got,
				want,
			)
		}
	}
	if got, want := s.c.Abilities().Processes != nil, s.caps.Cluster().Processes != nil; got != want {
		t.Errorf("the cluster can run workloads as processes: %v, claimed %v", got, want)
	}
	for _, name := range component.Names(component.Limited) {
		for _, k := range s.c.Components(name) {
			if k.Abilities().Limit == nil && s.caps.NoMemoryLimits == "" {
				t.Errorf(
					"the memory of %s on %s can't be limited, and that is claimed",
					name,
					k.Node().Name(),
				)
			}
		}
	}
	want := 0
	if s.caps.Kubelets {
		want = len(nodes)
	}
	if got := len(s.c.Components("kubelet")); got != want {
		t.Errorf("%d kubelets on %d nodes, want %d", got, len(nodes), want)
	}
	if got := s.c.Components("no-such-component"); len(got) != 0 {
		t.Errorf("Components of an unknown name: %v", got)
	}
}

// can says which abilities there are: commands, power, network, proxies and logs.
func can(a cluster.NodeAbilities) [5]bool {
	return [5]bool{
		a.Commands != nil,
		a.Power != nil,
		a.Network != nil,
		a.RunProxy != nil,
		a.LogFolder != nil,
	}
}

func (s suite) api(t *testing.T) {
	client, err := kubernetes.NewForConfig(s.c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, n := range list.Items {
		got = append(got, n.Name)
	}
	for _, n := range s.c.Nodes() {
		if s.caps.Kubelets {
			want = append(want, n.Name())
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("Node objects %q, want %q", got, want)
	}
	s.c.RESTConfig().Host = "changed"
	if s.c.RESTConfig().Host == "changed" {
		t.Error("RESTConfig hands out its own, not a copy")
	}
}

func (s suite) component(t *testing.T, k cluster.Component, name string) {
	if k.Name() != name {
		t.Errorf("its name is %q, want %q", k.Name(), name)
	}
	row, _ := component.Of(name)
	want := "ok"
	if !row.Kubernetes {
		want = `{"health":"true","reason":""}`
	}
	if got := s.get(t, k, row.Ready); got != want {
		t.Errorf("%s says %q, want %q", row.Ready, got, want)
	}
	if _, err := k.Get(t.Context(), "/no/such/path"); err == nil || !strings.Contains(err.Error(), "404") ||
		!strings.Contains(err.Error(), "/no/such/path") {
		t.Errorf("an unknown path: %v; want an error with 404 and the path", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Get(ctx, row.Ready); !errors.Is(err, context.Canceled) {
		t.Errorf("Get with a context that is over: %v", err)
	}
}

func (s suite) get(t *testing.T, k cluster.Component, path string) string {
	t.Helper()
	r, err := k.Get(t.Context(), path)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(string(b))
}

// logs tests that the log has a first line soon, and that the stream ends soon after its context.
func (s suite) logs(t *testing.T, k cluster.Component) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := k.Logs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	first, rest := make(chan string, 1), make(chan error, 1)
	go func() {
		b := bufio.NewReader(r)
		line, err := b.ReadString('\n')
		first <- line
		if err == nil {
			_, err = io.Copy(io.Discard, b)
		}
		rest <- err
	}()
	select {
	case line := <-first:
		if strings.TrimSpace(line) == "" {
			t.Errorf("the first line is %q", line)
		}
	case <-time.After(patience):
		t.Fatal("there was no line")
	}
	cancel()
	select {
	case err := <-rest:
		if err != nil {
			t.Errorf("the stream ended with %v, want no error when ctx ends", err)
		}
	case <-time.After(patience):
		t.Error("the stream goes on after its context")
	}
}

func (s suite) healthy(t *testing.T, k cluster.Component) {
	t.Helper()
	row, _ := component.Of(k.Name())
	var err error
	poll(t, func() bool {
		var r io.ReadCloser
		if r, err = k.Get(t.Context(), row.Ready); err == nil {
			r.Close()
		}
		return err == nil
	}, func() any { return err })
}

// poll waits until ok returns true. It fails with the last observation when patience is over.
func poll(t *testing.T, ok func() bool, seen func() any) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within %s; last seen: %v", patience, seen())
		case <-tick.C:
		}
	}
}

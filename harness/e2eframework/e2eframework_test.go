package e2eframework_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/e2e-framework/klient/conf"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/e2eframework"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/internal/clustertest"
	_ "github.com/kube-relapse/relapse/scenarios"
)

var _ support.E2EClusterProviderWithLifeCycle = &e2eframework.Provider{}

func topology() cluster.Topology {
	return cluster.Topology{Version: "v1.34.4", Nodes: []cluster.NodeSpec{
		{Name: "control-plane", Role: cluster.ControlPlane},
		{Name: "worker", Role: cluster.Worker, Arm: "one"},
		{Name: "worker2", Role: cluster.Worker, Arm: "two"},
	}}
}

// The framework's own functions make a cluster, inject and recover a fault, and remove it all.
func TestFrameworkRuns(t *testing.T) {
	fake := &clustertest.Provider{}
	dir := t.TempDir()
	p := e2eframework.New(fake, topology(), dir)
	cfg := envconf.New()
	run := func(ctx context.Context, f env.Func) context.Context {
		t.Helper()
		ctx, err := f(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return ctx
	}
	ctx := run(t.Context(), envfuncs.CreateCluster(p, "relapse-framework"))
	info, err := os.Stat(filepath.Join(dir, "relapse-framework.kubeconfig"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig is %v, %v; want mode 0600", info, err)
	}
	if got, err := conf.New(p.GetKubeconfig()); err != nil || got.Host != p.KubernetesRestConfig().Host {
		t.Errorf("the kubeconfig leads to %v, %v; want %s", got, err, p.KubernetesRestConfig().Host)
	}

	marker := &touch{}
	i := e2eframework.Injection{Name: "touch", Fault: marker, Expires: time.Minute,
		On: func(n cluster.Node) bool { return n.Arm() == "two" }}
	node := p.Cluster().Nodes()[2].(*clustertest.Node)
	touched := 0
	node.Handle("touch", func(context.Context, io.Reader, []string) ([]byte, error) { touched++; return nil, nil })
	node.Handle("rm", func(context.Context, io.Reader, []string) ([]byte, error) { touched = 0; return nil, nil })
	ctx = run(ctx, p.Inject(i))
	if touched != 1 {
		t.Errorf("after Inject the node was touched %d times", touched)
	}
	ctx = run(ctx, p.Recover(i))
	ctx = run(ctx, p.Recover(i))
	if touched != 0 {
		t.Error("Recover did not reach the node")
	}

	run(ctx, envfuncs.DestroyCluster("relapse-framework"))
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || len(fake.Clusters()) > 0 {
		t.Errorf("left behind: %v, %v, %q", left, err, fake.Clusters())
	}
}

// touch is a fault in two commands.
type touch struct{}

func (*touch) Needs() fault.Needs { return fault.Needs{Exec: true} }

func (*touch) Inject(ctx context.Context, t fault.Target) error { return each(ctx, t, "touch") }

func (*touch) Recover(ctx context.Context, t fault.Target) error { return each(ctx, t, "rm") }

func each(ctx context.Context, t fault.Target, command string) error {
	for _, n := range t.Nodes {
		if _, err := n.Abilities().Commands.Exec(ctx, nil, command, "/run/"+t.Name); err != nil {
			return err
		}
	}
	return nil
}

// computed is a fault whose command follows from a constant of the subject.
type computed struct {
	touch
	limit int64
}

func (*computed) Needs() fault.Needs { return fault.Needs{Exec: true, Constants: []string{"limit"}} }

func (c *computed) Inject(ctx context.Context, t fault.Target) error {
	return each(ctx, t, fmt.Sprintf("touch-%d", c.limit))
}

func (*computed) Compute(constants []map[string]int64, _ []fault.Fault) (fault.Fault, map[string]string, error) {
	return &computed{limit: constants[0]["limit"]}, nil, nil
}

// A fault that computes its size from the subject's constants gets them before it is injected. Without them it would be
// injected with a size of zero, and seem to be in force.
func TestAFaultIsComputedFromTheConstants(t *testing.T) {
	p := e2eframework.New(&clustertest.Provider{}, topology(), t.TempDir())
	if _, err := p.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Destroy(context.Background()) })
	sized := false
	p.Cluster().Nodes()[1].(*clustertest.Node).Handle("touch-7", func(context.Context, io.Reader, []string) ([]byte, error) {
		sized = true
		return nil, nil
	})
	i := e2eframework.Injection{Name: "flood", Fault: &computed{}, Expires: time.Minute,
		On: func(n cluster.Node) bool { return n.Arm() == "one" }}
	if _, err := p.Inject(i)(t.Context(), envconf.New()); err == nil || !strings.Contains(err.Error(), `it needs the constant "limit"`) {
		t.Errorf("without the constant: %v", err)
	}
	i.Constants = map[string]int64{"limit": 7}
	if _, err := p.Inject(i)(t.Context(), envconf.New()); err != nil || !sized {
		t.Errorf("with the constant: %v, injected by it: %t", err, sized)
	}
}

func TestNodesLifeCycle(t *testing.T) {
	p := e2eframework.New(&clustertest.Provider{}, topology(), t.TempDir())
	if _, err := p.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	})
	states := func(want ...string) {
		t.Helper()
		nodes, err := p.ListNode(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range nodes {
			if n.State != want[i] || n.IP == nil || n.Cluster != "relapse-e2e" {
				t.Errorf("node %+v: want state %s, an address and the cluster", n, want[i])
			}
		}
	}
	worker := &support.Node{Name: "relapse-e2e-worker"}
	states("Ready", "Ready", "Ready")
	if err := p.StopNode(t.Context(), worker); err != nil {
		t.Error(err)
	}
	states("Ready", "Unknown", "Ready")
	if err := p.StartNode(t.Context(), worker); err != nil {
		t.Error(err)
	}
	states("Ready", "Ready", "Ready")

	for _, c := range []struct {
		err  error
		want string
	}{
		{p.StopNode(t.Context(), &support.Node{Name: "elsewhere"}), "stopping node elsewhere: there is none of that name"},
		{p.AddNode(t.Context(), worker), "adding node relapse-e2e-worker: unsupported operation: a cluster's topology is fixed"},
		{p.RemoveNode(t.Context(), worker), "removing node relapse-e2e-worker: unsupported operation: a cluster's topology is fixed"},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", c.err, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	p := e2eframework.New(&clustertest.Provider{}, topology(), t.TempDir())
	p.WithVersion("v1.30.0").WithPath("/usr/bin/kind")
	_, err := p.Create(t.Context(), "--wait")
	want := `creating cluster "relapse-e2e": version "v1.30.0" was asked for: the topology's images are of "v1.34.4"
the program "/usr/bin/kind" was given: relapse runs none
the arguments ["--wait"] are not understood`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	q := e2eframework.New(&clustertest.Provider{}, topology(), t.TempDir())
	if _, err := q.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Destroy(context.Background()) })
	all := e2eframework.Injection{Name: "x", Fault: &touch{}, Expires: time.Minute,
		On: func(cluster.Node) bool { return true }}
	none := all
	none.On = func(cluster.Node) bool { return false }
	for want, i := range map[string]e2eframework.Injection{
		"injecting x: no node was chosen":                                             none,
		`injecting x: nodes of the arms "" and "one" were chosen: a fault is for one`: all,
		"injecting x: an injection needs a name, a fault, nodes and a time limit":     {Name: "x"},
	} {
		if _, err := q.Inject(i)(t.Context(), envconf.New()); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

package e2eframework_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/e2eframework"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// withoutKubelets makes clusters like those of plain processes: no kubelet, no Node objects, and log files on this host.
type withoutKubelets struct {
	cluster.Provider
	logs string
}

func (p withoutKubelets) Create(ctx context.Context, name string, t cluster.Topology) (cluster.Cluster, error) {
	c, err := p.Provider.Create(ctx, name, t)
	return control{c, p.logs}, err
}

type control struct {
	cluster.Cluster
	logs string
}

func (c control) Components(name string) []cluster.Component {
	if name == "kubelet" {
		return nil
	}
	return c.Cluster.Components(name)
}

func (c control) Nodes() []cluster.Node { return []cluster.Node{machine{c.Cluster.Nodes()[0], c.logs}} }

type machine struct {
	cluster.Node
	logs string
}

func (m machine) Abilities() cluster.NodeAbilities {
	return cluster.NodeAbilities{LogFolder: func() string { return m.logs }}
}

// The framework's own functions work on a cluster without kubelets, where no node ever gets Ready.
func TestFrameworkRunsWithoutKubelets(t *testing.T) {
	logs := t.TempDir()
	if err := os.MkdirAll(filepath.Join(logs, "kube-system_a_1", "etcd"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(logs, "kube-system_a_1", "etcd", "0.log"), []byte("started\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := e2eframework.New(withoutKubelets{&clustertest.Provider{}, logs}, topology(), t.TempDir())
	cfg := envconf.New()
	ctx, err := envfuncs.CreateCluster(p, "relapse-control")(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := p.ListNode(ctx)
	if err != nil || len(nodes) != 1 || nodes[0].State != "Unknown" || nodes[0].IP != nil {
		t.Errorf("the nodes are %+v, %v: want one without an object", nodes, err)
	}
	dest := t.TempDir()
	if _, err := envfuncs.ExportClusterLogs("relapse-control", dest)(ctx, cfg); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(filepath.Join(dest, "relapse-control-control-plane", "kube-system_a_1", "etcd", "0.log")); err != nil || string(b) != "started\n" {
		t.Errorf("the log is %q, %v", b, err)
	}
	if _, err := envfuncs.DestroyCluster("relapse-control")(ctx, cfg); err != nil {
		t.Error(err)
	}
}

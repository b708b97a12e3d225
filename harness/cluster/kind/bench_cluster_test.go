//go:build cluster

package kind_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	kindcluster "sigs.k8s.io/kind/pkg/cluster"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/kind"
)

// BenchmarkCreate times kind's own creation of a cluster, and then ours of the same image and topology, and reports the
// ratio:
//
//	go test -tags cluster -run '^$' -bench Create -benchtime 1x ./harness/cluster/kind
func BenchmarkCreate(b *testing.B) {
	image := os.Getenv("RELAPSE_NODE_IMAGE")
	if image == "" {
		b.Fatal("RELAPSE_NODE_IMAGE is not set")
	}
	base, err := os.ReadFile("../../../kind-config.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var bare, ours float64 // seconds for one
	b.Run("bare", func(b *testing.B) {
		defer func() { bare = b.Elapsed().Seconds() / float64(b.N) }()
		const name = "relapse-bench-bare"
		b.Setenv("KIND_EXPERIMENTAL_DOCKER_NETWORK", name)
		p, kubeconfig := kindcluster.NewProvider(kindcluster.ProviderWithDocker()), filepath.Join(b.TempDir(), "kubeconfig")
		for b.Loop() {
			err := p.Create(name, kindcluster.CreateWithRawConfig(base), kindcluster.CreateWithNodeImage(image),
				kindcluster.CreateWithKubeconfigPath(kubeconfig))
			b.StopTimer()
			if err != nil {
				b.Error(err)
			}
			if err := p.Delete(name, kubeconfig); err != nil {
				b.Error(err)
			}
			if out, err := exec.Command("docker", "network", "rm", name).CombinedOutput(); err != nil {
				b.Errorf("removing the network: %v: %s", err, strings.TrimSpace(string(out)))
			}
			b.StartTimer()
		}
	})
	b.Run("relapse", func(b *testing.B) {
		defer func() {
			ours = b.Elapsed().Seconds() / float64(b.N)
			b.ReportMetric(ours/bare, "times-bare-kind")
		}()
		const name = "relapse-bench"
		p, err := kind.New(kind.Options{Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Capabilities(b.Context()); err != nil { // asked for while planning
			b.Fatal(err)
		}
		topo := cluster.Topology{Base: base, Network: name, Nodes: []cluster.NodeSpec{
			{Name: "control-plane", Role: cluster.ControlPlane, Image: image},
			{Name: "worker", Role: cluster.Worker, Image: image},
			{Name: "worker2", Role: cluster.Worker, Image: image},
		}}
		for b.Loop() {
			_, err := p.Create(b.Context(), name, topo)
			b.StopTimer()
			if err != nil {
				b.Error(err)
			}
			if err := p.Delete(b.Context(), name); err != nil {
				b.Error(err)
			}
			b.StartTimer()
		}
	})
}

//go:build cluster

package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/kind"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// etcdLimit is how long a spec's own request waits for etcd.
const etcdLimit = 2 * time.Second

// These specs use a control plane with the etcd seam. They check the seam's faults against the contract of Fault by
// requests that don't rely on the fault's own judgement.
var _ = Describe("A fault between the API server and etcd", Ordered, ContinueOnFailure, func() {
	var (
		dir, name string
		n         cluster.Node
		c         cluster.Cluster
	)

	BeforeAll(func(ctx SpecContext) {
		name, dir = "relapse-e2e-"+draw(), filepath.Join(scratch, "files-"+draw())
		Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
		top := cluster.Topology{Version: smoke.Version, Network: name, Base: smoke.Trials[0].Clusters[0].Topology.Base, Nodes: []cluster.NodeSpec{
			{Name: cluster.ControlPlane, Role: cluster.ControlPlane, Image: image},
		}}
		s, err := kinds.Decode[seam.Seam](kinds.Seam, "etcd", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(seam.Install(&top.Nodes[0], s, goBuild(ctx, s.Fixture(), "./fixtures/"+s.Fixture()))).To(Succeed())
		prov, err := kind.New(kind.Options{Dir: dir, Events: events})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(prov.Delete(ctx, name)).To(Succeed()) }, NodeTimeout(2*time.Minute))
		c, err = prov.Create(ctx, name, top)
		Expect(err).NotTo(HaveOccurred(), "creating the cluster")
		n = c.Nodes()[0]
	}, NodeTimeout(6*time.Minute))

	slow := func(p control.ConnectionProbe) bool {
		return p.Err == "" && control.Fastest(p.Through) >= delay && p.DirectErr == "" && control.Fastest(p.Direct) < delay
	}
	cut := func(p control.ConnectionProbe) bool { return p.Err != "" && len(p.Through) == 0 && p.DirectErr == "" }

	DescribeTable("is injected, seen, and recovered by anyone, or by its own time limit", func(ctx SpecContext, kindOf, spec string, hit func(control.ConnectionProbe) bool) {
		inject := func(c cluster.Cluster, n cluster.Node, expires time.Duration) (fault.Fault, fault.Target) {
			f, err := kinds.Decode[fault.Fault](kinds.Fault, kindOf, []byte(spec))
			Expect(err).NotTo(HaveOccurred())
			return f, fault.Target{Run: name, Name: "conformance", Cluster: c, Nodes: []cluster.Node{n}, Expires: expires, Events: events}
		}
		Expect(etcdProbe(ctx, n)).To(And(Not(Satisfy(hit)), HaveField("Healthy", true)), "before")

		f, t := inject(c, n, time.Minute)
		Expect(f.Inject(ctx, t)).To(Succeed())
		Expect(etcdProbe(ctx, n)).To(Satisfy(hit), "injected: its effect is there when Inject returns")
		for range 2 {
			Expect(f.Recover(ctx, t)).To(Succeed())
			Expect(etcdProbe(ctx, n)).To(And(Not(Satisfy(hit)), HaveField("Healthy", true)), "recovered: its effect is gone when Recover returns")
		}

		Expect(f.Inject(ctx, t)).To(Succeed())
		prov, err := kind.New(kind.Options{Dir: dir}) // all that another process has
		Expect(err).NotTo(HaveOccurred())
		found, err := prov.Open(ctx, name)
		Expect(err).NotTo(HaveOccurred())
		other, there := inject(found, found.Nodes()[0], time.Minute)
		Expect(other.Recover(ctx, there)).To(Succeed())
		Expect(etcdProbe(ctx, n)).NotTo(Satisfy(hit), "recovered by another")

		const limit = 8 * time.Second
		f, t = inject(c, n, limit)
		Expect(f.Inject(ctx, t)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) control.ConnectionProbe { return etcdProbe(ctx, n) }).WithTimeout(limit+20*time.Second).WithPolling(time.Second).
			Should(And(Not(Satisfy(hit)), HaveField("Healthy", true)), "it ends by its time limit, with nobody there to recover it")
	},
		Entry("a latency", SpecTimeout(4*time.Minute), "latency", `{"connection": "etcd", "latency": "400ms"}`, slow),
		Entry("an outage that keeps connections", SpecTimeout(4*time.Minute), "outage", `{"connection": "etcd", "connections": "keep", "atMost": "60s"}`, cut),
		Entry("an outage that resets them", SpecTimeout(4*time.Minute), "outage", `{"connection": "etcd", "connections": "reset", "atMost": "60s"}`, cut),
	)
})

// etcdProbe makes two requests to etcd through the proxy, and two past it.
func etcdProbe(ctx context.Context, n cluster.Node) control.ConnectionProbe {
	GinkgoHelper()
	c, err := seam.Proxy(n, "etcd")
	Expect(err).NotTo(HaveOccurred())
	p, err := c.Probe(ctx, 2, etcdLimit)
	Expect(err).NotTo(HaveOccurred())
	return p
}

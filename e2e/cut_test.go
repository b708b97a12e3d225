//go:build cluster

package e2e_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// generalSpecs check the faults that cut a worker off and that end a process, by commands on the node, which don't rely
// on the faults' own judgement.
func generalSpecs(bench func() *bench) {
	It("cuts a worker off from the control plane, by rules that the worker takes away when nobody does", func(ctx SpecContext) {
		b := bench()
		n, other := b.node("fixed"), b.node("vulnerable")
		server := "https://" + b.env.Cluster().Name() + "-control-plane:6443/livez"
		reaches := func(ctx context.Context, n cluster.Node) bool {
			_, err := n.Abilities().Commands.Exec(ctx, nil, "curl", "--silent", "--insecure", "--max-time", "2", "--output", "/dev/null", server)
			return err == nil
		}
		reached := func(n cluster.Node, why string) {
			GinkgoHelper()
			Eventually(ctx, reaches).WithArguments(n).WithTimeout(time.Minute).WithPolling(time.Second).Should(BeTrue(), why)
		}
		reached(n, "before")

		c := faultCase{kind: "partition", spec: `{"nodes":["control-plane"]}`}
		t := b.target(n, "cut-off", 2*time.Minute)
		Expect(newFault(c).Inject(ctx, t)).To(Succeed())
		Expect(reaches(ctx, n)).To(BeFalse(), "it is cut off when Inject returns")
		reached(other, "the other node is not the target")
		for range 2 {
			Expect(newFault(c).Recover(ctx, t)).To(Succeed()) // a new fault, which shares no memory with the one that injected
			reached(n, "it is not cut off any more when Recover returns")
		}

		const limit = 10 * time.Second
		injected := time.Now()
		Expect(newFault(c).Inject(ctx, b.target(n, "cut-off", limit))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) bool { return reaches(ctx, n) }).WithTimeout(limit + time.Minute).WithPolling(time.Second).Should(BeTrue())
		Expect(time.Since(injected)).To(BeNumerically(">=", limit), "its rules were there for as long as they were to be")
		Expect(b.env.WaitReady(ctx, readyTime)).To(Succeed())
	}, SpecTimeout(12*time.Minute))

	DescribeTable("Ends a component's process and waits until there is another", func(ctx SpecContext, action string) {
		b := bench()
		n := b.node("fixed")
		pid := func(n cluster.Node) string { return exec(ctx, n, "pidof", "kubelet") }
		was, others := pid(n), pid(b.node("vulnerable"))
		Expect(was).NotTo(BeEmpty())
		c := faultCase{kind: "process", spec: `{"action":"` + action + `","component":"kubelet"}`}
		t := b.target(n, "ended", 5*time.Minute)
		Expect(newFault(c).Inject(ctx, t)).To(Succeed())
		for range 2 {
			Expect(newFault(c).Recover(ctx, t)).To(Succeed())
			is := pid(n)
			Expect(is).NotTo(BeEmpty())
			Expect(is).NotTo(Equal(was), "another process is in its place")
		}
		Expect(pid(b.node("vulnerable"))).To(Equal(others), "the other node is not the target")
		Expect(b.env.WaitReady(ctx, readyTime)).To(Succeed())
	}, Entry("kill", SpecTimeout(12*time.Minute), "kill"), Entry("restart", SpecTimeout(12*time.Minute), "restart"))
}

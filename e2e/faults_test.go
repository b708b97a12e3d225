//go:build cluster

package e2e_test

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/kind"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// delay is far longer than a listing of a real runtime takes.
const delay = 300 * time.Millisecond

// faultCase is one fault and how its effect shows in the spec's own CRI calls, which don't rely on the fault's
// judgement.
type faultCase struct {
	kind, spec, control string // control is the interposer's name for the fault
	hit                 func(control.Probe) bool
}

var faultCases = []faultCase{
	{"criLatency", `{"latency": "300ms"}`, control.FaultLatency, func(p control.Probe) bool {
		return slices.Min(p.Seconds["ListContainers"]) >= delay.Seconds() && slices.Min(p.Seconds["Version"]) < delay.Seconds()
	}},
	{"containerFlood", `{"pods": 3, "containersPerPod": 2, "state": "exited"}`, control.FaultFlood, func(p control.Probe) bool {
		return p.ReportedPods == 3 && p.ReportedContainers == 6 && p.RealPods > 0
	}},
}

// These specs have a separate cluster, so that they can run at the same time as the specs that judge trials.
var _ = Describe("A worker's faults and seam", Ordered, ContinueOnFailure, SpecPriority(1), func() {
	var b *bench
	BeforeAll(func(ctx SpecContext) { b = newBench(ctx) }, benchTime)

	faultSpecs(func() *bench { return b })
	csiNodeSpecs(func() *bench { return b })
	generalSpecs(func() *bench { return b })
	seamSpecs(func() *bench { return b })
})

// faultSpecs check every fault against the contract of Fault, on a real cluster.
func faultSpecs(bench func() *bench) {
	var entries []any
	for _, c := range faultCases {
		entries = append(entries, Entry(c.kind, SpecTimeout(12*time.Minute), c))
	}
	const arm = "fixed"
	DescribeTable("A fault is injected, seen, and recovered by anyone", append([]any{func(ctx SpecContext, c faultCase) {
		b := bench()
		b.settle(ctx, smoke, smoke.Trials[0])
		n := b.node(arm)
		real := running(ctx, n)
		Expect(c.hit(probe(ctx, n))).To(BeFalse(), "before")

		t := b.target(n, "conformance", 5*time.Minute)
		Expect(newFault(c).Inject(ctx, t)).To(Succeed())
		Expect(c.hit(probe(ctx, n))).To(BeTrue(), "injected: its effect is there when Inject returns")
		Expect(c.hit(probe(ctx, b.node("vulnerable")))).To(BeFalse(), "the other node is not the target")
		for range 2 {
			Expect(newFault(c).Recover(ctx, t)).To(Succeed())
			Expect(c.hit(probe(ctx, n))).To(BeFalse(), "recovered: its effect is gone when Recover returns")
		}

		// Another process has a new provider, cluster and fault, which share no memory with those that injected.
		Expect(newFault(c).Inject(ctx, t)).To(Succeed())
		Expect(c.hit(probe(ctx, n))).To(BeTrue(), "injected again")
		prov, err := kind.New(kind.Options{Dir: b.files})
		Expect(err).NotTo(HaveOccurred())
		found, err := prov.Open(ctx, b.name)
		Expect(err).NotTo(HaveOccurred())
		i := slices.IndexFunc(found.Nodes(), func(o cluster.Node) bool { return o.Name() == n.Name() })
		Expect(i).To(BeNumerically(">=", 0))
		other := t
		other.Cluster, other.Nodes, other.Events = found, []cluster.Node{found.Nodes()[i]}, nil
		Expect(newFault(c).Recover(ctx, other)).To(Succeed())
		Expect(c.hit(probe(ctx, n))).To(BeFalse(), "recovered by another")

		nothingArmed(ctx, n)
		Expect(running(ctx, n)).To(Equal(real), "what really runs was not touched")
		Expect(b.env.WaitReady(ctx, readyTime)).To(Succeed())
	}}, entries...)...)

	DescribeTable("A fault ends by its own time limit, with nobody there to recover it", append([]any{func(ctx SpecContext, c faultCase) {
		b := bench()
		b.settle(ctx, smoke, smoke.Trials[0])
		n := b.node(arm)
		const limit = 20 * time.Second // on a busy host the effect takes a while to be seen
		Expect(newFault(c).Inject(ctx, b.target(n, "expiring", limit))).To(Succeed())
		Expect(c.hit(probe(ctx, n))).To(BeTrue())
		Eventually(ctx, func(ctx context.Context) bool { return c.hit(probe(ctx, n)) }).WithTimeout(limit + time.Minute).WithPolling(time.Second).Should(BeFalse())
		r, ok := counts(ctx, n).Find(c.control, "expiring")
		Expect(ok).To(BeTrue())
		Expect(r.Expired).To(BeTrue(), "it ended by its time limit: %+v", r)
		Expect(*r.EndedAt).To(BeTemporally("~", r.ExpiresAt, 10*time.Second))
		Expect(r.ExpiresAt.Sub(r.ArmedAt)).To(Equal(limit))
		nothingArmed(ctx, n)
	}}, entries...)...)
}

func newFault(c faultCase) fault.Fault {
	GinkgoHelper()
	f, err := kinds.Decode[fault.Fault](kinds.Fault, c.kind, []byte(c.spec))
	Expect(err).NotTo(HaveOccurred())
	return f
}

// target returns the target of a fault with that name on one node.
func (b *bench) target(n cluster.Node, name string, expires time.Duration) fault.Target {
	return fault.Target{Run: b.name, Name: name, Arm: n.Arm(), Cluster: b.env.Cluster(), Nodes: []cluster.Node{n}, Expires: expires, Events: events}
}

// probe makes one set of CRI calls as kubelet makes them, through kubelet's socket.
func probe(ctx context.Context, n cluster.Node) control.Probe {
	GinkgoHelper()
	c, err := seams.Interposer(n)
	Expect(err).NotTo(HaveOccurred())
	p, err := c.Probe(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(p.Seconds["ListContainers"]).NotTo(BeEmpty())
	Expect(p.Seconds["Version"]).NotTo(BeEmpty())
	return p
}

// counts returns the totals of what the interposer of a node did so far.
func counts(ctx context.Context, n cluster.Node) control.Counts {
	GinkgoHelper()
	c, err := seams.Interposer(n)
	Expect(err).NotTo(HaveOccurred())
	t, err := c.Totals(ctx)
	Expect(err).NotTo(HaveOccurred())
	return t
}

// nothingArmed asserts that every arming has ended and that no reported pod or container is listed.
func nothingArmed(ctx context.Context, n cluster.Node) {
	GinkgoHelper()
	all := counts(ctx, n).Arms
	Expect(all).NotTo(BeEmpty())
	for _, r := range all {
		Expect(r.Armed()).To(BeFalse(), "%s of %s is still armed", r.ID, r.Owner)
	}
	p := probe(ctx, n)
	Expect([]int{p.ReportedPods, p.ReportedContainers}).To(Equal([]int{0, 0}))
}

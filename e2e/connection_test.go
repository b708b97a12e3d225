//go:build cluster

package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/kind"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// answerLimit is how long a spec's own request waits for an answer over a connection.
const answerLimit = 2 * time.Second

// These specs use a control plane with the seams of two connections, and that of the scheduler's extender. They check the seams' faults against the contract of Fault by
// requests that don't rely on the fault's own judgement.
var _ = Describe("A fault on a connection of the control plane", Ordered, ContinueOnFailure, func() {
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
		for _, of := range []string{"etcd", "scheduler-apiserver", seams.SchedulerExtender} {
			s, err := kinds.Decode[seam.Seam](kinds.Seam, of, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(seam.Install(&top.Nodes[0], s, goBuild(ctx, s.Fixture(), "./fixtures/"+s.Fixture()))).To(Succeed())
		}
		prov, err := kind.New(kind.Options{Dir: dir, Events: events})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(prov.Delete(ctx, name)).To(Succeed()) }, NodeTimeout(6*time.Minute))
		c, err = prov.Create(ctx, name, top)
		Expect(err).NotTo(HaveOccurred(), "creating the cluster")
		n = c.Nodes()[0]
	}, NodeTimeout(20*time.Minute))

	slow := func(p control.ConnectionProbe) bool {
		return p.Err == "" && control.Fastest(p.Through) >= delay && p.DirectErr == "" && control.Fastest(p.Direct) < delay
	}
	cut := func(p control.ConnectionProbe) bool { return p.Err != "" && len(p.Through) == 0 && p.DirectErr == "" }

	DescribeTable("is injected, seen, and recovered by anyone, or by its own time limit", func(ctx SpecContext, kindOf, of, spec string, hit func(control.ConnectionProbe) bool) {
		inject := func(c cluster.Cluster, n cluster.Node, expires time.Duration) (fault.Fault, fault.Target) {
			f, err := kinds.Decode[fault.Fault](kinds.Fault, kindOf, []byte(`{"connection": "`+of+`", `+spec+`}`))
			Expect(err).NotTo(HaveOccurred())
			return f, fault.Target{Run: name, Name: "conformance", Cluster: c, Nodes: []cluster.Node{n}, Expires: expires, Events: events}
		}
		well := func(why string) {
			GinkgoHelper()
			var p control.ConnectionProbe
			for range 3 { // on a busy host one probe may be late by itself; under the fault all are
				if p = probed(ctx, n, of); !hit(p) && p.Healthy {
					break
				}
			}
			Expect(p).To(And(Not(Satisfy(hit)), HaveField("Healthy", true)), why)
		}
		well("before")

		f, t := inject(c, n, time.Minute)
		Expect(f.Inject(ctx, t)).To(Succeed())
		Expect(probed(ctx, n, of)).To(Satisfy(hit), "injected: its effect is there when Inject returns")
		for range 2 {
			Expect(f.Recover(ctx, t)).To(Succeed())
			well("recovered: its effect is gone when Recover returns")
		}

		Expect(f.Inject(ctx, t)).To(Succeed())
		prov, err := kind.New(kind.Options{Dir: dir}) // all that another process has
		Expect(err).NotTo(HaveOccurred())
		found, err := prov.Open(ctx, name)
		Expect(err).NotTo(HaveOccurred())
		other, there := inject(found, found.Nodes()[0], time.Minute)
		Expect(other.Recover(ctx, there)).To(Succeed())
		well("recovered by another")

		const limit = 20 * time.Second
		f, t = inject(c, n, limit)
		Expect(f.Inject(ctx, t)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) control.ConnectionProbe { return probed(ctx, n, of) }).WithTimeout(limit+time.Minute).WithPolling(time.Second).
			Should(And(Not(Satisfy(hit)), HaveField("Healthy", true)), "it ends by its time limit, with nobody there to recover it")
	},
		Entry("a latency before etcd", SpecTimeout(12*time.Minute), "latency", "etcd", `"latency": "400ms"`, slow),
		Entry("an outage of etcd that keeps connections", SpecTimeout(12*time.Minute), "outage", "etcd", `"connections": "keep", "atMost": "60s"`, cut),
		Entry("an outage of etcd that resets them", SpecTimeout(12*time.Minute), "outage", "etcd", `"connections": "reset", "atMost": "60s"`, cut),
		Entry("a latency between the scheduler and the API server", SpecTimeout(12*time.Minute), "latency", "scheduler-apiserver", `"latency": "400ms"`, slow),
		Entry("a narrow way from the API server to the scheduler", SpecTimeout(15*time.Minute), "bandwidth", "scheduler-apiserver", `"rate": "1k"`, cut), // a handshake takes longer than the limit
		Entry("an outage of the API server for the scheduler", SpecTimeout(12*time.Minute), "outage", "scheduler-apiserver", `"connections": "reset", "atMost": "60s"`, cut),
	)

	It("makes the scheduler's extender answer by rules, and nobody else's", func(ctx SpecContext) {
		asked, err := seams.ExtenderOf(n)
		Expect(err).NotTo(HaveOccurred())
		client, err := kubernetes.NewForConfig(c.RESTConfig())
		Expect(err).NotTo(HaveOccurred())
		f, err := kinds.Decode[fault.Fault](kinds.Fault, "webhook", []byte(`{"extender": {"verbs": ["filter"]}, "rules": `+
			`[{"when": "request.Pod.metadata.name == 'refused'", "answer": {"NodeNames": []}}]}`))
		Expect(err).NotTo(HaveOccurred())
		t := fault.Target{Run: name, Name: "picky", Cluster: c, Nodes: []cluster.Node{n}, Expires: 3 * time.Minute, Events: events}
		Expect(f.Inject(ctx, t)).To(Succeed())
		before, err := asked.State(ctx)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, scheduled).WithArguments(client, "refused").WithTimeout(3 * time.Minute).Should(Equal(corev1.ConditionFalse))
		Eventually(ctx, scheduled).WithArguments(client, "taken").WithTimeout(3 * time.Minute).Should(Equal(corev1.ConditionTrue))
		after, err := asked.State(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(after.Forwarded[control.ExtenderFilter]).To(BeNumerically(">=", before.Forwarded[control.ExtenderFilter]+2), "the scheduler asked about both pods")
		Expect(f.Recover(ctx, t)).To(Succeed())
		Eventually(ctx, scheduled).WithArguments(client, "later").WithTimeout(3 * time.Minute).Should(Equal(corev1.ConditionTrue))
	}, SpecTimeout(15*time.Minute))

	It("stands in the way of the scheduler", func(ctx SpecContext) {
		// Port 16442 of 127.0.0.1, in an established connection.
		Eventually(ctx, func(ctx context.Context) string { return exec(ctx, n, "cat", "/proc/net/tcp") }).WithTimeout(3 * time.Minute).
			Should(MatchRegexp(`(?m) 0100007F:[0-9A-F]{4} 0100007F:403A 01 `))
	}, SpecTimeout(6*time.Minute))
})

// scheduled creates a pod unless it is there, and returns whether the scheduler found a node for it. The pod tolerates the taint of the
// only node, which is a control plane.
func scheduled(ctx context.Context, client kubernetes.Interface, name string) (corev1.ConditionStatus, error) {
	pods := client.CoreV1().Pods("default")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		Containers:  []corev1.Container{{Name: "c", Image: "none.invalid/none"}},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	got, err := pods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	for _, condition := range got.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition.Status, nil
		}
	}
	return corev1.ConditionUnknown, nil
}

// probed makes two requests to a connection's server through the proxy, and two past it.
func probed(ctx context.Context, n cluster.Node, of string) control.ConnectionProbe {
	GinkgoHelper()
	c, err := seams.Proxy(n, of)
	Expect(err).NotTo(HaveOccurred())
	p, err := c.Probe(ctx, 2, answerLimit)
	Expect(err).NotTo(HaveOccurred())
	GinkgoWriter.Printf("probe of %s: %+v\n", of, p)
	return p
}

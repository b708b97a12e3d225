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

// These specs use a control plane, and a worker whose kubelet joins through its proxy, with the seams of several connections, and that of the scheduler's extender. They check the
// seams' faults against the contract of Fault by requests that don't rely on the fault's own judgement.
var _ = Describe("A fault on a connection", Ordered, ContinueOnFailure, func() {
	var (
		dir, name string
		n         cluster.Node // the control plane
		c         cluster.Cluster
	)

	BeforeAll(func(ctx SpecContext) {
		name, dir = "relapse-e2e-"+draw(), filepath.Join(scratch, "files-"+draw())
		Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
		top := cluster.Topology{Version: smoke.Version, Network: name, Base: smoke.Trials[0].Clusters[0].Topology.Base, Nodes: []cluster.NodeSpec{
			{Name: cluster.ControlPlane, Role: cluster.ControlPlane, Image: image, Seams: map[string]string{}},
			{Name: cluster.Worker, Role: cluster.Worker, Image: image, Seams: map[string]string{}},
		}}
		built := map[string]string{}
		for _, of := range []string{"etcd", "scheduler-apiserver", "kubelet-apiserver", "kube-proxy-apiserver", seams.Webhooks, seams.SchedulerExtender} {
			s, err := kinds.Decode[seam.Seam](kinds.Seam, of, nil)
			Expect(err).NotTo(HaveOccurred())
			if built[s.Fixture()] == "" {
				built[s.Fixture()] = goBuild(ctx, s.Fixture(), "./fixtures/"+s.Fixture())
			}
			for _, n := range top.Nodes {
				if seam.On(s, n.Role) {
					n.Seams[of] = built[s.Fixture()]
				}
			}
		}
		prov, err := kind.New(kind.Options{Dir: dir, Events: events})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(prov.Delete(ctx, name)).To(Succeed()) }, NodeTimeout(6*time.Minute))
		c, err = prov.Create(ctx, name, top)
		Expect(err).NotTo(HaveOccurred(), "creating the cluster")
		n = c.Nodes()[0]
	}, NodeTimeout(20*time.Minute))

	// decoded makes a fault and its target.
	decoded := func(c cluster.Cluster, n cluster.Node, kindOf, as, spec string, expires time.Duration) (fault.Fault, fault.Target) {
		GinkgoHelper()
		f, err := kinds.Decode[fault.Fault](kinds.Fault, kindOf, []byte(spec))
		Expect(err).NotTo(HaveOccurred())
		return f, fault.Target{Run: name, Name: as, Cluster: c, Nodes: []cluster.Node{n}, Expires: expires, Events: events, Seams: []string{seams.Webhooks}}
	}
	// on returns the node of a cluster on which a connection is tried: the worker if each node of an arm has a proxy.
	on := func(c cluster.Cluster, of string) cluster.Node {
		if control.Connections[of].Nodes {
			return c.Nodes()[1]
		}
		return c.Nodes()[0]
	}
	// reviewed has the API server ask a webhook about each ConfigMap of the namespace default until the spec ends.
	reviewed := func(ctx SpecContext) {
		GinkgoHelper()
		f, t := decoded(c, n, "webhook", "review", `{"resources": ["configmaps"], "operations": ["CREATE"], "namespaces": ["default"], `+
			`"failurePolicy": "Fail", "timeoutSeconds": 5, "rules": [{"answer": {"allowed": true}}]}`, 5*time.Minute)
		Expect(f.Inject(ctx, t)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(f.Recover(ctx, t)).To(Succeed()) }, NodeTimeout(time.Minute))
	}

	slow := func(p control.ConnectionProbe) bool {
		return p.Err == "" && control.Fastest(p.Through) >= delay && p.DirectErr == "" && control.Fastest(p.Direct) < delay
	}
	cut := func(p control.ConnectionProbe) bool { return p.Err != "" && len(p.Through) == 0 && p.DirectErr == "" }

	DescribeTable("is injected, seen, and recovered by anyone, or by its own time limit", func(ctx SpecContext, kindOf, of, spec string, hit func(control.ConnectionProbe) bool) {
		inject := func(c cluster.Cluster, n cluster.Node, expires time.Duration) (fault.Fault, fault.Target) {
			return decoded(c, n, kindOf, "conformance", `{"connection": "`+of+`", `+spec+`}`, expires)
		}
		if of == seams.Webhooks {
			reviewed(ctx)
		}
		n := on(c, of)
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
		other, there := inject(found, on(found, of), time.Minute)
		Expect(other.Recover(ctx, there)).To(Succeed())
		well("recovered by another")

		const limit = 10 * time.Second
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
		nightlyOn("kubelet-apiserver", "latency", `"latency": "400ms"`, slow), nightlyOn("kubelet-apiserver", "outage", `"connections": "keep", "atMost": "60s"`, cut),
		nightlyOn("kubelet-apiserver", "bandwidth", `"rate": "1k"`, cut),
		nightlyOn("kube-proxy-apiserver", "latency", `"latency": "400ms"`, slow), nightlyOn("kube-proxy-apiserver", "outage", `"connections": "reset", "atMost": "60s"`, cut),
		nightlyOn("kube-proxy-apiserver", "bandwidth", `"rate": "1k"`, cut),
		nightlyOn(seams.Webhooks, "latency", `"latency": "400ms"`, slow), nightlyOn(seams.Webhooks, "outage", `"connections": "reset", "atMost": "60s"`, cut),
	)

	DescribeTable("is seen and lifted on the way of each node's component to the API server", func(ctx SpecContext, of, port string) {
		n := on(c, of)
		// The port of 127.0.0.1, in an established connection.
		established := func(ctx context.Context) string { return exec(ctx, n, "cat", "/proc/net/tcp") }
		Eventually(ctx, established).WithTimeout(3*time.Minute).Should(MatchRegexp(`(?m) 0100007F:[0-9A-F]{4} 0100007F:`+port+` 01 `), "the client is led through the proxy")
		for kindOf, spec := range map[string]string{"latency": `"latency": "400ms"`, "outage": `"connections": "reset", "atMost": "60s"`, "bandwidth": `"rate": "20k"`} {
			f, t := decoded(c, n, kindOf, "node", `{"connection": "`+of+`", `+spec+`}`, time.Minute)
			hit, bytes := map[string]func(control.ConnectionProbe) bool{"latency": slow, "outage": cut, "bandwidth": slow}[kindOf], 0
			if kindOf == "bandwidth" {
				bytes = 20_000 // take 1 s
			}
			Expect(f.Inject(ctx, t)).To(Succeed(), kindOf)
			Expect(probedBytes(ctx, n, of, bytes)).To(Satisfy(hit), kindOf)
			Expect(f.Recover(ctx, t)).To(Succeed(), kindOf)
			Eventually(ctx, func(ctx context.Context) control.ConnectionProbe { return probedBytes(ctx, n, of, bytes) }).WithTimeout(time.Minute). // on a busy host one probe may be late by itself
																				Should(And(Not(Satisfy(hit)), HaveField("Healthy", true)), kindOf)
		}
		Eventually(ctx, established).WithTimeout(3*time.Minute).Should(MatchRegexp(`(?m) 0100007F:[0-9A-F]{4} 0100007F:`+port+` 01 `), "it comes back through the proxy")
	},
		Entry("kubelet", SpecTimeout(9*time.Minute), "kubelet-apiserver", "403C"),
		Entry("kube-proxy", SpecTimeout(9*time.Minute), "kube-proxy-apiserver", "403D"),
	)

	It("is felt by the API server on its way to a webhook", func(ctx SpecContext) {
		client, err := kubernetes.NewForConfig(c.RESTConfig())
		Expect(err).NotTo(HaveOccurred())
		created := func() (time.Duration, error) {
			began := time.Now()
			_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "led-"}}, metav1.CreateOptions{})
			return time.Since(began), err
		}
		reviewed(ctx)
		const late = 1500 * time.Millisecond
		for kindOf, spec := range map[string]string{"latency": `"latency": "1500ms"`, "outage": `"connections": "reset", "atMost": "60s"`, "bandwidth": `"rate": "50k"`} {
			f, t := decoded(c, n, kindOf, "way", `{"connection": "`+seams.Webhooks+`", `+spec+`}`, time.Minute)
			Expect(f.Inject(ctx, t)).To(Succeed(), kindOf)
			took, err := created()
			switch kindOf {
			case "outage":
				Expect(err).To(MatchError(ContainSubstring("failed calling webhook")))
			case "latency":
				Expect(err).NotTo(HaveOccurred(), kindOf)
				Expect(took).To(BeNumerically(">=", late), kindOf)
			case "bandwidth":
				Expect(err).NotTo(HaveOccurred(), kindOf)
			}
			Expect(f.Recover(ctx, t)).To(Succeed(), kindOf)
			Eventually(ctx, created).WithTimeout(30*time.Second).Should(BeNumerically("<", late), kindOf)
		}
	}, SpecTimeout(9*time.Minute))

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

// nightlyOn is the entry of a fault on a connection that the short specs try without its time limit.
func nightlyOn(of, kindOf, spec string, hit func(control.ConnectionProbe) bool) TableEntry {
	return Entry("a fault "+kindOf+" on "+of, Label("nightly"), SpecTimeout(12*time.Minute), kindOf, of, spec, hit)
}

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
	return probedBytes(ctx, n, of, 0)
}

// probedBytes is like probed, but with bytes above 0 it reads that many once, both ways.
func probedBytes(ctx context.Context, n cluster.Node, of string, bytes int) control.ConnectionProbe {
	GinkgoHelper()
	c, err := seams.Proxy(n, of)
	Expect(err).NotTo(HaveOccurred())
	s, err := c.State(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, w := range s.Ways {
		if w.Armed() {
			c = c.On(w.Name())
		}
	}
	var p control.ConnectionProbe
	if bytes > 0 {
		p, err = c.ProbeBytes(ctx, bytes, 2*answerLimit)
	} else {
		p, err = c.Probe(ctx, 2, answerLimit)
	}
	Expect(err).NotTo(HaveOccurred())
	GinkgoWriter.Printf("probe of %s: %+v\n", of, p)
	return p
}

//go:build cluster

package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/kind"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/trial"
	"github.com/kube-relapse/relapse/harness/trial/environment"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// readyTime is how long nodes and pods may take to get Ready. It takes less than one minute if the host does nothing else.
const readyTime = 5 * time.Minute

// benchTime is the time limit for a cluster and its pods to be Ready.
const benchTime = NodeTimeout(15 * time.Minute)

// bench is one cluster with the smoke pair's arms on its workers, on which several trials run in turn.
type bench struct {
	name  string
	files string // the provider's private directory
	env   *environment.Environment
}

// newBench creates the cluster. The cluster is removed when the container of specs is done.
func newBench(ctx SpecContext) *bench {
	GinkgoHelper()
	b := &bench{name: "relapse-e2e-" + draw(), files: filepath.Join(scratch, "files-"+draw())}
	Expect(os.MkdirAll(b.files, 0o700)).To(Succeed())
	prov, err := kind.New(kind.Options{Dir: b.files, Events: events})
	Expect(err).NotTo(HaveOccurred())
	b.env, err = environment.Create(ctx, environment.Options{Run: b.name, Plan: smoke, Trial: smoke.Trials[0], Artifacts: made, Provider: prov, Events: events})
	Expect(err).NotTo(HaveOccurred(), "creating the cluster")
	DeferCleanup(func(ctx SpecContext) {
		Expect(b.env.Delete(ctx)).To(Succeed())
		Expect(os.ReadDir(b.files)).To(BeEmpty(), "the provider's files are gone with the cluster")
	}, NodeTimeout(6*time.Minute))
	Expect(b.env.WaitReady(ctx, readyTime)).To(Succeed())
	b.podsReady(ctx)
	return b
}

// podsReady waits until the pods of each worker exist and are Ready. From then on they no longer change unless a spec
// changes them.
func (b *bench) podsReady(ctx context.Context) {
	GinkgoHelper()
	client, err := kubernetes.NewForConfig(b.env.Cluster().RESTConfig())
	Expect(err).NotTo(HaveOccurred())
	for _, arm := range []string{"vulnerable", "fixed"} {
		here := metav1.ListOptions{FieldSelector: "spec.nodeName=" + b.node(arm).Name()}
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, here)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods.Items).NotTo(BeEmpty())
			for _, p := range pods.Items {
				g.Expect(p.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))),
					"%s is not Ready: %+v", p.Name, p.Status)
			}
		}).WithTimeout(readyTime).WithPolling(time.Second).Should(Succeed())
	}
}

// draw returns eight random hex digits.
func draw() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails: see crypto/rand
	return hex.EncodeToString(b)
}

// settle installs each arm's kubelet on its worker again and waits until all nodes are Ready.
func (b *bench) settle(ctx context.Context, p *plan.Plan, t plan.Trial) {
	GinkgoHelper()
	Expect(b.env.Reinstall(ctx, p, t)).To(Succeed())
	Expect(b.env.WaitReady(ctx, readyTime)).To(Succeed())
}

// trial runs one trial of the smoke pair with the given options, and judges it. The run's directory has the layout of
// `relapse run`.
func (b *bench) trial(ctx context.Context, o plan.Options) (dir string, v judge.Verdict) {
	GinkgoHelper()
	p := newPlan(o)
	t := p.Trials[0]
	b.settle(ctx, p, t)
	dir = filepath.Join(scratch, "run-"+draw())
	run, err := trial.CreateRunDir(dir, "relapse-"+filepath.Base(dir), p)
	Expect(err).NotTo(HaveOccurred())
	Expect(trial.Run(ctx, b.env, run, events, nil)).To(Succeed())
	Expect(run.Complete()).To(Succeed())
	v, err = judge.Run(dir)
	Expect(err).NotTo(HaveOccurred())
	show(v)
	return dir, v
}

// trialUntil runs a trial as trial does, again if the host is too busy for what is wanted of its verdict. Then the kubelets
// are restarted first: one that the incident has stopped may not have been restarted by the trial.
func (b *bench) trialUntil(ctx context.Context, wanted func(judge.Verdict) bool, o plan.Options) (dir string, v judge.Verdict) {
	GinkgoHelper()
	return untilJudged(wanted, func(try int) (string, judge.Verdict) {
		if try > 1 {
			b.restart(ctx)
		}
		return b.trial(ctx, o)
	})
}

// restart restarts both arms' kubelets.
func (b *bench) restart(ctx context.Context) {
	GinkgoHelper()
	for _, arm := range []string{"vulnerable", "fixed"} {
		Expect(b.kubelet(arm).Abilities().Restart(ctx)).To(Succeed(), "restarting the kubelet of %s", arm)
	}
}

// is returns whether a verdict is that one.
func is(want verdict.Verdict) func(judge.Verdict) bool {
	return func(v judge.Verdict) bool { return v.Verdict == want }
}

// show adds a verdict's text to the report, which prints it if the spec fails.
func show(v judge.Verdict) {
	GinkgoHelper()
	var text bytes.Buffer
	Expect(report.Text(&text, v, false)).To(Succeed())
	AddReportEntry("verdict", ReportEntryVisibilityFailureOrVerbose, text.String()+v.LastLine())
}

// armOf returns an arm of a verdict by name.
func armOf(v judge.Verdict, name string) verdict.Arm {
	GinkgoHelper()
	i := slices.IndexFunc(v.Arms, func(a verdict.Arm) bool { return a.Name == name })
	Expect(i).To(BeNumerically(">=", 0), "the verdict has no arm %s", name)
	return v.Arms[i]
}

// concluded asserts that a verdict and its exit code are as wanted.
func concluded(v judge.Verdict, want verdict.Verdict, exit int) {
	GinkgoHelper()
	Expect(fmt.Sprintf("%s (exit %d)", v.Verdict, v.ExitCode)).To(Equal(fmt.Sprintf("%s (exit %d)", want, exit)), "%s", v.Sentence)
}

// node returns the node of an arm.
func (b *bench) node(arm string) cluster.Node {
	GinkgoHelper()
	for _, n := range b.env.Cluster().Nodes() {
		if n.Arm() == arm {
			return n
		}
	}
	Fail("the cluster has no node for the arm " + arm)
	return nil
}

// exec runs a command in a node.
func exec(ctx context.Context, n cluster.Node, argv ...string) string {
	GinkgoHelper()
	out, err := n.Abilities().Commands.Exec(ctx, nil, argv...)
	Expect(err).NotTo(HaveOccurred())
	return string(out)
}

// kubelet returns the kubelet of an arm.
func (b *bench) kubelet(arm string) cluster.Component {
	GinkgoHelper()
	for _, c := range b.env.Cluster().Components("kubelet") {
		if c.Node().Arm() == arm {
			return c
		}
	}
	Fail("the cluster has no kubelet for the arm " + arm)
	return nil
}

// running lists the containers and sandboxes that really run on a node, with their processes. It asks containerd,
// past the seam.
func running(ctx context.Context, n cluster.Node) []string {
	GinkgoHelper()
	var out []string
	for line := range strings.Lines(exec(ctx, n, "ctr", "--namespace", "k8s.io", "tasks", "list")) {
		if f := strings.Fields(line); len(f) == 3 && f[2] == "RUNNING" {
			out = append(out, f[0]+" "+f[1])
		}
	}
	slices.Sort(out)
	return out
}

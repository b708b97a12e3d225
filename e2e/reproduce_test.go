//go:build cluster

package e2e_test

import (
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// judged runs a scenario through the command line and judges its evidence. The command must report the same verdict.
func judged(ctx SpecContext, scenario string, args ...string) (dir string, v judge.Verdict) {
	GinkgoHelper()
	s := newSite(ctx)
	session := s.start(append([]string{"run", scenario, "--runs", s.runs, "--progress", "plain"}, args...)...)
	Eventually(ctx, session).WithTimeout(40 * time.Minute).Should(gexec.Exit())
	dir, err := filepath.EvalSymlinks(filepath.Join(s.runs, "latest"))
	Expect(err).NotTo(HaveOccurred(), "%s", session.Err.Contents())
	v, err = judge.Run(dir)
	Expect(err).NotTo(HaveOccurred())
	show(v)
	Expect(session.ExitCode()).To(Equal(v.ExitCode))
	Expect(lastLine(string(session.Out.Contents()))).To(Equal(v.LastLine()))
	return dir, v
}

// reproduce runs and judges a scenario as judged does, again if the host is too busy, and asserts the verdict and the exit
// code.
func reproduce(ctx SpecContext, scenario string, want verdict.Verdict, exit int, args ...string) (dir string, v judge.Verdict) {
	GinkgoHelper()
	dir, v = untilJudged(is(want), func(int) (string, judge.Verdict) { return judged(ctx, scenario, args...) })
	concluded(v, want, exit)
	return dir, v
}

// The three oldest scenarios have separate specs.
var _ = DescribeTable("A scenario proves its own oracle", Label("nightly"), func(ctx SpecContext, scenario, provider string) {
	By("validating the fix, and never without one of its captures")
	dir, _ := reproduce(ctx, scenario, verdict.Validated, verdict.ExitOK, "--provider", provider)
	sealed, err := bundle.Open(filepath.Join(dir, "trials", "001"))
	Expect(err).NotTo(HaveOccurred())
	kinds := map[bundle.Kind]bool{}
	for _, a := range sealed.Artifacts(bundle.Query{}) {
		if a.Path == "" || kinds[a.Kind] {
			continue
		}
		kinds[a.Kind] = true
		without := clone(dir)
		remove(without, a.Kind)
		v, err := judge.Run(without)
		Expect(err).NotTo(HaveOccurred())
		Expect(v.ExitCode).To(Equal(verdict.ExitInconclusive), "without %s: %s", a.Kind, v.Sentence)
	}

	for what, args := range map[string][]string{
		"finding nothing where nothing brought it about": {"--no-faults"},
		"finding nothing where both arms have the fix":   {"--swap", "vulnerable=fixed"},
	} {
		By(what)
		_, v := judged(ctx, scenario, append(args, "--provider", provider)...)
		Expect(v.Verdict).NotTo(Equal(verdict.Validated), v.Sentence)
		for _, a := range v.Arms {
			Expect(a.Outcome).To(BeElementOf(verdict.NotReproduced, verdict.Inconclusive), "%s: %s", a.Name, a.Reason)
		}
	}
},
	Entry("listener-busy-wait", SpecTimeout(time.Hour), "listener-busy-wait", "processes"),
	Entry("scheduler-nil-pointer", SpecTimeout(time.Hour), "scheduler-nil-pointer", "processes"),
	Entry("service-without-families", SpecTimeout(time.Hour), "service-without-families", "processes"),
	Entry("policy-type-check-crash", SpecTimeout(time.Hour), "policy-type-check-crash", "processes"),
	Entry("no-node-for-affinity", SpecTimeout(time.Hour), "no-node-for-affinity", "processes"),
	Entry("score-plugins-crash", SpecTimeout(time.Hour), "score-plugins-crash", "processes"),
	Entry("rollout-on-upgrade", SpecTimeout(time.Hour), "rollout-on-upgrade", "processes"),
	Entry("watch-loses-delete", SpecTimeout(time.Hour), "watch-loses-delete", "processes"),
	Entry("watch-stream-leak", SpecTimeout(time.Hour), "watch-stream-leak", "processes"),
	Entry("budget-ignored", SpecTimeout(time.Hour), "budget-ignored", "processes"),
	Entry("cluster-ip-leak", SpecTimeout(time.Hour), "cluster-ip-leak", "processes"),
	Entry("job-status-refused", SpecTimeout(time.Hour), "job-status-refused", "processes"),
	Entry("job-finalizer-orphan", SpecTimeout(time.Hour), "job-finalizer-orphan", "processes"),
	Entry("negative-history-limit", SpecTimeout(time.Hour), "negative-history-limit", "processes"),
	Entry("progress-too-early", SpecTimeout(time.Hour), "progress-too-early", "processes"),
	Entry("autoscaler-value-target", SpecTimeout(time.Hour), "autoscaler-value-target", "processes"),
	Entry("pod-never-collected", SpecTimeout(time.Hour), "pod-never-collected", "processes"),
	Entry("pod-recreated-in-vain", SpecTimeout(time.Hour), "pod-recreated-in-vain", "processes"),
	Entry("learner-promoted", SpecTimeout(time.Hour), "learner-promoted", "processes"),
	Entry("certificate-renewal-crash", SpecTimeout(time.Hour), "certificate-renewal-crash", "processes"),
	Entry("concurrent-map-crash", SpecTimeout(time.Hour), "concurrent-map-crash", "processes"),
	Entry("service-workers-stuck", SpecTimeout(time.Hour), "service-workers-stuck", "processes"),
	Entry("kube-proxy-node-addresses", SpecTimeout(time.Hour), "kube-proxy-node-addresses", "kind"),
)

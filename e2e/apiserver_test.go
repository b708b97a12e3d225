//go:build cluster

package e2e_test

import (
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	. "github.com/onsi/gomega/gstruct"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// short makes a trial of apiserver-goroutine-leak take three minutes: calls give up sooner, and goroutines that
// remain count as leaked sooner.
var short = []string{
	"--pair", "modern", "--set", "items=600", "--set", "calls=6", "--set", "failed=3", "--set", "quiet=20s",
	"--set", "args.kube-apiserver.request-timeout=25s",
}

// leak runs apiserver-goroutine-leak through the command line and judges its evidence.
func leak(ctx SpecContext, want verdict.Verdict, exit int, args ...string) (dir string, v judge.Verdict) {
	GinkgoHelper()
	return reproduce(ctx, "apiserver-goroutine-leak", want, exit, args...)
}

// These specs are serial, because a busy host hides whether an API server that is well again needs its CPU.
var _ = Describe("A leak in the API server", Serial, func() {
	DescribeTable("is shown in clusters of their own, by goroutines that stay when etcd is well again", func(ctx SpecContext, provider string) {
		dir, v := leak(ctx, verdict.Validated, verdict.ExitOK, append(short, "--provider", provider)...)
		vulnerable, fixed := armOf(v, "vulnerable"), armOf(v, "fixed")
		Expect(vulnerable.Outcome).To(Equal(verdict.Reproduced), vulnerable.Reason)
		Expect(vulnerable.Decisive).To(ContainSubstring("registry.(*Store).DeleteCollection"))
		Expect(vulnerable.Decisive).To(ContainSubstring("chan send"))
		Expect(fixed.Outcome).To(Equal(verdict.NotReproduced), fixed.Reason)
		Expect(v.Digests["vulnerable"]).NotTo(Equal(v.Digests["fixed"]))
		Expect(v.Modelled).To(ContainElement(ContainSubstring("a proxy delayed its answers")))
		Expect(filepath.Join(dir, "series.svg")).To(BeARegularFile())
		Expect(string(content(filepath.Join(dir, report.ReportFile)))).To(ContainSubstring("(series.svg)"))

		By("giving no verdict over captures that are gone")
		for _, kind := range []bundle.Kind{bundle.Goroutines2, bundle.Logs, bundle.EtcdProbe, bundle.MetricSamples} {
			without := clone(dir)
			Expect(remove(without, kind)).To(BeNumerically(">", 0))
			again, err := judge.Run(without)
			Expect(err).NotTo(HaveOccurred())
			concluded(again, verdict.VerdictInconclusive, verdict.ExitInconclusive)
		}
	},
		Entry("of plain processes", SpecTimeout(45*time.Minute), "processes"),
		Entry("of kind", Label("nightly"), SpecTimeout(45*time.Minute), "kind"),
	)

	DescribeTable("isn't found where nothing brought it about", Label("nightly"),
		func(ctx SpecContext, says string, args ...string) {
			_, v := leak(ctx, verdict.VerdictInconclusive, verdict.ExitInconclusive, append(short, args...)...)
			for _, a := range v.Arms {
				Expect(a.Outcome).To(Equal(verdict.Inconclusive), a.Reason)
				Expect(a.Reason).To(ContainSubstring(says))
				Expect(a.Signature).To(ContainElement(MatchFields(IgnoreExtras, Fields{"Name": HavePrefix("leaked"), "Met": Equal(check.False)})))
			}
		},
		Entry("no fault", SpecTimeout(15*time.Minute), "the exposure is not met, and must be met: etcd-slow", "--no-faults"),
		Entry("an etcd that was not slow", SpecTimeout(15*time.Minute), "the exposure is not met, and must be met: etcd-slow", "--set", "latency=0s"),
		// Current versions list from their watch cache, so a latency of etcd doesn't delay their lists for long.
		Entry("a latency that meets the lists", SpecTimeout(15*time.Minute), "0 calls with a failed delete", "--pair", "genuine", "--set", "calls=20",
			"--set", "items=1000", "--set", "bytes=20Ki", "--set", "faults.slow-etcd.after=null", "--set", "faults.slow-etcd.duration=null",
			"--set", "loads.deletes.after={name: slow-etcd}"),
	)

	It("isn't taken as cured where both arms have the cure", Label("nightly"), func(ctx SpecContext) {
		_, v := leak(ctx, verdict.VerdictNotReproduced, verdict.ExitFailed, append(short, "--swap", "vulnerable=fixed")...)
		Expect(v.Sentence).To(ContainSubstring("are the same binary"))
	}, SpecTimeout(15*time.Minute))

	It("isn't taken as cured where the fault got the API server restarted", Label("nightly"), func(ctx SpecContext) {
		s := newSite(ctx)
		session := s.start("run", "apiserver-goroutine-leak", "--pair", "modern", "--arms", "fixed", "--runs", s.runs, "--progress", "plain",
			"--set", "latency=3s", "--set", "faults.slow-etcd.duration=null", "--set", "phases.fault.atLeast=150s")
		Eventually(ctx, session).WithTimeout(20 * time.Minute).Should(gexec.Exit())
		v, err := judge.Run(filepath.Join(s.runs, "latest"))
		Expect(err).NotTo(HaveOccurred())
		show(v)
		Expect(armOf(v, "fixed").Outcome).NotTo(Equal(verdict.NotReproduced))
		Expect(armOf(v, "fixed").Outcome).NotTo(Equal(verdict.Reproduced))
	}, SpecTimeout(25*time.Minute))
})

//go:build cluster

package e2e_test

import (
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// hasty makes a trial of fleet-status-churn take four minutes: pods leave a lost node sooner, and writes are counted
// for a shorter time. In such a short window one late write of the agent would weigh too much, so the world outside
// must have stood still for 20s before writes are counted.
var hasty = []string{"--set", "tolerationSeconds=10", "--set", "still=20s", "--set", "window=20s", "--set", "watch=30s",
	"--set", "phases.baseline.atLeast=25s", "--set", "phases.recovery.atLeast=30s"}

// These specs are serial: on a small machine with another cluster, what the agent does at rest can't be told. Nothing else
// can use the machine for the five minutes that one takes, so they are for the night.
var _ = Describe("An agent that writes for ever", Serial, Label("nightly"), func() {
	It("is shown by what its writes changed while a node was off", func(ctx SpecContext) {
		dir, v := reproduce(ctx, "fleet-status-churn", verdict.Validated, verdict.ExitOK, hasty...)
		vulnerable, fixed := armOf(v, "vulnerable"), armOf(v, "fixed")
		Expect(vulnerable.Outcome).To(Equal(verdict.Reproduced), vulnerable.Reason)
		Expect(vulnerable.Decisive).To(ContainSubstring("status.conditions[type=Monitored].lastUpdateTime"))
		Expect(fixed.Outcome).To(Equal(verdict.NotReproduced), fixed.Reason)
		Expect(v.Modelled).To(ContainElement(ContainSubstring("the agent is a fixture of ours")))
		Expect(filepath.Join(dir, report.ReportFile)).To(BeARegularFile())

		By("giving no verdict over captures that are gone")
		for _, kind := range []bundle.Kind{bundle.Objects, bundle.MetricSamples, bundle.Leases, bundle.Audit} {
			without := clone(dir)
			Expect(remove(without, kind)).To(BeNumerically(">", 0))
			again, err := judge.Run(without)
			Expect(err).NotTo(HaveOccurred())
			concluded(again, verdict.VerdictInconclusive, verdict.ExitInconclusive)
		}
	}, SpecTimeout(45*time.Minute))

	DescribeTable("isn't found where nothing brought it about",
		func(ctx SpecContext, args ...string) {
			_, v := reproduce(ctx, "fleet-status-churn", verdict.VerdictInconclusive, verdict.ExitInconclusive, append(hasty, args...)...)
			for _, a := range v.Arms {
				Expect(a.Outcome).To(Equal(verdict.Inconclusive), a.Reason)
				Expect(a.Reason).To(ContainSubstring("the exposure is not met"))
				Expect(a.Signature).NotTo(ContainElement(MatchFields(IgnoreExtras, Fields{"Name": Equal("churn"), "Met": Equal(check.True)})))
			}
		},
		Entry("no fault", SpecTimeout(15*time.Minute), "--no-faults"),
		Entry("a node without any of the workload", SpecTimeout(20*time.Minute), "--set", "nodes.idle=1",
			"--set", "faults.power-cut.target.selector.nodes=[worker3]", "--set", "phases.fault.deadline=4m"),
	)

	It("isn't taken as cured where both arms have the cure", func(ctx SpecContext) {
		_, v := reproduce(ctx, "fleet-status-churn", verdict.VerdictNotReproduced, verdict.ExitFailed, append(hasty, "--swap", "vulnerable=fixed")...)
		Expect(v.Sentence).To(ContainSubstring("are the same binary"))
	}, SpecTimeout(15*time.Minute))
})

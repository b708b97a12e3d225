//go:build cluster

package e2e_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// trialTime is the time limit of a spec with one trial of the smoke pair, which takes about two minutes, and on a busy host
// is run three times.
const trialTime = 24 * time.Minute

// judgeTime is the time limit of a spec that only judges.
const judgeTime = SpecTimeout(6 * time.Minute)

// These specs run several trials in turn on one cluster. A failed trial doesn't stop the next, which begins with each
// arm's kubelet installed again and all nodes Ready. These specs take longest, so they start first.
var _ = Describe("The oracle, with compressed constants", Ordered, ContinueOnFailure, SpecPriority(2), func() {
	var b *bench
	var first struct {
		dir     string
		verdict judge.Verdict
	}

	BeforeAll(func(ctx SpecContext) { b = newBench(ctx) }, benchTime)

	It("validates the fix, and says what that rests on", func(ctx SpecContext) {
		before := map[string][]string{}
		for _, arm := range []string{"vulnerable", "fixed"} {
			before[arm] = running(ctx, b.node(arm))
			Expect(before[arm]).NotTo(BeEmpty(), "something real runs beside what is only reported")
		}
		first.dir, first.verdict = b.trialUntil(ctx, is(verdict.Validated), plan.Options{})
		v := first.verdict
		concluded(v, verdict.Validated, verdict.ExitOK)
		Expect(armOf(v, "vulnerable").Outcome).To(Equal(verdict.Reproduced))
		Expect(armOf(v, "fixed").Outcome).To(Equal(verdict.NotReproduced))
		Expect(v.Sentence).To(MatchRegexp(`what was tried on fixed: \d+ state changes delivered`), "what the arm was shown to survive")

		Expect(armOf(v, "vulnerable").Decisive).To(ContainSubstring("pleg.(*GenericPLEG).Relist"))
		Expect(armOf(v, "vulnerable").Decisive).To(ContainSubstring("chan send"))
		modelled := strings.Join(v.Modelled, "\n")
		Expect(modelled).To(ContainSubstring("plegChannelCapacity"))
		Expect(modelled).To(ContainSubstring("genericPlegRelistThreshold"))
		Expect(modelled).To(ContainSubstring("only reported"))
		Expect(v.Digests["vulnerable"]).NotTo(Equal(v.Digests["fixed"]))

		Expect(armOf(v, "vulnerable").Restart).To(PointTo(MatchFields(IgnoreExtras, Fields{
			"ReadySeconds": BeNumerically(">", 0), // it is -1 if the node isn't Ready within the limit
		})), "a restart heals the node")
		Expect(armOf(v, "fixed").Restart).To(BeNil())
		for arm, was := range before {
			Expect(running(ctx, b.node(arm))).To(Equal(was), "the real containers of %s are the same processes as before", arm)
			untouched(first.dir, arm, was)
		}
	}, SpecTimeout(trialTime))

	It("judges the same from the same evidence, here and elsewhere", func(ctx SpecContext) {
		want, err := first.verdict.JSON()
		Expect(err).NotTo(HaveOccurred())
		again, err := judge.Run(first.dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(again.JSON()).To(Equal(want))

		elsewhere := clone(first.dir)
		for range 2 {
			r := relapse(ctx, scratch, "judge", elsewhere)
			Expect(r.code).To(Equal(first.verdict.ExitCode), r.said())
			Expect(lastLine(r.out)).To(Equal(first.verdict.LastLine()))
			Expect(content(filepath.Join(elsewhere, judge.VerdictFile))).To(MatchJSON(want))
			Expect(content(filepath.Join(elsewhere, judge.VerdictFile))).To(Equal(want))
		}
	}, judgeTime)

	It("gives no verdict over goroutine captures that are gone", func(ctx SpecContext) {
		dir := clone(first.dir)
		Expect(remove(dir, bundle.Goroutines2)).To(BeNumerically(">=", 6), "three dumps an arm at least were taken")
		r := relapse(ctx, scratch, "judge", dir)
		Expect(r.code).To(Equal(verdict.ExitInconclusive), r.said())
		Expect(lastLine(r.out)).To(Equal("relapse: Inconclusive (exit 3)"))
		v, err := judge.Run(dir)
		Expect(err).NotTo(HaveOccurred())
		show(v)
		vulnerable := armOf(v, "vulnerable")
		Expect(vulnerable.Outcome).To(Equal(verdict.Inconclusive))
		Expect(vulnerable.Signature).To(ContainElement(MatchFields(IgnoreExtras, Fields{"Name": Equal("relist-blocked"), "Met": Equal(check.Unknown)})))
		concluded(v, verdict.VerdictInconclusive, verdict.ExitInconclusive)
	}, judgeTime)

	It("is never Validated without one of its captures", func(ctx SpecContext) {
		sealed, err := bundle.Open(filepath.Join(first.dir, "trials", "001"))
		Expect(err).NotTo(HaveOccurred())
		kinds := map[bundle.Kind]bool{}
		for _, a := range sealed.Artifacts(bundle.Query{}) {
			if a.Path != "" && !kinds[a.Kind] && ctx.Err() == nil {
				kinds[a.Kind] = true
				dir := clone(first.dir)
				remove(dir, a.Kind)
				v, err := judge.Run(dir)
				Expect(err).NotTo(HaveOccurred())
				Expect(v.ExitCode).To(Equal(verdict.ExitInconclusive), "without %s: %s", a.Kind, v.Sentence)
				Expect(v.Sentence).To(ContainSubstring(verdict.NextStep), "without %s", a.Kind)
			}
		}
		Expect(kinds).To(HaveKey(bundle.Journal))
	}, SpecTimeout(20*time.Minute))

	DescribeTable("refuses evidence that isn't what was recorded", func(ctx SpecContext, damage func(dir string), says string) {
		dir := clone(first.dir)
		damage(dir)
		_, err := judge.Run(dir)
		Expect(err).To(MatchError(ContainSubstring(says)))
		r := relapse(ctx, scratch, "judge", dir)
		Expect(r.code).To(Equal(verdict.ExitError), r.said())
		Expect(r.errs).To(ContainSubstring(says))
		Expect(lastLine(r.out)).To(Equal("relapse: Error (exit 4)"))
		Expect(filepath.Join(dir, judge.VerdictFile)).NotTo(BeAnExistingFile())
	},
		Entry("a byte changed in a goroutine dump", changeByte(bundle.Goroutines2), "was changed", judgeTime),
		Entry("a byte changed in the journal", changeByte(bundle.Journal), "was changed", judgeTime),
		Entry("a file that isn't listed", unlisted, "is not listed in", judgeTime),
		Entry("no manifest", noManifest, bundle.ManifestFile, judgeTime),
	)

	It("shows nothing when nothing is injected", func(ctx SpecContext) {
		unknown := func(f check.Finding) bool { return f.Met == check.Unknown }
		answered := func(v judge.Verdict) bool {
			return !slices.ContainsFunc(v.Arms, func(a verdict.Arm) bool {
				return !strings.Contains(a.Reason, "the exposure") || slices.ContainsFunc(slices.Concat(a.Signature, a.Healed), unknown)
			})
		}
		_, v := b.trialUntil(ctx, answered, plan.Options{NoFaults: true})
		concluded(v, verdict.VerdictInconclusive, verdict.ExitInconclusive)
		Expect(v.Deviates).To(ContainElement(ContainSubstring("null control")))
		for _, a := range v.Arms {
			Expect(a.Outcome).To(Equal(verdict.Inconclusive), a.Reason)
			Expect(a.Reason).To(ContainSubstring("the exposure"))
			Expect(a.Signature).NotTo(BeEmpty())
			for _, f := range a.Signature {
				Expect(f.Met).To(Equal(check.False), "%s of %s: the data is there and says no: %s", f.Name, a.Name, f.Seen)
				Expect(f.Evidence).NotTo(BeEmpty(), "%s of %s", f.Name, a.Name)
			}
			for _, f := range a.Healed {
				Expect(f.Met).To(Equal(check.True), "%s of %s: %s", f.Name, a.Name, f.Seen)
			}
		}
	}, SpecTimeout(trialTime))

	It("doesn't take two fixed arms for a proof", Label("nightly"), func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) { b.settle(ctx, smoke, smoke.Trials[0]) }, NodeTimeout(8*time.Minute))
		_, v := b.trialUntil(ctx, is(verdict.VerdictNotReproduced), plan.Options{Swap: map[string]string{"vulnerable": "fixed"}})
		concluded(v, verdict.VerdictNotReproduced, verdict.ExitFailed)
		Expect(v.Digests["vulnerable"]).To(Equal(v.Digests["fixed"]))
		Expect(v.Sentence).To(ContainSubstring("are the same binary"))
		Expect(v.Deviates).To(ContainElement("arm vulnerable runs the build of arm fixed"))
		for _, a := range v.Arms {
			Expect(a.Outcome).To(Equal(verdict.NotReproduced), a.Reason)
		}
	}, SpecTimeout(trialTime))

	DescribeTable("takes half of the fault for no fault", Label("nightly"), func(ctx SpecContext, without string) {
		_, v := b.trial(ctx, plan.Options{Without: []string{without}, Params: map[string]string{
			"phases.fault.deadline":   "30s", // more than twice the compressed threshold
			"phases.recovery.atLeast": "20s", // the exposure decides, and nothing after it does
		}})
		concluded(v, verdict.VerdictInconclusive, verdict.ExitInconclusive)
		Expect(v.Deviates).To(ContainElement(ContainSubstring(without)))
		for _, a := range v.Arms {
			Expect(a.Outcome).To(Equal(verdict.Inconclusive), a.Reason)
			// In such a short phase nothing can be seen to hang for a minute, so that alternative has no answer.
			Expect(a.Reason).To(MatchRegexp("the exposure is (not met|unknown), and must be met"))
		}
	},
		Entry("a flood at a fast runtime", "slow-runtime", SpecTimeout(trialTime)),
		Entry("a slow runtime with no flood", "flood", SpecTimeout(trialTime)),
	)

	It("calls an arm Broken whose kubelet was killed and came back healthy", func(ctx SpecContext) {
		broken := func(v judge.Verdict) bool { return armOf(v, "fixed").Outcome == verdict.Broken }
		_, v := untilJudged(broken, func(try int) (string, judge.Verdict) {
			if try > 1 {
				b.restart(ctx)
			}
			killed := killDuringFlood(ctx, b, "fixed")
			defer killed.detach()
			dir, v := b.trial(ctx, plan.Options{Params: map[string]string{
				"phases.fault.atLeast":  "40s", // time for the kubelet to come back while the flood lasts
				"phases.fault.deadline": "60s",
			}})
			Expect(killed.err()).NotTo(HaveOccurred())
			return dir, v
		})
		fixed := armOf(v, "fixed")
		Expect(fixed.Outcome).To(Equal(verdict.Broken), fixed.Reason)
		Expect(fixed.Reason).To(ContainSubstring("the subject exited or restarted unasked"))
		for _, f := range fixed.Healed {
			want := check.True
			if strings.HasPrefix(f.Name, plan.BuiltIn) { // the baseline was of the process before
				want = check.Unknown
			}
			Expect(f.Met).To(Equal(want), "it came back healthy, and is Broken all the same: %s: %s", f.Name, f.Seen)
		}
		Expect(v.Verdict).NotTo(Equal(verdict.Validated))
		if armOf(v, "vulnerable").Outcome == verdict.Reproduced {
			concluded(v, verdict.VerdictBroken, verdict.ExitFailed)
		}
	}, SpecTimeout(trialTime))

	It("notices a binary that isn't the arm's", func(ctx SpecContext) {
		own := b.take(ctx, "fixed")
		b.put(ctx, "fixed", b.take(ctx, "vulnerable"))
		DeferCleanup(func(ctx SpecContext) { b.put(ctx, "fixed", own) }, NodeTimeout(8*time.Minute))
		reproduced := func(v judge.Verdict) bool { return armOf(v, "vulnerable").Outcome == verdict.Reproduced }
		_, v := b.trialUntil(ctx, reproduced, plan.Options{})
		concluded(v, verdict.VerdictInconclusive, verdict.ExitInconclusive)
		Expect(armOf(v, "vulnerable").Outcome).To(Equal(verdict.Reproduced))
		fixed := armOf(v, "fixed")
		Expect(fixed.Outcome).To(Equal(verdict.Inconclusive), "it runs what reproduces the incident, but that is not the arm's doing")
		Expect(fixed.Reason).To(ContainSubstring("isn't the binary that belongs to this arm"))
		Expect(fixed.Reason).To(ContainSubstring(v.Digests["vulnerable"][:12]))
	}, SpecTimeout(trialTime))
})

// untouched asserts that the interposer forwarded no Stop or Remove call for a task of was. It reads the interposer's
// own list of such calls in the trial's evidence, from the steady phase on.
func untouched(dir, arm string, was []string) {
	GinkgoHelper()
	sealed, err := bundle.Open(filepath.Join(dir, "trials", "001"))
	Expect(err).NotTo(HaveOccurred())
	begun, ok := sealed.Phase(arm, check.Steady)
	Expect(ok).To(BeTrue())
	streams := sealed.Artifacts(bundle.Query{Kind: bundle.Interposer, Arm: arm})
	Expect(streams).NotTo(BeEmpty())
	last, withheld := control.Counts{}, int64(0)
	for _, a := range streams {
		r, err := sealed.Open(a)
		Expect(err).NotTo(HaveOccurred())
		for d := json.NewDecoder(r); d.More(); {
			var s bundle.Stamped[control.Counts]
			Expect(d.Decode(&s)).To(Succeed())
			last = s.Value
		}
		Expect(r.Close()).To(Succeed())
	}
	for _, n := range last.Withheld {
		withheld += n
	}
	Expect(withheld).To(BeNumerically(">", 0), "calls about what is only reported were answered by the interposer")
	for _, touch := range last.Touches {
		if touch.At.Before(begun.Start) {
			continue
		}
		for _, task := range was {
			Expect(task).NotTo(HavePrefix(touch.ID), "%s at %s", touch.Method, touch.At)
		}
	}
}

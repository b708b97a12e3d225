package verdict

import (
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/check"
)

// row is a row of the outcome table: when it fits, its outcome and reason, which findings show it, and what to do
// next if it is Inconclusive.
type row struct {
	when    func(Inputs) bool
	outcome Outcome
	reason  func(Inputs) string
	because func(*Arm) []check.Finding
	next    func(step) string
	// mayBeIncident says that the failure of a Broken arm may be the incident.
	mayBeIncident bool
}

// rowOf returns the first row that fits. The last row fits everything.
func rowOf(in Inputs) row {
	return table[slices.IndexFunc(table, func(r row) bool { return r.when(in) })]
}

// table is the outcome table. A failure of the harness goes first, then a wrong binary: what another program did is
// never the arm's outcome.
var table = []row{
	{
		when:    func(in Inputs) bool { return in.HarnessError != "" },
		outcome: Error,
		reason:  func(in Inputs) string { return "something of the harness failed: " + in.HarnessError },
		because: func(*Arm) []check.Finding { return nil },
	},
	{
		when:    func(in Inputs) bool { return in.Binary == check.False },
		outcome: Inconclusive,
		reason:  fixedText("the subject isn't the binary that belongs to this arm"),
		because: func(a *Arm) []check.Finding { return only(a.Identity, check.False) },
		next:    step.otherBinary,
	},
	{
		when:    func(in Inputs) bool { return in.Process == check.False },
		outcome: Broken, reason: fixedText("the subject exited or restarted unasked"),
		because: func(a *Arm) []check.Finding { return only(a.Identity, check.False) },
	},
	{
		when:    func(in Inputs) bool { return in.NeverReady },
		outcome: Broken, reason: fixedText("the subject never got Ready where a control did"),
		because: func(a *Arm) []check.Finding { return except(a.Steady, check.True) },
	},
	{
		when:    func(in Inputs) bool { return in.Binary != check.True },
		outcome: Inconclusive,
		reason:  fixedText("it is unknown whether the binary that ran is the one that belongs to this arm"),
		because: func(a *Arm) []check.Finding { return except(a.Identity, check.True) },
		next:    step.unknownBinary,
	},
	{
		when:    func(in Inputs) bool { return in.Process != check.True },
		outcome: Inconclusive,
		reason:  fixedText("it is unknown whether the subject was one process all along"),
		because: func(a *Arm) []check.Finding { return except(a.Identity, check.True) },
		next:    step.unknownProcess,
	},
	{
		when:    func(in Inputs) bool { return in.Steady != check.True },
		outcome: Inconclusive,
		reason:  func(in Inputs) string { return missed("the steady state", in.Steady, "met") },
		because: func(a *Arm) []check.Finding { return except(a.Steady, check.True) },
		next:    step.neverSteady,
	},
	{
		when:    func(in Inputs) bool { return in.Baseline == check.True },
		outcome: Inconclusive, reason: func(in Inputs) string {
			return missed("the signature in the baseline",
				in.Baseline, "not met")
		},
		because: func(a *Arm) []check.Finding { return a.Baseline },
		next:    step.illBefore,
	},
	{
		when:    func(in Inputs) bool { return in.Baseline != check.False },
		outcome: Inconclusive, reason: func(in Inputs) string {
			return missed("the signature in the baseline",
				in.Baseline, "not met")
		},
		because: func(a *Arm) []check.Finding { return only(a.Baseline, check.Unknown) },
		next:    step.unknownBaseline,
	},
	{
		when:    func(in Inputs) bool { return in.Exposure != check.True },
		outcome: Inconclusive,
		reason:  func(in Inputs) string { return missed("the exposure", in.Exposure, "met") },
		because: func(a *Arm) []check.Finding { return except(a.Exposure, check.True) },
		next:    step.notExposed,
	},
	{
		when:    func(in Inputs) bool { return in.Signature == check.True },
		outcome: Reproduced,
		reason:  fixedText("the signature is met under proven exposure"),
		because: func(a *Arm) []check.Finding { return slices.Concat(a.Signature, onlyDeciding(a.Exposure)) },
	},
	{
		when:    Inputs.illInAnyCase,
		outcome: Broken,
		reason: fixedText(
			"the subject is not well, and the signature is unknown, so that it may be the incident or " +
				"another failure",
		),
		mayBeIncident: true,
		because: func(a *Arm) []check.Finding {
			return slices.Concat(only(a.Healed, check.False), only(a.Signature, check.Unknown))
		},
	},
	{
		when:    func(in Inputs) bool { return in.Signature != check.False },
		outcome: Inconclusive, reason: func(in Inputs) string {
			return missed(
				"the signature",
				in.Signature,
				"met, or not met with every part of it known",
			)
		},
		because: func(a *Arm) []check.Finding { return only(a.Signature, check.Unknown) },
		next:    step.unknownSignature,
	},
	{
		when:    func(in Inputs) bool { return in.Healed == check.True && in.Missed != "" },
		outcome: Inconclusive, reason: func(in Inputs) string {
			return "the signature is not met, but the arm wasn't put to the whole test: " + in.Missed + " never came"
		},
		because: func(*Arm) []check.Finding { return nil },
		next:    step.missedFault,
	},
	{
		when:    func(in Inputs) bool { return in.Healed == check.True },
		outcome: NotReproduced, reason: fixedText("the signature is not met under proven exposure, and the subject is well"),
		because: func(a *Arm) []check.Finding { return slices.Concat(onlyDeciding(a.Exposure), a.Healed) },
	},
	{
		when:    func(in Inputs) bool { return in.Healed == check.False },
		outcome: Broken,
		reason:  fixedText("the signature is not met, but the subject is not well either: it failed in another way"),
		because: func(a *Arm) []check.Finding { return except(a.Healed, check.True) },
	},
	{
		when:    func(Inputs) bool { return true },
		outcome: Inconclusive, reason: func(in Inputs) string {
			return missed("whether it is healed", in.Healed,
				"met or not met")
		},
		because: func(a *Arm) []check.Finding { return except(a.Healed, check.True) },
		next:    step.unknownHealth,
	},
}

// illInAnyCase reports whether the subject isn't well and its signature is unknown: whatever the signature is, the arm
// is no cure.
func (in Inputs) illInAnyCase() bool {
	return in.Signature == check.Unknown && in.Healed == check.False
}

func fixedText(text string) func(Inputs) string { return func(Inputs) string { return text } }

func missed(what string, is check.Truth, want string) string {
	return fmt.Sprintf("%s is %s, and must be %s", what, is, want)
}

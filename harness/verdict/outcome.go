// Package verdict turns evidence into an answer: an outcome for each arm and a verdict over the arms. It holds the two tables that
// the project's design defines and what fills them in from a bundle, and nothing else. Absence of evidence is never NotReproduced.
package verdict

import (
	"fmt"

	"github.com/kube-relapse/relapse/harness/check"
)

// Outcome is what became of one arm in one trial.
type Outcome string

// The outcomes. The zero value is none of them.
const (
	Reproduced    Outcome = "Reproduced"    // the incident's fingerprint, and the fault provably hit
	NotReproduced Outcome = "NotReproduced" // no fingerprint although the fault provably hit, and provably well
	Broken        Outcome = "Broken"        // it failed in another way
	Inconclusive  Outcome = "Inconclusive"  // the evidence doesn't say
	Error         Outcome = "Error"         // something of ours failed
)

// Inputs are the columns of the outcome table for one arm, and what goes before the table.
type Inputs struct {
	Steady    check.Tri // the steady state held before any fault
	Baseline  check.Tri // the signature, asked in the baseline: must be not met
	Exposure  check.Tri
	Signature check.Tri
	Healed    check.Tri

	Binary     check.Tri // the running binary is the one that was built, and it was built like its counterpart
	Process    check.Tri // it was one process all along; not met when it exited or restarted unasked
	NeverReady bool      // it never got Ready where a control did

	HarnessError string // what of ours failed; "" if nothing did
}

// OutcomeOf is the outcome table, row by row. The reason says which row it was and why the rows before weren't.
//
// A binary that isn't the arm's goes first among what the arm did: nothing that another program did is the arm's outcome.
func OutcomeOf(in Inputs) (outcome Outcome, reason string) {
	switch {
	case in.HarnessError != "":
		return Error, "something of the harness failed: " + in.HarnessError
	case in.Binary == check.NotMet:
		return Inconclusive, "the subject isn't the binary that belongs to this arm"
	case in.Process == check.NotMet:
		return Broken, "the subject exited or restarted unasked"
	case in.NeverReady:
		return Broken, "the subject never got Ready where a control did"
	case in.Binary != check.Met:
		return Inconclusive, "it is unknown whether the binary that ran is the one that belongs to this arm"
	case in.Process != check.Met:
		return Inconclusive, "it is unknown whether the subject was one process all along"
	case in.Steady != check.Met:
		return Inconclusive, missed("the steady state", in.Steady, "met")
	case in.Baseline != check.NotMet:
		return Inconclusive, missed("the signature in the baseline", in.Baseline, "not met")
	case in.Exposure != check.Met:
		return Inconclusive, missed("the exposure", in.Exposure, "met")
	case in.Signature == check.Met:
		return Reproduced, "the signature is met under proven exposure"
	case in.Signature != check.NotMet:
		return Inconclusive, missed("the signature", in.Signature, "met or not met")
	case in.Healed == check.Met:
		return NotReproduced, "the signature is not met under proven exposure, and the subject is well"
	case in.Healed == check.NotMet:
		return Broken, "the signature is not met, but the subject is not well either: it failed in another way"
	}
	return Inconclusive, missed("whether it is healed", in.Healed, "met or not met")
}

func missed(what string, is check.Tri, want string) string {
	return fmt.Sprintf("%s is %s, and must be %s", what, is, want)
}

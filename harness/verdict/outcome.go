// Package verdict turns evidence into an answer: an outcome for each arm and a verdict over the arms. It has the two
// tables of the project's design and what fills them in from a bundle. Absence of evidence is never NotReproduced.
package verdict

import (
	"github.com/kube-relapse/relapse/harness/check"
)

// Outcome is the result of one arm in one trial.
type Outcome string

// The outcomes. The zero value is none of them.
const (
	Reproduced    Outcome = "Reproduced"    // the incident's fingerprint, and the fault provably hit
	NotReproduced Outcome = "NotReproduced" // no fingerprint although the fault provably hit, and provably well
	Broken        Outcome = "Broken"        // it failed in another way
	Inconclusive  Outcome = "Inconclusive"  // the evidence doesn't say
	Error         Outcome = "Error"         // something of ours failed
)

// Inputs are the columns of the outcome table for one arm, and what is asked before the table.
type Inputs struct {
	Steady    check.Truth // the steady state held before any fault
	Baseline  check.Truth // the signature, asked in the baseline: must be not met
	Exposure  check.Truth
	Signature check.Truth // not met only where every part of it is known
	Healed    check.Truth

	Binary     check.Truth // the running binary is the one that was built, and it was built like its counterpart
	Process    check.Truth // it was one process all along; not met when it exited or restarted unasked
	NeverReady bool        // it never got Ready where a control did

	HarnessError string // what of ours failed; "" if nothing did
}

// OutcomeOf is the outcome table: the first row that fits. The reason says which row it was.
func OutcomeOf(in Inputs) (outcome Outcome, reason string) {
	r := rowOf(in)
	return r.outcome, r.reason(in)
}

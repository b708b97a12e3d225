// Package verdict turns evidence into an answer: an outcome for each arm and a verdict over the arms. It has the two
// tables of the project's design, and fills them in from a bundle. Absence of evidence is never NotReproduced.
package verdict

import "github.com/kube-relapse/relapse/harness/check"

// Outcome is the result of one arm in one trial.
type Outcome string

// The outcomes. The zero value is none of them.
const (
	Reproduced    Outcome = "Reproduced"    // the arm shows the signature, and the fault provably hit
	NotReproduced Outcome = "NotReproduced" // no signature, the fault provably hit, and the subject is provably well
	Broken        Outcome = "Broken"        // the subject failed in another way
	Inconclusive  Outcome = "Inconclusive"  // the evidence doesn't say
	Error         Outcome = "Error"         // the harness failed
)

// Inputs are the columns of the outcome table for one arm, and the conditions that come before the columns.
type Inputs struct {
	Steady    check.Truth // the steady state held before any fault
	Baseline  check.Truth // the signature, asked in the baseline: must be False
	Exposure  check.Truth
	Signature check.Truth // False only if every part of it is known
	Healed    check.Truth

	Binary     check.Truth // the running binary is the one that was built, and it was built like its counterpart
	Process    check.Truth // the subject was one process all along; False if it exited or restarted unasked
	NeverReady bool        // the arm never got Ready although another arm did

	Missed       string // faults and loads of the plan that never came in the arm; "" if all came
	HarnessError string // what failed in the harness; "" if nothing did
}

// OutcomeOf returns the outcome by the first row of the outcome table that fits. reason says which row it was.
func OutcomeOf(in Inputs) (outcome Outcome, reason string) {
	r := rowOf(in)
	return r.outcome, r.reason(in)
}

package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// Verdict is the answer over all arms of a trial, or over several trials.
type Verdict string

// The verdicts. A trial with a single arm that is no candidate has that arm's outcome as its verdict.
const (
	Validated            Verdict = "Validated"
	StillVulnerable      Verdict = "StillVulnerable"
	VerdictBroken        Verdict = "Broken"
	VerdictInconclusive  Verdict = "Inconclusive"
	VerdictError         Verdict = "Error"
	VerdictReproduced    Verdict = "Reproduced"
	VerdictNotReproduced Verdict = "NotReproduced"
)

// The exit codes that go with verdicts.
const (
	ExitOK           = 0
	ExitFailed       = 1
	ExitInconclusive = 3
	ExitError        = 4
)

// ArmOutcome is one arm's line in the verdict table.
type ArmOutcome struct {
	Name     string
	Role     string // vulnerable, fixed or candidate
	Outcome  Outcome
	Expected Outcome
	Digest   string // SHA-256 of the arm's binary, or of all in order; "" if it isn't known
	// MayBeIncident says that the signature of a Broken arm is unknown: its failure may be the incident.
	MayBeIncident bool
	Next          string // what to do if the outcome is Inconclusive
}

// Decide returns the verdict over the arms of a trial, by the verdict table, row by row. The judged arm is the
// candidate if there is one, else the fixed arm; the others are controls. A candidate is never judged without a
// vulnerable arm that is Reproduced in the same trial. sentence is the reason in one line. next says what to do about
// an Inconclusive verdict, and is "" for the others.
func Decide(arms []ArmOutcome) (v Verdict, exit int, sentence, next string) {
	if len(arms) == 0 {
		return VerdictError, ExitError, "no arm was judged", ""
	}
	is := func(o Outcome) func(ArmOutcome) bool { return func(a ArmOutcome) bool { return a.Outcome == o } }
	if i := slices.IndexFunc(arms, is(Error)); i >= 0 {
		return VerdictError, ExitError, fmt.Sprintf(
			"the harness failed on arm %s",
			arms[i].Name,
		), ""
	}
	if i := slices.IndexFunc(arms, ofRole(scenario.Candidate)); i >= 0 && !slices.ContainsFunc(arms, ofRole(scenario.Vulnerable)) {
		return VerdictInconclusive, ExitInconclusive,
			fmt.Sprintf(
				"%s is %s, and no vulnerable arm was beside it, so nothing shows that the trial brings the "+
					"incident back",
				arms[i].Name,
				arms[i].Outcome,
			), nextForNoVulnerable
	}
	if len(arms) == 1 {
		return decideOne(arms[0])
	}
	if a, b, ok := contradiction(arms); ok {
		return VerdictInconclusive, ExitInconclusive,
			fmt.Sprintf(
				"%s is %s and %s is %s with the same binary, so what makes the difference is not the build",
				a.Name,
				a.Outcome,
				b.Name,
				b.Outcome,
			), nextForSameBinary
	}
	judged, controls := split(arms)
	if len(judged) == 0 {
		return VerdictInconclusive, ExitInconclusive, "no arm is fixed or a candidate, so there is none to judge", nextForNoJudged
	}
	if judged[0].Role != scenario.Candidate &&
		!slices.ContainsFunc(
			arms,
			func(a ArmOutcome) bool { return a.Outcome != NotReproduced },
		) {
		return VerdictNotReproduced, ExitFailed, "no arm reproduced the incident, so nothing shows that the cure " +
			"works", ""
	}
	for _, c := range controls {
		if c.Outcome != c.Expected {
			return VerdictInconclusive, ExitInconclusive,
				fmt.Sprintf(
					"the control %s is %s and should be %s, so the trial proves nothing",
					c.Name,
					c.Outcome,
					c.Expected,
				), nextForControl(c)
		}
	}
	return decideJudged(judged, controls)
}

func ofRole(role string) func(ArmOutcome) bool {
	return func(a ArmOutcome) bool { return a.Role == role }
}

// contradiction finds two arms with the same binary and different outcomes. Inconclusive doesn't count as different,
// because it is no answer.
func contradiction(arms []ArmOutcome) (a, b ArmOutcome, found bool) {
	for i, a := range arms {
		for _, b := range arms[i+1:] {
			if a.Digest != "" && a.Digest == b.Digest && a.Outcome != b.Outcome && a.Outcome != Inconclusive &&
				b.Outcome != Inconclusive {
				return a, b, true
			}
		}
	}
	return a, b, false
}

// decideOne judges a single arm that is no candidate. Without a control, the arm's outcome is the verdict.
func decideOne(a ArmOutcome) (v Verdict, exit int, sentence, next string) {
	sentence = fmt.Sprintf("the only arm %s is %s, expected %s", a.Name, a.Outcome, a.Expected)
	switch a.Outcome {
	case a.Expected:
		return Verdict(a.Outcome), ExitOK, sentence, ""
	case Inconclusive:
		return VerdictInconclusive, ExitInconclusive, sentence, nextOf(a)
	}
	return Verdict(a.Outcome), ExitFailed, sentence, ""
}

// split separates the judged arms from the controls.
func split(arms []ArmOutcome) (judged, controls []ArmOutcome) {
	role := scenario.Fixed
	for _, a := range arms {
		if a.Role == scenario.Candidate {
			role = scenario.Candidate
		}
	}
	for _, a := range arms {
		if a.Role == role {
			judged = append(judged, a)
		} else {
			controls = append(controls, a)
		}
	}
	return judged, controls
}

// decideJudged returns the verdict of the last rows, for a trial whose controls are as expected. The worst of several
// judged arms decides.
func decideJudged(judged, controls []ArmOutcome) (v Verdict, exit int, sentence, next string) {
	for _, row := range []struct {
		outcome Outcome
		verdict Verdict
		exit    int
		says    string
	}{
		{Reproduced, StillVulnerable, ExitFailed, "still shows the incident"},
		{Broken, VerdictBroken, ExitFailed, "doesn't show the incident and failed in another way"},
		{Inconclusive, VerdictInconclusive, ExitInconclusive, "gave no answer"},
		{NotReproduced, Validated, ExitOK, "did not show the incident"},
	} {
		for _, a := range judged {
			if a.Outcome != row.outcome {
				continue
			}
			if a.MayBeIncident {
				row.says = "is not well, and whether that is the incident or something else is not known"
			}
			if row.outcome == Inconclusive {
				next = nextOf(a)
			}
			return row.verdict, row.exit, fmt.Sprintf(
				"%s %s%s",
				a.Name,
				row.says,
				comparison(row.outcome, controls),
			), next
		}
	}
	return VerdictError, ExitError, fmt.Sprintf("arm %s has no outcome", judged[0].Name), ""
}

// comparison ends the sentence about a judged arm with what its controls did. They are as expected: a vulnerable arm
// showed the incident, and a fixed one did not.
func comparison(judged Outcome, controls []ArmOutcome) string {
	var reproduced, others []string
	for _, c := range controls {
		if judged == NotReproduced && c.Outcome == Reproduced {
			reproduced = append(reproduced, c.Name)
		} else {
			others = append(others, fmt.Sprintf("%s is %s", c.Name, c.Outcome))
		}
	}
	out := ""
	if len(reproduced) > 0 {
		out = " under the fault that reproduced it in " + strings.Join(reproduced, " and ")
	}
	if len(others) > 0 {
		out += ", while " + strings.Join(others, " and ")
	}
	return out
}

// Combine returns the exit code over several trials, pairs or scenarios: 1 outranks 4, then 3, then 0. Without any code
// it returns 4, because nothing was shown. A code that no verdict has counts as 4.
func Combine(exits []int) int {
	for _, code := range []int{ExitFailed, ExitError, ExitInconclusive, ExitOK} {
		for _, e := range exits {
			if !slices.Contains([]int{ExitOK, ExitFailed, ExitInconclusive, ExitError}, e) {
				e = ExitError
			}
			if e == code {
				return code
			}
		}
	}
	return ExitError
}

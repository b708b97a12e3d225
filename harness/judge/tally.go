package judge

import (
	"slices"

	counts "github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// tally counts the trials of a pair by their verdicts, for the stopping rule.
func tally(trials []verdict.Trial, pair string) counts.Tally {
	var out counts.Tally
	for _, t := range trials {
		if t.Pair != pair {
			continue
		}
		judged, controls := roles(t)
		for _, a := range judged {
			out.Judged = a.Name
		}
		for _, a := range controls {
			if a.Role == scenario.Vulnerable {
				out.Control = a.Name
				answer(&out.Bites, a.Outcome)
			}
		}
		switch {
		case t.Verdict == verdict.Validated:
			out.Clear++
		case t.Verdict == verdict.StillVulnerable:
			out.Shown++
		case t.Verdict == verdict.VerdictBroken:
			out.Broken++
		case t.Verdict == verdict.VerdictError:
			out.Failed++
		case silent(t):
			out.Silent++
		default:
			out.SetAside++
			if slices.ContainsFunc(judged, func(a verdict.Arm) bool { return a.Outcome == verdict.Reproduced }) {
				out.Doubtful++
			}
		}
	}
	return out
}

// answers reports whether a trial says what its judged arm is.
func answers(t verdict.Trial) bool {
	return slices.Contains(
		[]verdict.Verdict{verdict.Validated, verdict.StillVulnerable, verdict.VerdictBroken,
			verdict.VerdictError},
		t.Verdict,
	)
}

// silent reports whether a trial says nothing about its judged arm although its controls were as expected. That counts
// against the arm: an incident may destroy its own evidence.
func silent(t verdict.Trial) bool { return !answers(t) && controlled(t) }

// SetAside reports whether a trial says nothing about its judged arm because a control was not as expected, whatever
// the judged arm did.
func SetAside(t verdict.Trial) bool { return !answers(t) && !controlled(t) }

// controlled reports whether every control of a trial was as expected. A trial with one arm has no controls.
func controlled(t verdict.Trial) bool {
	if len(t.Arms) == 1 {
		return true
	}
	_, controls := roles(t)
	return !slices.ContainsFunc(
		controls,
		func(a verdict.Arm) bool { return a.Outcome != a.Expected },
	)
}

// roles splits a trial's arms as the verdict table does. The candidates are judged if there are any, or else the fixed
// arm.
func roles(t verdict.Trial) (judged, controls []verdict.Arm) {
	role := scenario.Fixed
	if slices.ContainsFunc(t.Arms, func(a verdict.Arm) bool { return a.Role == scenario.Candidate }) {
		role = scenario.Candidate
	}
	for _, a := range t.Arms {
		if a.Role == role {
			judged = append(judged, a)
		} else {
			controls = append(controls, a)
		}
	}
	return judged, controls
}

// answer adds an outcome that says whether an arm has the incident to c. It returns false for any other outcome.
func answer(c *counts.Count, o verdict.Outcome) bool {
	switch o {
	case verdict.Reproduced:
		c.K++
	case verdict.NotReproduced:
	default:
		return false
	}
	c.N++
	return true
}
